//! How tones look, with colour or without.

use ratatui::style::{Color, Modifier, Style};

use super::grid::Tone;

/// The looks of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Palette {
    Color,
    /// Bold and dim text only.
    Plain,
}

// === impl Palette ===

impl Palette {
    pub(super) fn style(self, tone: Tone) -> Style {
        let style = Style::new();
        match (tone, self) {
            (Tone::Normal, _) | (Tone::Good, Self::Plain) => style,
            (Tone::Faint, _) => style.add_modifier(Modifier::DIM),
            (Tone::Strong, _) | (Tone::Warn | Tone::Bad, Self::Plain) => style.add_modifier(Modifier::BOLD),
            (Tone::Good, Self::Color) => style.fg(Color::Green),
            (Tone::Warn, Self::Color) => style.fg(Color::Yellow),
            (Tone::Bad, Self::Color) => style.fg(Color::LightRed).add_modifier(Modifier::BOLD),
        }
    }

    pub(super) fn selected(self, tone: Tone) -> Style {
        self.style(tone).add_modifier(Modifier::REVERSED)
    }
}
