//! `cargo xtask features`: builds each published crate alone and with each of its features, without warnings.
//!
//! A build of the whole workspace turns on every feature that any crate asks for, and so hides what a crate lacks on its own.

use anyhow::{Context, Result};
use serde_json::Value;

use crate::run::{CommandLine, Lockfile};

/// A published crate and its features, other than `default`.
#[derive(Debug, PartialEq, Eq)]
struct Package {
    name: String,
    features: Vec<String>,
    has_default: bool,
}

pub(crate) fn features() -> Result<()> {
    let lockfile = Lockfile::from_environment();
    let metadata = CommandLine::cargo(&["metadata"], lockfile).args(["--no-deps", "--format-version", "1"]).output()?;
    let packages = published(&metadata).context("cannot read what `cargo metadata` prints")?;
    for package in &packages {
        for selection in package.selections() {
            let clippy = CommandLine::cargo(&["clippy"], lockfile).args(["--quiet", "--package", &package.name]);
            let clippy = clippy.args(selection).args(["--", "-D", "warnings"]);
            // `k8s-openapi` wants to know a Kubernetes version, the same as in the step `documentation`.
            clippy.env("K8S_OPENAPI_ENABLED_VERSION", "1.33").run()?;
        }
    }
    Ok(())
}

/// The crates that may be published, from the JSON of `cargo metadata`.
fn published(metadata: &str) -> Option<Vec<Package>> {
    let metadata: Value = serde_json::from_str(metadata).ok()?;
    let packages = metadata["packages"].as_array()?.iter();
    packages
        .filter(|package| package["publish"].is_null())
        .map(|package| {
            let all = package["features"].as_object()?;
            let features = all.keys().filter(|feature| *feature != "default").cloned().collect();
            Some(Package {
                name: package["name"].as_str()?.to_owned(),
                features,
                has_default: all.contains_key("default"),
            })
        })
        .collect()
}

// === impl Package ===

impl Package {
    /// The arguments that choose features: as they come, none, and each of them alone.
    fn selections(&self) -> Vec<Vec<&str>> {
        let mut selections = vec![vec![]];
        if self.has_default {
            selections.push(vec!["--no-default-features"]);
        }
        selections.extend(self.features.iter().map(|feature| vec!["--no-default-features", "--features", feature]));
        selections
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_crates_with_each_of_their_features() {
        let metadata = r#"{"packages": [
            {"name": "layer", "publish": null, "features": {"default": ["a"], "a": [], "b": ["dep:b"]}},
            {"name": "bench", "publish": [], "features": {}},
            {"name": "plain", "publish": null, "features": {}}
        ]}"#;
        let packages = published(metadata).unwrap();
        assert_eq!(packages.iter().map(|package| package.name.as_str()).collect::<Vec<_>>(), ["layer", "plain"]);
        let selections: Vec<String> = packages[0].selections().iter().map(|words| words.join(" ")).collect();
        let alone = ["a", "b"].map(|feature| format!("--no-default-features --features {feature}"));
        assert_eq!(selections, ["", "--no-default-features", &alone[0], &alone[1]]);
        assert_eq!(packages[1].selections(), [[""; 0]]);
    }
}
