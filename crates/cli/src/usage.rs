//! What is wrong with a command line, in one sentence; and values that say so themselves.

use std::ffi::OsString;
use std::net::SocketAddr;

use clap::error::ErrorKind;

/// What is wrong with these arguments, what may have been meant, and where to look it up.
pub(crate) fn sentence(error: &clap::Error, arguments: &[OsString]) -> String {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return "there is no command; try `evenkeel demo`, or see `evenkeel --help` for all commands".to_owned();
    }
    let text = error.render().to_string();
    let mut paragraphs = text.split("\n\n").map(one_line);
    let fault = paragraphs.next().unwrap_or_default();
    let fault = fault.strip_prefix("error: ").unwrap_or(&fault);
    let tips: String = paragraphs
        .filter_map(|paragraph| paragraph.strip_prefix("tip: ").map(|tip| format!("; {}", tip.replace(" tip: ", "; "))))
        .collect();
    format!("{fault}{tips}; see `{} --help`", command_of(arguments))
}

fn one_line(paragraph: &str) -> String {
    paragraph.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The command that these arguments are for, as far as that is clear.
fn command_of(arguments: &[OsString]) -> String {
    let name = arguments.get(1).and_then(|name| name.to_str()).unwrap_or_default();
    let known = crate::command().find_subcommand(name).is_some();
    if known { format!("evenkeel {name}") } else { "evenkeel".to_owned() }
}

/// Reads an address of this machine.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "it must be an IP address and a port, as 127.0.0.1:8080 or [::1]:8080".to_owned())
}

/// Reads a whole number from 1 on.
pub(crate) fn number<const MAX: u32>(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| (1..=MAX).contains(number));
    number.ok_or_else(|| format!("it must be a whole number from 1 to {MAX}"))
}
