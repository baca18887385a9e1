//! How wide the terminal is.

use std::io::IsTerminal;
use std::os::fd::AsFd;

/// What is assumed where the output is no terminal.
const DEFAULT: usize = 100;
/// Less than this is of no use to anybody.
const MIN: usize = 40;

/// The columns of the terminal that the output is, or a default.
pub(crate) fn width(output: &(impl AsFd + IsTerminal)) -> usize {
    if !output.is_terminal() {
        return DEFAULT;
    }
    match rustix::termios::tcgetwinsize(output) {
        Ok(size) if size.ws_col > 0 => usize::from(size.ws_col).max(MIN),
        _ => DEFAULT,
    }
}
