//! The workflow of releases: what it makes, and what it requires before it publishes anything.

use std::fs;

use serde_json::Value;

use super::architecture::Architecture;
use crate::run::root;

#[test]
fn the_workflow_makes_the_release_with_fixed_versions_and_few_permissions() {
    let workflow = fs::read_to_string(root().unwrap().join(".github/workflows/release.yml")).unwrap();
    let has_version = |action: &str| {
        let version = action.rsplit_once("@v").map_or("", |(_, version)| version);
        version.starts_with(|c: char| c.is_ascii_digit())
    };
    let actions = workflow.lines().filter_map(|line| line.split_once("uses: ")).map(|(_, name)| name);
    // A workflow of this repository has the version of the commit.
    let actions: Vec<&str> = actions.filter(|action| !action.starts_with("./")).collect();
    assert!(actions.len() > 5 && actions.iter().all(|action| has_version(action)), "{actions:?}");
    assert!(workflow.contains("\npermissions:\n  contents: read\n\n"), "the default is to read the sources only");
    for part in [
        "cargo xtask dist",
        "cargo-generate-rpm@",
        "sha256sum --check",
        "attest-build-provenance",
        "cargo xtask publish",
    ] {
        assert!(workflow.contains(part), "{part}");
    }
    for architecture in Architecture::ALL {
        assert!(workflow.contains(architecture.triple()), "{architecture:?}");
    }
}

/// A tag that is not the version, or a commit that fails the tests, must publish nothing.
#[test]
fn nothing_is_published_before_the_version_and_the_tests_are_checked() {
    let read = |name: &str| {
        let text = fs::read_to_string(root().unwrap().join(".github/workflows").join(name)).unwrap();
        serde_saphyr::from_str::<Value>(&text).unwrap()
    };
    let workflow = read("release.yml");
    let jobs = workflow["jobs"].as_object().unwrap();
    let needs = |job: &Value| match &job["needs"] {
        Value::String(one) => vec![one.clone()],
        many => many.as_array().into_iter().flatten().map(|one| one.as_str().unwrap().to_owned()).collect(),
    };
    let mut publishing = Vec::new();
    for (name, job) in jobs {
        let may_write = ["contents", "packages"].iter().any(|one| job["permissions"][one] == "write");
        if !may_write && !job.to_string().contains("secrets.CARGO_REGISTRY_TOKEN") {
            continue;
        }
        let (mut before, mut next) = (Vec::new(), needs(job));
        while let Some(other) = next.pop() {
            next.extend(needs(&jobs[&other]));
            before.push(other);
        }
        for required in ["version", "test", "files"] {
            assert!(before.iter().any(|one| one == required), "{name} does not need {required}");
        }
        publishing.push(name.as_str());
    }
    publishing.sort_unstable();
    assert_eq!(publishing, ["chart", "crates", "image", "publish"]);
    assert_eq!(jobs["test"]["uses"], "./.github/workflows/ci.yml");
    assert!(read("ci.yml")["on"].get("workflow_call").is_some(), "a workflow that others may call");
    assert!(jobs["version"].to_string().contains(r#"\"$GITHUB_REF_NAME\" != \"v$version\""#));
}

#[test]
fn a_pre_release_is_marked_and_does_not_become_the_latest() {
    let workflow = fs::read_to_string(root().unwrap().join(".github/workflows/release.yml")).unwrap();
    assert!(workflow.contains("\"--prerelease=$PRERELEASE\""));
    assert!(workflow.contains("flavor: latest=false\n"));
    let tags: Vec<&str> = workflow.lines().filter(|line| line.trim_start().starts_with("type=")).collect();
    let (always, others): (Vec<&str>, Vec<&str>) = tags.into_iter().partition(|tag| !tag.contains("enable="));
    assert_eq!(always.iter().map(|tag| tag.trim()).collect::<Vec<_>>(), ["type=semver,pattern={{version}}"]);
    assert!(others.len() == 2 && others.iter().all(|tag| tag.contains("outputs.prerelease == 'false'")), "{others:?}");
}
