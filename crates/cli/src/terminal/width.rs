//! How wide the terminal is, and how wide texts are in it.

use std::io::IsTerminal;
use std::os::fd::AsFd;

/// The width that is assumed where the output is not a terminal.
const DEFAULT: usize = 100;
/// The least width: tables do not fit in less.
const MIN: usize = 40;

/// The columns of the terminal that the output is, or a default.
pub(crate) fn width(output: &(impl AsFd + IsTerminal)) -> usize {
    columns(output).map_or(DEFAULT, |columns| columns.max(MIN))
}

/// The columns of the terminal that the output is, however few.
pub(super) fn columns(output: &(impl AsFd + IsTerminal)) -> Option<usize> {
    let size = output.is_terminal().then(|| rustix::termios::tcgetwinsize(output))?;
    size.ok().map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// How many columns of a terminal a text takes: some characters take two, and some none.
pub(crate) fn text_width(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { ratatui::text::Span::raw(text).width() }
}

/// The first characters, as many as fit. Those without a width of their own are taken along, within a bound.
pub(crate) fn taken(characters: impl Iterator<Item = char>, width: usize) -> String {
    let mut kept = String::new();
    let mut left = width;
    for character in characters.take(4 * width) {
        match left.checked_sub(text_width(character.encode_utf8(&mut [0; 4]))) {
            Some(rest) => left = rest,
            None => break,
        }
        kept.push(character);
    }
    kept
}
