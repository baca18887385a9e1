//! The software bill of materials: every crate in the binary, as JSON in the format `CycloneDX`.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::release::{PACKAGE, Release};
use crate::run::CommandLine;

/// Crates by name and version: `serde 1.0.0`.
type Crates = BTreeSet<String>;

/// The crates that are linked into the binary or run when it is built, as cargo resolves them for this package alone.
pub(crate) fn crates_of_binary(platform: &str) -> Result<Crates> {
    crates(platform, "normal,build")
}

/// Only what is linked into the binary.
pub(crate) fn crates_linked(platform: &str) -> Result<Crates> {
    crates(platform, "normal,no-proc-macro")
}

fn crates(platform: &str, edges: &str) -> Result<Crates> {
    let tree = CommandLine::new("cargo").args(["tree", "--locked", "--package", PACKAGE, "--target", platform]);
    let output = tree.args(["--edges", edges, "--prefix", "none", "--format", "{p}"]).read()?;
    let lines = String::from_utf8(output).context("`cargo tree` printed something that is not text")?;
    let crates: Crates = lines.lines().filter_map(name_and_version).collect();
    ensure!(crates.len() > 1, "`cargo tree` names no dependencies");
    Ok(crates)
}

/// Of a line such as `serde v1.0.0 (proc-macro) (*)`.
fn name_and_version(line: &str) -> Option<String> {
    let mut words = line.split(' ');
    let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
    Some(format!("{name} {version}"))
}

/// The document. `metadata` is what `cargo metadata` says, `lockfile` is the text of `Cargo.lock`.
pub(crate) fn document(metadata: &Value, lockfile: &str, crates: &Crates, release: &Release) -> Result<Value> {
    let packages = metadata["packages"].as_array().context("`cargo metadata` names no packages")?;
    let names: BTreeMap<&str, String> =
        packages.iter().filter_map(|package| Some((id(package)?, key(package)))).collect();
    let checksums = checksums(lockfile);
    let mut components: Vec<Value> = packages
        .iter()
        .filter(|package| package["name"] != PACKAGE && crates.contains(&key(package)))
        .map(|package| component(package, &checksums))
        .collect();
    components.sort_by_key(|component| component["bom-ref"].to_string());
    let own = format!("{PACKAGE} {}", release.version);
    ensure!(crates.contains(&own), "{own} is not among the crates of the binary");
    // The crate itself has been left out above.
    ensure!(components.len() + 1 == crates.len(), "`cargo metadata` does not name all crates of `cargo tree`");

    let nodes = metadata["resolve"]["nodes"].as_array().context("`cargo metadata` has resolved nothing")?;
    let mut dependencies: Vec<Value> = nodes
        .iter()
        .filter_map(|node| {
            let from = names.get(node["id"].as_str()?).filter(|name| crates.contains(*name))?;
            let to = node["deps"].as_array()?.iter().filter(|dependency| is_of_binary(dependency));
            let to = to.filter_map(|dependency| names.get(dependency["pkg"].as_str()?));
            let to: BTreeSet<String> = to.filter(|name| crates.contains(*name)).map(|name| purl(name)).collect();
            Some(json!({"ref": purl(from), "dependsOn": to}))
        })
        .collect();
    dependencies.sort_by_key(|dependency| dependency["ref"].to_string());
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": release.timestamp(),
            "component": {
                "type": "application",
                "bom-ref": purl(&own),
                "name": "evenkeel",
                "version": release.version,
                "purl": purl(&own),
                "licenses": [{"expression": super::release::LICENCE}],
            },
        },
        "components": components,
        "dependencies": dependencies,
    }))
}

fn component(package: &Value, checksums: &BTreeMap<String, &str>) -> Value {
    let key = key(package);
    let mut component = json!({
        "type": "library",
        "bom-ref": purl(&key),
        "name": package["name"],
        "version": package["version"],
        "purl": purl(&key),
    });
    if let Some(licence) = package["license"].as_str() {
        // Some crates have the old form, with a slash.
        component["licenses"] = json!([{"expression": licence.replace('/', " OR ")}]);
    }
    if let Some(checksum) = checksums.get(&key) {
        component["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
    }
    if let Some(repository) = package["repository"].as_str() {
        component["externalReferences"] = json!([{"type": "vcs", "url": repository}]);
    }
    component
}

/// Whether it is needed for more than tests.
fn is_of_binary(dependency: &Value) -> bool {
    dependency["dep_kinds"].as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"] != "dev"))
}

fn id(package: &Value) -> Option<&str> {
    package["id"].as_str()
}

/// Name and version of a package, as in [`Crates`].
pub(crate) fn key(package: &Value) -> String {
    [&package["name"], &package["version"]].map(|part| part.as_str().unwrap_or_default()).join(" ")
}

/// The name of a crate in all formats of this kind: `pkg:cargo/serde@1.0.0`.
fn purl(key: &str) -> String {
    // Versions may have a part after a plus sign, which has a meaning in a URL.
    format!("pkg:cargo/{}", key.replace(' ', "@").replace('+', "%2B"))
}

/// The checksums of packed crates, by name and version.
fn checksums(lockfile: &str) -> BTreeMap<String, &str> {
    let field = |block: &'_ str, name: &str| -> Option<(usize, usize)> {
        let start = block.find(&format!("\n{name} = \""))? + name.len() + 5;
        Some((start, start + block[start..].find('"')?))
    };
    let entry = |block| -> Option<(String, &str)> {
        let of = |name| field(block, name).map(|(start, end)| &block[start..end]);
        Some((format!("{} {}", of("name")?, of("version")?), of("checksum")?))
    };
    lockfile.split("[[package]]").filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::architecture::Architecture;
    use crate::dist::release::cargo_metadata;
    use crate::run::root;

    #[test]
    fn every_crate_of_the_binary_and_no_other() {
        let platform = Architecture::Amd64.triple();
        let metadata = cargo_metadata(&[platform]).unwrap();
        let lockfile = std::fs::read_to_string(root().unwrap().join("Cargo.lock")).unwrap();
        let release = Release { time: 0, ..Release::current(&metadata).unwrap() };
        let document = document(&metadata, &lockfile, &crates_of_binary(platform).unwrap(), &release).unwrap();

        let components = document["components"].as_array().unwrap();
        let named = |name: &str| components.iter().find(|component| component["name"] == name);
        assert!(named("insta").is_none() && named("xtask").is_none(), "they are for tests");
        let tokio = named("tokio").unwrap();
        assert_eq!(tokio["licenses"][0]["expression"], "MIT");
        assert_eq!(tokio["hashes"][0]["content"].as_str().unwrap().len(), 64);
        assert_eq!(tokio["bom-ref"], format!("pkg:cargo/tokio@{}", tokio["version"].as_str().unwrap()));
        assert!(components.iter().all(|component| component["licenses"].is_array()), "a crate without a licence");

        let references: BTreeSet<&str> =
            components.iter().map(|component| component["bom-ref"].as_str().unwrap()).collect();
        assert_eq!(references.len(), components.len());
        let own = document["metadata"]["component"]["bom-ref"].as_str().unwrap();
        let dependencies = document["dependencies"].as_array().unwrap();
        assert_eq!(dependencies.len(), components.len() + 1);
        for dependency in dependencies.iter().flat_map(|dependency| dependency["dependsOn"].as_array().unwrap()) {
            assert!(references.contains(dependency.as_str().unwrap()), "{dependency}");
        }
        assert!(dependencies.iter().any(|dependency| dependency["ref"] == own));
    }

    #[test]
    fn lines_of_the_tree() {
        assert_eq!(name_and_version("serde v1.0.0 (proc-macro) (*)").unwrap(), "serde 1.0.0");
        assert_eq!(name_and_version(""), None);
    }
}
