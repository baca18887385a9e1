//! `cargo xtask fleet`: the fleet under faults, simulated and with real gateways and a real etcd, for longer than the tests have time for.
//!
//! Each measure is printed with its figure, its bar and the verdict.

use anyhow::Result;

use crate::run::{CommandLine, Lockfile};

/// How many seeds are tried if nobody says otherwise.
pub(crate) const SEEDS: u32 = 200;

/// The number of events of each seed.
const EVENTS: u32 = 1_000_000;

/// How long the faults last with real gateways, and how long etcd is away.
const LIVE_SECONDS: u32 = 600;
const AWAY_SECONDS: u32 = 60;

pub(crate) fn fleet(seeds: u32) -> Result<()> {
    let lockfile = Lockfile::from_environment();
    simulation(seeds, lockfile).run()?;
    gateways(lockfile).run()
}

/// The state machine in a simulation, and with a real etcd for a short while.
fn simulation(seeds: u32, lockfile: Lockfile) -> CommandLine {
    CommandLine::cargo(&["test"], lockfile)
        .args([
            "--release",
            "--package",
            "evenkeel-fleet",
            "--all-features",
            "--tests",
            "--",
            "--nocapture",
            "--test-threads=1",
        ])
        .env("FLEET_SEEDS", seeds.to_string())
        .env("FLEET_EVENTS", EVENTS.to_string())
}

/// Three gateways, three members of etcd. Not optimised: what is measured is waited for, and not computed.
fn gateways(lockfile: Lockfile) -> CommandLine {
    CommandLine::cargo(&["test"], lockfile)
        .args(["--package", "evenkeel-cli", "--all-features", "--test", "all"])
        .args(["--", "fleet::", "--nocapture", "--test-threads=1"])
        .env("FLEET_LIVE_SECONDS", LIVE_SECONDS.to_string())
        .env("FLEET_AWAY_SECONDS", AWAY_SECONDS.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_computed_is_optimised_and_what_is_waited_for_takes_ten_minutes() {
        let line = simulation(3, Lockfile::Fixed).to_string();
        assert!(line.starts_with("FLEET_SEEDS=3 FLEET_EVENTS=1000000 cargo test --locked --release"), "{line}");
        let line = gateways(Lockfile::Fixed).to_string();
        assert!(line.starts_with("FLEET_LIVE_SECONDS=600 FLEET_AWAY_SECONDS=60 cargo test --locked"), "{line}");
    }
}
