//! `cargo xtask browser`: opens the dashboard in a headless Chromium with an optimised build, and keeps pictures of it.
//!
//! The test of the dashboard does all of that ([`crates/cli/tests/all/dashboard.rs`]), and `cargo xtask test` runs it too. This
//! builds it as users get it, which takes minutes, and is strict about the time until the page is usable, which would
//! be a matter of luck on a busy build machine.
//!
//! [`crates/cli/tests/all/dashboard.rs`]: ../../crates/cli/tests/all/dashboard.rs

use anyhow::{Result, ensure};

use crate::run::{CommandLine, Lockfile, target_folder};
use crate::setup::CHROMIUM;

/// From the start of the page's load until it shows the first frame.
const USABLE_MS_MAX: u32 = 300;

pub(crate) fn browser() -> Result<()> {
    let is_there = CHROMIUM.iter().any(|name| CommandLine::new(*name).args(["--version"]).succeeds());
    ensure!(is_there, "there is no Chromium; `cargo xtask setup` installs Debian's");
    CommandLine::cargo(&["test"], Lockfile::from_environment())
        .args(["--release", "--package", "evenkeel-cli", "--test", "all", "--", "--nocapture", "in_a_browser"])
        .env("EVENKEEL_USABLE_MS_MAX", USABLE_MS_MAX.to_string())
        .run()?;
    println!("look at the pictures in {}", target_folder()?.join("browser").display());
    Ok(())
}
