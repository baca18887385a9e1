//! `cargo xtask test`: every check that must pass before a commit, cheapest first, stopping at the first failure.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::comparisons::Comparisons;
use crate::run::{CommandLine, Lockfile};
use crate::setup;

/// The step whose tests compare with recordings.
const TESTS: &str = "tests";

/// One check, and the command that does it.
struct TestStep {
    name: &'static str,
    command: CommandLine,
}

/// The command that runs the tests, other than those in the documentation.
#[derive(Clone, Copy)]
enum Runner {
    Nextest,
    Cargo,
}

/// The time that each finished step took.
struct Timings(Vec<(&'static str, Duration)>);

pub(crate) fn test(filter: Option<&str>) -> Result<()> {
    setup::setup()?;
    let mut timings = Timings(Vec::new());
    let comparisons = Comparisons::start()?;
    for TestStep { name, mut command } in steps(filter, Runner::installed(), Lockfile::from_environment()) {
        if name == TESTS {
            command = comparisons.noted_by(command);
        }
        println!("\n=== {name} ===");
        let start = Instant::now();
        let outcome = command.run();
        let elapsed = start.elapsed();
        println!("=== {name}: {:.1} s ===", elapsed.as_secs_f64());
        if outcome.is_err() {
            print!("\n{}", timings.summary());
        }
        outcome.with_context(|| format!("step `{name}` failed; to run it again: {command}\n  cause"))?;
        timings.0.push((name, elapsed));
    }
    let compared = comparisons.summary()?;
    if filter.is_none() && compared.is_none() {
        bail!("all steps passed, but no test compared anything with a real Kubernetes");
    }
    print!("\n{}{}all steps passed\n", compared.unwrap_or_default(), timings.summary());
    Ok(())
}

fn steps(filter: Option<&str>, runner: Runner, lockfile: Lockfile) -> Vec<TestStep> {
    let cargo = |subcommand: &[&str]| CommandLine::cargo(subcommand, lockfile).args(["--workspace", "--all-features"]);
    let step = |name, command| TestStep { name, command };
    vec![
        // `cargo fmt` resolves nothing, and so has no `--locked`.
        step("format", CommandLine::new("cargo").args(["fmt", "--all", "--check"])),
        step("clippy", cargo(&["clippy"]).args(["--all-targets", "--", "-D", "warnings"])),
        step(TESTS, runner.command(cargo, filter)),
        step("documentation tests", cargo(&["test"]).args(["--doc"]).args(filter)),
        step(
            "documentation",
            cargo(&["doc"])
                .args(["--no-deps"])
                .env("RUSTDOCFLAGS", "-D warnings")
                // `k8s-openapi` wants to know a Kubernetes version. The oldest one is built here, the tests have the latest.
                .env("K8S_OPENAPI_ENABLED_VERSION", "1.33"),
        ),
        step("features", xtask("features", lockfile)),
        step("packages", xtask("packages", lockfile)),
        step("site", xtask("site", lockfile)),
        step("workflows", xtask("workflows", lockfile)),
    ]
}

/// Another of our own commands, as a command line that can be pasted.
fn xtask(command: &str, lockfile: Lockfile) -> CommandLine {
    CommandLine::cargo(&["run", "--quiet"], lockfile).args(["--package", "xtask", "--", command])
}

// === impl Runner ===

impl Runner {
    fn installed() -> Self {
        if CommandLine::new("cargo").args(["nextest", "--version"]).succeeds() { Self::Nextest } else { Self::Cargo }
    }

    fn command(self, cargo: impl Fn(&[&str]) -> CommandLine, filter: Option<&str>) -> CommandLine {
        let command = match (self, filter) {
            (Self::Nextest, None) => cargo(&["nextest", "run"]),
            // The filter may be meant for a documentation test, which nextest does not see.
            (Self::Nextest, Some(_)) => cargo(&["nextest", "run"]).args(["--no-tests=warn"]),
            (Self::Cargo, _) => cargo(&["test"]).args(["--lib", "--bins", "--tests", "--examples"]),
        };
        command.args(filter)
    }
}

// === impl Timings ===

impl Timings {
    fn summary(&self) -> String {
        let mut text = "=== summary ===\n".to_owned();
        for (name, elapsed) in &self.0 {
            let _ = writeln!(text, "passed {name:<20} {:>7.1} s", elapsed.as_secs_f64());
        }
        let total: Duration = self.0.iter().map(|(_, elapsed)| *elapsed).sum();
        let _ = writeln!(text, "       {:<20} {:>7.1} s", "total", total.as_secs_f64());
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(filter: Option<&str>, runner: Runner, lockfile: Lockfile) -> Vec<String> {
        steps(filter, runner, lockfile).iter().map(|step| step.command.to_string()).collect()
    }

    #[test]
    fn everything_with_nextest() {
        assert_eq!(
            commands(None, Runner::Nextest, Lockfile::Free),
            [
                "cargo fmt --all --check",
                "cargo clippy --workspace --all-features --all-targets -- -D warnings",
                "cargo nextest run --workspace --all-features",
                "cargo test --workspace --all-features --doc",
                "RUSTDOCFLAGS='-D warnings' K8S_OPENAPI_ENABLED_VERSION=1.33 cargo doc --workspace --all-features --no-deps",
                "cargo run --quiet --package xtask -- features",
                "cargo run --quiet --package xtask -- packages",
                "cargo run --quiet --package xtask -- site",
                "cargo run --quiet --package xtask -- workflows",
            ]
        );
    }

    #[test]
    fn filter_reaches_both_kinds_of_tests() {
        let with_nextest = commands(Some("seat"), Runner::Nextest, Lockfile::Free);
        assert_eq!(with_nextest[2], "cargo nextest run --workspace --all-features --no-tests=warn seat");
        assert_eq!(with_nextest[3], "cargo test --workspace --all-features --doc seat");
        let with_cargo = commands(Some("seat"), Runner::Cargo, Lockfile::Free);
        assert_eq!(with_cargo[2], "cargo test --workspace --all-features --lib --bins --tests --examples seat");
    }

    #[test]
    fn fixed_lockfile_reaches_all_that_resolve() {
        let commands = commands(None, Runner::Cargo, Lockfile::Fixed);
        assert!(commands[1..].iter().all(|command| command.contains(" --locked ")), "{commands:#?}");
    }

    #[test]
    fn summary_has_each_step_and_the_total() {
        let timings = Timings(vec![
            ("format", Duration::from_millis(400)),
            ("documentation tests", Duration::from_millis(12_100)),
        ]);
        assert_eq!(
            timings.summary().lines().collect::<Vec<_>>(),
            [
                "=== summary ===",
                "passed format                   0.4 s",
                "passed documentation tests     12.1 s",
                "       total                   12.5 s",
            ]
        );
    }
}
