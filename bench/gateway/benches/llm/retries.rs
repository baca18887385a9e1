//! How often the packages of `OpenAI` and Anthropic try again, under three times the load that the server can take.

use std::io::{self, Error};
use std::path::Path;
use std::process::Command;

use evenkeel_bars::{Bar, Bars};
use serde_json::Value;

use crate::server::{SEATS, Server};

const SCRIPT: &str = include_str!("retries.py");
const SECONDS: u32 = 20;

pub(crate) fn bars(bars: &mut Bars) -> io::Result<()> {
    let python = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("python-client").join("bin/python");
    let has_packages = Command::new(&python).args(["-c", "import openai, anthropic"]).output();
    if !has_packages.is_ok_and(|output| output.status.success()) {
        println!(
            "the retries of SDKs are left out: {} has no packages; `cargo xtask setup` installs them",
            python.display()
        );
        return Ok(());
    }
    for (name, settings, bar) in [
        // What many gateways do: those that do not fit are rejected at once.
        ("without waiting", "levels: {all: {share: 100, reject: true}}\nmatch: [{level: all}]\n", Bar::None),
        ("preset: llm", "", Bar::AtMost(0.1, "")),
    ] {
        let models = Server::models()?;
        let gateway = Server::gateway(models.address(), settings)?;
        let mut command = Command::new(&python);
        command.args(["-c", SCRIPT]).arg(format!("http://{}", gateway.address()));
        let output = command.arg((3 * SEATS).to_string()).arg(SECONDS.to_string()).output()?;
        let figures: Value = serde_json::from_slice(&output.stdout)
            .map_err(|_| Error::other(String::from_utf8_lossy(&output.stderr).into_owned()))?;
        let number = |name: &str| figures[name].as_f64().unwrap_or_default();
        println!("SDKs, {name}: {figures}");
        let retries = number("retries") / number("successes").max(1.0);
        bars.add(format!("llm retries of SDKs for each success under 3 x load, {name}"), retries, "", bar);
    }
    Ok(())
}
