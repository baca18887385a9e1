//! Every crate says with which Rust it builds; a published crate also has all that a registry shows, and its licences.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::offence::Offence;

/// The fields that a published crate's manifest must have, by the names of `cargo metadata`.
const SHOWN: [&str; 8] =
    ["categories", "description", "documentation", "homepage", "keywords", "license", "readme", "repository"];

/// The files that must be beside a published crate's manifest. The licences are links to those at the root.
const FILES: [&str; 3] = ["LICENSE-APACHE", "LICENSE-MIT", "README.md"];

/// `metadata` is what `cargo metadata` prints, `paths` are all files of the repository.
pub(crate) fn check(metadata: &Value, paths: &BTreeSet<&str>) -> Vec<Offence> {
    let members: Vec<&Value> = metadata["workspace_members"].as_array().into_iter().flatten().collect();
    let root = metadata["workspace_root"].as_str().unwrap_or_default();
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let own = packages.filter(|package| members.contains(&&package["id"]));
    own.flat_map(|package| {
        let manifest = package["manifest_path"].as_str().unwrap_or_default();
        let manifest = manifest.strip_prefix(root).unwrap_or(manifest).trim_start_matches('/').to_owned();
        faults(package, &manifest, paths).into_iter().map(move |fault| Offence::new(&manifest, 1, fault))
    })
    .collect()
}

fn faults(package: &Value, manifest: &str, paths: &BTreeSet<&str>) -> Vec<String> {
    let mut faults = Vec::new();
    if package["rust_version"].is_null() {
        faults.push("no `rust-version.workspace = true`".to_owned());
    }
    let is_published = package["publish"].is_null();
    let is_crate = manifest.starts_with("crates/");
    if is_published != is_crate {
        faults.push("what is in `crates` is published, and everything else has `publish = false`".to_owned());
    }
    if is_published {
        let is_empty = |field: &&&str| {
            let value = &package[**field];
            value.is_null() || value.as_array().is_some_and(Vec::is_empty)
        };
        faults.extend(SHOWN.iter().filter(is_empty).map(|field| format!("a published crate needs `{field}`")));
        let folder = manifest.trim_end_matches("Cargo.toml");
        let missing = FILES.iter().filter(|file| !paths.contains(format!("{folder}{file}").as_str()));
        faults.extend(missing.map(|file| format!("a published crate needs the file `{file}`")));
    }
    faults
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::offence::assert_offences;

    fn metadata(manifest: &str, package: &Value) -> Value {
        let mut package = package.clone();
        package["id"] = json!("own");
        package["manifest_path"] = json!(format!("/x/{manifest}"));
        json!({"workspace_root": "/x", "workspace_members": ["own"], "packages": [package, {"id": "other"}]})
    }

    #[test]
    fn published_crates() {
        let complete = json!({
            "rust_version": "1.88", "publish": null, "categories": ["a"], "description": "b", "documentation": "c",
            "homepage": "d", "keywords": ["e"], "license": "f", "readme": "g", "repository": "h",
        });
        let paths = ["crates/a/LICENSE-APACHE", "crates/a/LICENSE-MIT", "crates/a/README.md"];
        assert_offences(&check(&metadata("crates/a/Cargo.toml", &complete), &BTreeSet::from(paths)), &[]);

        let mut faulty = complete.clone();
        faulty["keywords"] = json!([]);
        faulty["homepage"] = Value::Null;
        assert_offences(
            &check(&metadata("crates/a/Cargo.toml", &faulty), &BTreeSet::from([paths[0], paths[2]])),
            &[
                "crates/a/Cargo.toml:1: a published crate needs `homepage`",
                "crates/a/Cargo.toml:1: a published crate needs `keywords`",
                "crates/a/Cargo.toml:1: a published crate needs the file `LICENSE-MIT`",
            ],
        );
    }

    #[test]
    fn internal_crates() {
        let internal = json!({"rust_version": "1.88", "publish": []});
        assert_offences(&check(&metadata("bench/a/Cargo.toml", &internal), &BTreeSet::new()), &[]);
        let where_ = "what is in `crates` is published, and everything else has `publish = false`";
        assert_offences(
            &check(&metadata("crates/a/Cargo.toml", &json!({"publish": []})), &BTreeSet::new()),
            &["crates/a/Cargo.toml:1: no `rust-version.workspace = true`", &format!("crates/a/Cargo.toml:1: {where_}")],
        );
    }
}
