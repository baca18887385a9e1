//! Errors of a command line, in one sentence, and parsers of values with errors of their own.

use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use evenkeel_engine::auto_limit::Concurrency;
use evenkeel_gateway::config::{ListenAddress, hide_credentials};

/// The name of the binary as a plugin of kubectl, which runs it for `kubectl evenkeel`.
const KUBECTL_PLUGIN: &str = "kubectl-evenkeel";

/// The command that the user typed to run the binary, given its arguments.
pub(crate) fn bin_name(arguments: &[OsString]) -> &'static str {
    if is_plugin(arguments.first()) { "kubectl evenkeel" } else { "evenkeel" }
}

/// Whether kubectl runs this process. Users of `kubectl` expect the server of its current context.
pub(crate) fn is_kubectl_plugin() -> bool {
    is_plugin(std::env::args_os().next().as_ref())
}

fn is_plugin(program: Option<&OsString>) -> bool {
    program.map(Path::new).and_then(Path::file_stem).is_some_and(|file| file == KUBECTL_PLUGIN)
}

/// The error about these arguments, with what may have been meant, and where to look it up.
pub(crate) fn sentence(error: &clap::Error, arguments: &[OsString]) -> String {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let evenkeel = bin_name(arguments);
        return format!("there is no command; try `{evenkeel} demo`, or see `{evenkeel} --help` for all commands");
    }
    let mut text = error.render().to_string();
    if let Some(ContextValue::String(value)) = error.get(ContextKind::InvalidValue) {
        // The value may be a URL with a password.
        text = text.replace(value, &hide_credentials(value));
    }
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
    let evenkeel = bin_name(arguments);
    if known { format!("{evenkeel} {name}") } else { evenkeel.to_owned() }
}

/// The expected form of an address of this machine.
const ADDRESS: &str = "it must be an address or a name and a port, as 127.0.0.1:8080, [::1]:8080 or localhost:8080";

/// Reads an address of this machine, or a name that is looked up when it is listened on.
pub(crate) fn listen_address(text: &str) -> Result<ListenAddress, String> {
    text.parse().map_err(|_| ADDRESS.to_owned())
}

/// Reads an address of this machine, or a name that is looked up now.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    let found = listen_address(text)?.resolve().map_err(|error| format!("the name has no address: {error}"))?;
    found.first().copied().ok_or_else(|| ADDRESS.to_owned())
}

/// Reads a name or an address that a certificate can be for.
pub(crate) fn server_name(text: &str) -> Result<String, String> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok(address.to_string());
    }
    let is_label = |label: &str| {
        let is_plain = label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        (1..=63).contains(&label.len()) && is_plain && !label.starts_with('-') && !label.ends_with('-')
    };
    let name = text.strip_prefix("*.").unwrap_or(text);
    if text.len() <= 253 && name.split('.').all(is_label) {
        return Ok(text.to_owned());
    }
    Err("it must be a DNS name or an IP address without a port, as gateway.example or 192.0.2.7".to_owned())
}

/// Reads a whole number from 1 on.
pub(crate) fn number<const MAX: u32>(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| (1..=MAX).contains(number));
    number.ok_or_else(|| format!("it must be a whole number from 1 to {MAX}"))
}

/// Reads how many seats a server has: a number, `auto` or `auto:MIN..MAX`.
pub(crate) fn concurrency(text: &str) -> Result<Concurrency, String> {
    const MAX: u32 = 1_000_000;
    let concurrency: Concurrency = text.parse().map_err(|error| format!("it {error}"))?;
    if concurrency.most() > MAX { Err(format!("it must be at most {MAX}")) } else { Ok(concurrency) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seats_are_a_number_or_auto() {
        let read = |text: &str| concurrency(text).map(|concurrency| concurrency.to_string());
        for text in ["1", "600", "auto", "auto:10..400"] {
            assert_eq!(read(text).as_deref(), Ok(text));
        }
        let form = "it must be a number of requests such as 40, `auto`, or `auto:10..400`";
        for text in ["", "many", "-1", "auto:", "auto:3", "auto 3..4", "auto:a..b"] {
            assert_eq!(read(text).unwrap_err(), form, "{text:?}");
        }
        assert_eq!(read("0").unwrap_err(), "it must be at least 1");
        assert_eq!(read("auto:1..2000000").unwrap_err(), "it must be at most 1000000");
    }

    #[test]
    fn certificates_are_for_names_and_addresses() {
        for name in ["gateway", "gateway.example", "*.example", "192.0.2.7", "2001:db8::1", "a-1.b2"] {
            assert_eq!(server_name(name).as_deref(), Ok(name));
        }
        for wrong in ["", "gateway.example:8443", "https://gateway", "a..b", "-a", "a-", "a*.b", "*", "gäteway", "a b"]
        {
            assert!(server_name(wrong).is_err(), "{wrong:?}");
        }
    }
}
