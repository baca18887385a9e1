//! `cargo xtask setup`: installs what the tests need and the machine lacks.
//!
//! A new need is a new row in [`NEEDS`]. Another package client is a new variant of [`Install`] and its arm in
//! [`install_commands`], which sees all that is missing at once: one command serves many packages.

use anyhow::{Context, Result};

use crate::run::CommandLine;

/// Something that the tests cannot do without.
struct Need {
    name: &'static str,
    why: &'static str,
    /// Must be quick: it is asked before every test run.
    present: fn() -> bool,
    install: Install,
}

/// The ordinary package client that brings it, and what the client calls it.
enum Install {
    RustupComponent(&'static str),
}

const NEEDS: &[Need] = &[
    Need {
        name: "rustfmt",
        why: "checks the format",
        present: || CommandLine::new("cargo").args(["fmt", "--version"]).succeeds(),
        install: Install::RustupComponent("rustfmt"),
    },
    Need {
        name: "clippy",
        why: "checks the code for known faults",
        present: || CommandLine::new("cargo").args(["clippy", "--version"]).succeeds(),
        install: Install::RustupComponent("clippy"),
    },
];

pub(crate) fn setup() -> Result<()> {
    println!("{}", provide(NEEDS, CommandLine::run)?);
    Ok(())
}

/// Installs what is missing by means of `run`, and says in one line what was found or done.
fn provide(needs: &[Need], run: impl Fn(&CommandLine) -> Result<()>) -> Result<String> {
    let missing: Vec<&Need> = needs.iter().filter(|need| !(need.present)()).collect();
    if missing.is_empty() {
        let names: Vec<&str> = needs.iter().map(|need| need.name).collect();
        return Ok(format!("set-up: nothing is missing ({})", names.join(", ")));
    }
    let reasons: Vec<String> = missing.iter().map(|need| format!("{} ({})", need.name, need.why)).collect();
    let reasons = reasons.join(", ");
    for command in install_commands(&missing) {
        run(&command).with_context(|| format!("cannot install {reasons}"))?;
    }
    Ok(format!("set-up: installed {reasons}"))
}

fn install_commands(missing: &[&Need]) -> Vec<CommandLine> {
    let components = missing.iter().map(|need| match need.install {
        Install::RustupComponent(component) => component,
    });
    vec![CommandLine::new("rustup").args(["component", "add"]).args(components)]
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn need(name: &'static str, present: fn() -> bool) -> Need {
        Need { name, why: "for a test", present, install: Install::RustupComponent(name) }
    }

    #[test]
    fn nothing_is_run_when_nothing_is_missing() {
        let line = provide(&[need("one", || true), need("two", || true)], |_| unreachable!()).unwrap();
        assert_eq!(line, "set-up: nothing is missing (one, two)");
    }

    #[test]
    fn only_what_is_missing_is_installed_and_by_one_command() {
        let ran = RefCell::new(Vec::new());
        let needs = [need("one", || false), need("two", || true), need("three", || false)];
        let line = provide(&needs, |command| {
            ran.borrow_mut().push(command.to_string());
            Ok(())
        });
        assert_eq!(line.unwrap(), "set-up: installed one (for a test), three (for a test)");
        assert_eq!(ran.into_inner(), ["rustup component add one three"]);
    }

    #[test]
    fn failure_says_what_is_missing_and_why() {
        let error = provide(&[need("one", || false)], |_| anyhow::bail!("no network")).unwrap_err();
        assert_eq!(format!("{error:#}"), "cannot install one (for a test): no network");
    }
}
