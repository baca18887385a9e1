//! Colour and hyperlinks, where the output is a terminal.

use std::io::IsTerminal;

use clap::ValueEnum;

/// When output is coloured, the value of `--color`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum ColorChoice {
    /// On a terminal, unless the variable `NO_COLOR` is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Writes text in colour, or as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Paint {
    is_on: bool,
}

/// How a text is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shade {
    /// Bold.
    Strong,
    /// Less prominent than the rest.
    Faint,
    /// Something wrong.
    Red,
    /// Something to look at.
    Yellow,
    /// Something that is as it should be.
    Green,
    /// Names and headings.
    Blue,
}

// === impl ColorChoice ===

impl ColorChoice {
    /// Whether to write in colour to that output.
    pub(crate) fn paint(self, output: &impl IsTerminal) -> Paint {
        let is_wanted = || std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let is_on = match self {
            Self::Auto => output.is_terminal() && is_wanted(),
            Self::Always => true,
            Self::Never => false,
        };
        Paint { is_on }
    }
}

// === impl Paint ===

impl Paint {
    /// Whether anything is coloured at all.
    pub(crate) fn is_on(self) -> bool {
        self.is_on
    }

    /// The text in that shade.
    pub(crate) fn text(self, shade: Shade, text: &str) -> String {
        if !self.is_on || text.is_empty() {
            return text.to_owned();
        }
        let code = match shade {
            Shade::Strong => "1",
            Shade::Faint => "2",
            Shade::Red => "1;31",
            Shade::Yellow => "1;33",
            Shade::Green => "1;32",
            Shade::Blue => "1;34",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_is_only_written_where_it_is_wanted() {
        let file = tempfile::tempfile().unwrap();
        assert!(!ColorChoice::Auto.paint(&file).is_on());
        assert!(!ColorChoice::Never.paint(&file).is_on());
        let paint = ColorChoice::Always.paint(&file);
        assert_eq!(paint.text(Shade::Red, "no"), "\x1b[1;31mno\x1b[0m");
        assert_eq!(paint.text(Shade::Red, ""), "");
        let plain = ColorChoice::Never.paint(&file);
        assert_eq!(plain.text(Shade::Red, "no"), "no");
    }
}
