//! `cargo xtask publish`: publishes the crates one by one, each after those that it depends on.
//!
//! The registry accepts five new crates at once, and then one every ten minutes; `cargo publish --workspace` does not wait for that.
//! After a failure, run the command again: it skips what is published.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use anyhow::{Result, bail, ensure};

use crate::packages::{self, Package};
use crate::run::{CommandLine, Lockfile};

/// How an attempt to publish a crate ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attempt {
    Published,
    /// This version was published before.
    Exists,
    /// The registry wants us to wait.
    TooManyRequests,
    Failed,
}

/// The time until the registry accepts another new crate, and some seconds more.
const PAUSE: Duration = Duration::from_secs(10 * 60 + 10);
/// One pause is enough for a new crate. After this many, something else is wrong.
const ATTEMPTS_MAX: usize = 10;

pub(crate) fn publish() -> Result<()> {
    publish_each(&in_order(packages::published()?)?, attempt, thread::sleep)
}

/// The names of the crates, each after those that it depends on.
fn in_order(mut packages: Vec<Package>) -> Result<Vec<String>> {
    let mut waiting: BTreeSet<String> = packages.iter().map(|package| package.name.clone()).collect();
    let mut names = Vec::new();
    while !packages.is_empty() {
        let next = packages.iter().position(|package| package.dependencies.iter().all(|name| !waiting.contains(name)));
        let Some(next) = next else { bail!("these crates depend on each other: {waiting:?}") };
        let name = packages.remove(next).name;
        waiting.remove(&name);
        names.push(name);
    }
    Ok(names)
}

fn publish_each(
    names: &[String],
    mut attempt: impl FnMut(&str) -> Result<Attempt>,
    mut wait: impl FnMut(Duration),
) -> Result<()> {
    for name in names {
        let mut attempts = 1;
        loop {
            match attempt(name)? {
                Attempt::Published => break,
                Attempt::Exists => {
                    println!("skipped {name}: this version is published");
                    break;
                }
                Attempt::TooManyRequests => {
                    ensure!(
                        attempts < ATTEMPTS_MAX,
                        "the registry has refused {name} {attempts} times; try again tomorrow"
                    );
                    println!("the registry accepts no more crates for now; trying {name} again in {PAUSE:?}");
                    attempts += 1;
                    wait(PAUSE);
                }
                Attempt::Failed => {
                    bail!("{name} was not published; run `cargo xtask publish` again when that is fixed")
                }
            }
        }
    }
    Ok(())
}

fn attempt(name: &str) -> Result<Attempt> {
    let (is_success, errors) =
        CommandLine::cargo(&["publish"], Lockfile::Fixed).args(["--package", name]).run_and_read_errors()?;
    Ok(if is_success { Attempt::Published } else { failure(&errors) })
}

/// The cause of cargo's failure has no exit code of its own.
fn failure(errors: &str) -> Attempt {
    // The first is cargo's own, before it uploads anything, and the second that of the registry.
    if errors.contains(" already exists on ") || errors.contains(" is already uploaded") {
        Attempt::Exists
    } else if errors.contains("status 429") {
        Attempt::TooManyRequests
    } else {
        Attempt::Failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, dependencies: &[&str]) -> Package {
        Package {
            name: name.to_owned(),
            version: "0.1.0".to_owned(),
            features: Vec::new(),
            has_default: false,
            dependencies: dependencies.iter().map(|&name| name.to_owned()).collect(),
        }
    }

    #[test]
    fn a_crate_comes_after_those_that_it_depends_on() {
        let packages =
            vec![package("cli", &["api", "layer", "serde"]), package("layer", &["api"]), package("api", &[])];
        assert_eq!(in_order(packages).unwrap(), ["api", "layer", "cli"]);
        let circle = vec![package("a", &["b"]), package("b", &["a"])];
        assert_eq!(in_order(circle).unwrap_err().to_string(), "these crates depend on each other: {\"a\", \"b\"}");
    }

    #[test]
    fn all_crates_of_the_workspace_have_a_place() {
        let names = in_order(packages::published().unwrap()).unwrap();
        assert_eq!(names.len(), packages::published().unwrap().len());
        let place = |name: &str| names.iter().position(|other| other == name).unwrap();
        assert!(place("evenkeel-api") < place("evenkeel-engine"));
        assert!(place("evenkeel-engine") < place("evenkeel"));
        assert!(place("evenkeel-gateway") < place("evenkeel-cli"));
    }

    #[test]
    fn what_cargo_says() {
        let refused = "error: failed to publish evenkeel v0.1.0 to registry\n\nCaused by:\n  the remote server \
                       responded with an error (status 429 Too Many Requests): You have published too many new crates in a \
                       short period of time. Please try again after Thu, 12 Dec 2024 14:24:53 GMT";
        assert_eq!(failure(refused), Attempt::TooManyRequests);
        let exists = "error: crate evenkeel@0.1.0 already exists on the index";
        assert_eq!(failure(exists), Attempt::Exists);
        let uploaded = "the remote server responded with an error: crate version `0.1.0` is already uploaded";
        assert_eq!(failure(uploaded), Attempt::Exists);
        assert_eq!(failure("error: no token found, please run `cargo login`"), Attempt::Failed);
    }

    #[test]
    fn waits_where_the_registry_says_so_and_skips_what_is_there() {
        let names = ["a", "b", "c"].map(str::to_owned);
        let mut answers = [
            Attempt::Exists,
            Attempt::TooManyRequests,
            Attempt::TooManyRequests,
            Attempt::Published,
            Attempt::Published,
        ]
        .into_iter();
        let (mut tried, mut pauses) = (String::new(), 0);
        let attempt = |name: &str| {
            tried += name;
            Ok(answers.next().unwrap())
        };
        publish_each(&names, attempt, |_| pauses += 1).unwrap();
        assert_eq!((tried.as_str(), pauses), ("abbbc", 2));
    }

    #[test]
    fn stops_at_a_failure_and_after_many_refusals() {
        let names = ["a", "b"].map(str::to_owned);
        let mut tried = String::new();
        let failing = |name: &str| {
            tried += name;
            Ok(Attempt::Failed)
        };
        assert!(publish_each(&names, failing, |_| ()).is_err());
        assert_eq!(tried, "a");
        let mut pauses = 0;
        let error = publish_each(&names, |_| Ok(Attempt::TooManyRequests), |_| pauses += 1).unwrap_err();
        assert_eq!(error.to_string(), "the registry has refused a 10 times; try again tomorrow");
        assert_eq!(pauses, 9);
    }
}
