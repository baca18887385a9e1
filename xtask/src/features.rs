//! `cargo xtask features`: builds each published crate that has features alone, and with each of them, without warnings.
//!
//! A build of the whole workspace turns on every feature that any crate asks for, and so hides what a crate lacks on its own.
//! The other crates are built alone when the workflow builds the packages: that takes minutes.

use anyhow::Result;

use crate::packages::published;
use crate::run::{CommandLine, Lockfile};

pub(crate) fn features() -> Result<()> {
    for package in published()?.into_iter().filter(|package| !package.features.is_empty()) {
        for selection in selections(&package.features, package.has_default) {
            let clippy = CommandLine::cargo(&["clippy"], Lockfile::from_environment());
            let clippy =
                clippy.args(["--quiet", "--package", &package.name]).args(selection).args(["--", "-D", "warnings"]);
            // `k8s-openapi` wants to know a Kubernetes version, the same as in the step `documentation`.
            clippy.env("K8S_OPENAPI_ENABLED_VERSION", "1.33").run()?;
        }
    }
    Ok(())
}

/// The arguments that choose features: as they come, none, and each of them alone.
fn selections(features: &[String], has_default: bool) -> Vec<Vec<&str>> {
    let mut selections = vec![vec![]];
    if has_default {
        selections.push(vec!["--no-default-features"]);
    }
    selections.extend(features.iter().map(|feature| vec!["--no-default-features", "--features", feature]));
    selections
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_feature_alone() {
        let features = ["a", "b"].map(str::to_owned);
        let lines = |features, has_default| {
            selections(features, has_default).iter().map(|words| words.join(" ")).collect::<Vec<_>>()
        };
        let alone = ["a", "b"].map(|feature| format!("--no-default-features --features {feature}"));
        assert_eq!(lines(&features, true), ["", "--no-default-features", &alone[0], &alone[1]]);
        // Without default features, a build as it comes is one with none.
        assert_eq!(lines(&features, false), ["", &alone[0], &alone[1]]);
        assert_eq!(lines(&[], false), [""]);
    }
}
