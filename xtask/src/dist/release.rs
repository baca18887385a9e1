//! The name of a release, and its time: the time of the commit, so that the same commit gives the same files.

use anyhow::{Context, Result};
use serde_json::Value;

use crate::run::CommandLine;

/// The address of the sources, where releases are published too.
pub(crate) const REPOSITORY: &str = "https://github.com/evenkeel/evenkeel";
/// The name of the container image, without a version.
pub(crate) const IMAGE: &str = "ghcr.io/evenkeel/evenkeel";
/// The package with the binary.
pub(crate) const PACKAGE: &str = "evenkeel-cli";
pub(crate) const DESCRIPTION: &str =
    "Fair queuing for HTTP services: one noisy client no longer slows down all the others";
pub(crate) const LICENCE: &str = "MIT OR Apache-2.0";

/// A version of Evenkeel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Release {
    pub(crate) version: String,
    /// Seconds since 1970.
    pub(crate) time: u64,
}

// === impl Release ===

impl Release {
    /// The one that is checked out.
    pub(crate) fn current(metadata: &Value) -> Result<Self> {
        let version = package(metadata, PACKAGE)?["version"].as_str().context("the package has no version")?;
        Ok(Self { version: version.to_owned(), time: time()? })
    }

    /// `2026-01-31T12:00:00Z`
    pub(crate) fn timestamp(&self) -> String {
        let (days, seconds) = (self.time / 86_400, self.time % 86_400);
        let (year, month, day) = date(days);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }

    /// The address of a file of the release.
    pub(crate) fn url(&self, file: &str) -> String {
        format!("{REPOSITORY}/releases/download/v{}/{file}", self.version)
    }
}

/// All that cargo knows about the workspace and its dependencies, for the platforms of releases.
pub(crate) fn cargo_metadata(platforms: &[&str]) -> Result<Value> {
    let platforms = platforms.iter().flat_map(|platform| ["--filter-platform", platform]);
    let command = CommandLine::new("cargo").args(["metadata", "--format-version", "1", "--locked"]).args(platforms);
    serde_json::from_slice(&command.read()?).context("cannot read what `cargo metadata` printed")
}

pub(crate) fn package<'a>(metadata: &'a Value, name: &str) -> Result<&'a Value> {
    let packages = metadata["packages"].as_array().context("`cargo metadata` names no packages")?;
    packages.iter().find(|package| package["name"] == name).with_context(|| format!("there is no package {name}"))
}

/// `SOURCE_DATE_EPOCH` if it is set, else the time of the commit, else that of a source archive: 1970.
fn time() -> Result<u64> {
    let set = std::env::var("SOURCE_DATE_EPOCH").ok();
    let commit = || {
        let output = CommandLine::new("git").args(["log", "-1", "--format=%ct"]).read().ok()?;
        String::from_utf8(output).ok()
    };
    match set.or_else(commit) {
        Some(text) => text.trim().parse().with_context(|| format!("{text:?} is not a time in seconds since 1970")),
        None => Ok(0),
    }
}

/// Year, month and day by the days since 1970: years and months are counted off.
fn date(mut days: u64) -> (u64, u64, u64) {
    let is_leap = |year: u64| year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps() {
        for (time, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_798_761_599, "2026-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(Release { version: String::new(), time }.timestamp(), text);
        }
    }
}
