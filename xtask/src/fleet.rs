//! `cargo xtask fleet`: the fleet under faults, simulated and with real gateways and a real etcd, for longer than the tests have time for.
//!
//! Each measure is printed with its figure, its bar and the verdict as it comes, and all of them in one table at the end. The rows are in a
//! file too, with tabs between the columns.

use std::fs;

use anyhow::{Context, Result, bail};

use crate::run::{CommandLine, Lockfile, target_folder};

/// How many seeds are tried if nobody says otherwise.
pub(crate) const SEEDS: u32 = 200;

/// The number of events of each seed.
const EVENTS: u32 = 1_000_000;

/// How long the faults last with real gateways, and how long etcd is away.
const LIVE_SECONDS: u32 = 600;
const AWAY_SECONDS: u32 = 60;

/// Where the tests write their figures.
const FIGURES: &str = "FLEET_FIGURES";

const HEADINGS: [&str; 4] = ["measure", "figure", "bar", "verdict"];

pub(crate) fn fleet(seeds: u32) -> Result<()> {
    let lockfile = Lockfile::from_environment();
    let file = target_folder()?.join("fleet-figures.tsv");
    fs::write(&file, "").with_context(|| format!("cannot write {}", file.display()))?;
    let path = file.to_string_lossy();
    // Whatever fails, the figures of the rest are worth knowing.
    let ran = [simulation(seeds, lockfile), gateways(lockfile)].map(|line| line.env(FIGURES, &*path).run());
    let figures = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let rows = rows(&figures);
    println!("\n{}\nThe same with tabs is in {path}.", table(&rows));
    ran.into_iter().collect::<Result<()>>()?;
    match rows.iter().filter(|[.., verdict]| *verdict == "missed").count() {
        0 => Ok(()),
        missed => bail!("{missed} of the bars above are missed"),
    }
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

/// The rows that tests have written. What is no row is left out.
fn rows(figures: &str) -> Vec<[&str; 4]> {
    figures.lines().filter_map(|line| line.split('\t').collect::<Vec<_>>().try_into().ok()).collect()
}

/// As Markdown, for docs/fleet.md.
fn table(rows: &[[&str; 4]]) -> String {
    let line = |cells: &[&str; 4]| format!("| {} |\n", cells.join(" | "));
    let mut table = line(&HEADINGS) + &line(&["---"; 4]);
    for row in rows {
        table += &line(row);
    }
    table
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

    #[test]
    fn the_figures_of_all_tests_are_one_table() {
        let figures =
            "in flight\tat most 60\t60\tmet\nhalf a row\t7\nJain index\t0.980\t0.990\tmissed\napart\t61\t\t\n";
        let expected = "| measure | figure | bar | verdict |\n| --- | --- | --- | --- |\n| in flight | at most 60 | 60 | met |\n\
                        | Jain index | 0.980 | 0.990 | missed |\n| apart | 61 |  |  |\n";
        assert_eq!(table(&rows(figures)), expected);
    }
}
