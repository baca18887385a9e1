//! `VisibleLines`: lines of the log in which names from clients can neither hide nor reorder text.

use std::io;

use tracing_subscriber::fmt::MakeWriter;

use crate::config::LogFormat;
use crate::observe::visible::{is_visible, visible, visible_json};

/// Makes writers of lines with escapes. Control characters are left to the formatter, which writes some for colours.
#[derive(Debug, Clone)]
pub(super) struct VisibleLines<W> {
    pub(super) writer: W,
    pub(super) format: LogFormat,
}

/// Writes one line.
#[derive(Debug)]
pub(super) struct VisibleLine<W> {
    writer: W,
    format: LogFormat,
}

// === impl VisibleLines ===

impl<'a, W: MakeWriter<'a>> MakeWriter<'a> for VisibleLines<W> {
    type Writer = VisibleLine<W::Writer>;

    fn make_writer(&'a self) -> Self::Writer {
        VisibleLine { writer: self.writer.make_writer(), format: self.format }
    }

    fn make_writer_for(&'a self, meta: &tracing::Metadata<'_>) -> Self::Writer {
        VisibleLine { writer: self.writer.make_writer_for(meta), format: self.format }
    }
}

// === impl VisibleLine ===

impl<W: io::Write> io::Write for VisibleLine<W> {
    /// A line comes in one piece.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        // Nearly all lines are ASCII.
        let text = if line.is_ascii() { None } else { std::str::from_utf8(line).ok() };
        match text.filter(|text| text.chars().any(is_hidden)) {
            None => self.writer.write(line),
            Some(text) => {
                self.writer.write_all(self.escaped(text).as_bytes())?;
                Ok(line.len())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

impl<W> VisibleLine<W> {
    fn escaped(&self, line: &str) -> String {
        let escape = match self.format {
            LogFormat::Text => visible,
            LogFormat::Json => visible_json,
        };
        let mut escaped = String::with_capacity(line.len() + 32);
        for piece in line.split_inclusive(is_hidden) {
            let hidden = piece.chars().next_back().filter(|last| is_hidden(*last)).map_or(0, char::len_utf8);
            let (plain, hidden) = piece.split_at(piece.len() - hidden);
            escaped.push_str(plain);
            escaped.push_str(&escape(hidden));
        }
        escaped
    }
}

fn is_hidden(character: char) -> bool {
    !is_visible(character) && !character.is_ascii_control()
}
