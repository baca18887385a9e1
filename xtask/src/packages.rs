//! `cargo xtask packages`: packs the published crates as a registry gets them, and checks how large they are.

use std::fs;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::run::{CommandLine, Lockfile, target_folder};

/// A recording or a picture that slipped in would exceed it.
const BYTES_MAX: u64 = 512 * 1024;

/// A published crate.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    /// Its features, other than `default`.
    pub(crate) features: Vec<String>,
    pub(crate) has_default: bool,
    /// The crates that must be in the registry before it. Some dependencies of tests are left out: those without a version,
    /// which are only in the repository.
    pub(crate) dependencies: Vec<String>,
}

pub(crate) fn packages() -> Result<()> {
    let packages = published()?;
    let names = packages.iter().flat_map(|package| ["--package", &package.name]);
    // Everything has been downloaded for the build. Whether packages build from what they contain is left to the workflow.
    let pack = ["--quiet", "--offline", "--no-verify", "--allow-dirty"];
    CommandLine::cargo(&["package"], Lockfile::from_environment()).args(pack).args(names).run()?;
    for Package { name, version, .. } in &packages {
        let file = target_folder()?.join("package").join(format!("{name}-{version}.crate"));
        let bytes = fs::metadata(&file).with_context(|| format!("cannot find {}", file.display()))?.len();
        println!("{name:<20} {:>4} KiB", bytes.div_ceil(1024));
        ensure!(bytes <= BYTES_MAX, "{} has more than {} KiB", file.display(), BYTES_MAX / 1024);
    }
    Ok(())
}

/// The crates that may be published.
pub(crate) fn published() -> Result<Vec<Package>> {
    let metadata = CommandLine::cargo(&["metadata"], Lockfile::from_environment());
    let metadata = metadata.args(["--no-deps", "--format-version", "1"]).output()?;
    published_in(&metadata).context("cannot read what `cargo metadata` prints")
}

fn published_in(metadata: &str) -> Option<Vec<Package>> {
    let metadata: Value = serde_json::from_str(metadata).ok()?;
    let packages = metadata["packages"].as_array()?.iter();
    packages
        .filter(|package| package["publish"].is_null())
        .map(|package| {
            let features = package["features"].as_object()?;
            let dependencies = package["dependencies"].as_array()?.iter();
            let dependencies = dependencies.filter(|one| one["kind"] != "dev" || one["req"] != "*");
            Some(Package {
                name: package["name"].as_str()?.to_owned(),
                version: package["version"].as_str()?.to_owned(),
                features: features.keys().filter(|feature| *feature != "default").cloned().collect(),
                has_default: features.contains_key("default"),
                dependencies: dependencies.map(|one| one["name"].as_str().map(str::to_owned)).collect::<Option<_>>()?,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn internal_crates_are_left_out() {
        let metadata = r#"{"packages": [
            {
                "name": "layer", "version": "0.1.0", "publish": null,
                "features": {"default": ["a"], "a": [], "b": ["dep:b"]},
                "dependencies": [
                    {"name": "api", "kind": null, "req": "^0.1.0"}, {"name": "bench", "kind": "dev", "req": "*"},
                    {"name": "check", "kind": "dev", "req": "^0.1.0"}
                ]
            },
            {"name": "bench", "version": "0.1.0", "publish": [], "features": {}, "dependencies": []}
        ]}"#;
        let layer = Package {
            name: "layer".to_owned(),
            version: "0.1.0".to_owned(),
            features: vec!["a".to_owned(), "b".to_owned()],
            has_default: true,
            dependencies: vec!["api".to_owned(), "check".to_owned()],
        };
        assert_eq!(published_in(metadata), Some(vec![layer]));
        assert_eq!(published_in("{}"), None);
    }
}
