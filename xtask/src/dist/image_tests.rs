//! The image and its archive, and that the Dockerfile says the same.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use super::*;
use crate::dist::scratch::Scratch;
use crate::run::{CommandLine, root as repository};

fn release() -> Release {
    Release { version: "1.2.3".to_owned(), time: 1_000_000_000 }
}

fn small_root() -> FileTree {
    let mut licences = FileTree::default();
    licences.file("LICENSE-MIT", 0o644, "MIT");
    root(b"#!/bin/sh\n".to_vec(), b"certificates".to_vec(), &licences)
}

fn unpacked(scratch: &Scratch) -> impl Fn(&str) -> Vec<u8> {
    fs::write(scratch.path("image.tar"), archive(Architecture::Arm64, &small_root(), &release()).unwrap()).unwrap();
    let mut tar = Command::new("tar");
    tar.arg("--extract").arg("--directory").arg(scratch.folder()).arg("--file").arg(scratch.path("image.tar"));
    assert!(tar.status().unwrap().success());
    let folder = scratch.folder().to_owned();
    move |path| fs::read(folder.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn every_blob_has_the_digest_and_the_size_that_its_descriptor_says() {
    let scratch = Scratch::new("layout");
    let read = unpacked(&scratch);
    let json = |bytes: Vec<u8>| -> Value { serde_json::from_slice(&bytes).unwrap() };
    let blob = |descriptor: &Value| {
        let digest = descriptor["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap();
        let content = read(&format!("blobs/sha256/{digest}"));
        assert_eq!((sha256(&content).as_str(), content.len() as u64), (digest, descriptor["size"].as_u64().unwrap()));
        content
    };
    assert_eq!(json(read("oci-layout"))["imageLayoutVersion"], "1.0.0");
    let index = json(read("index.json"));
    assert_eq!(index["manifests"][0]["platform"], json!({"architecture": "arm64", "os": "linux"}));
    let manifest = json(blob(&index["manifests"][0]));
    let config = json(blob(&manifest["config"]));
    let layer = blob(&manifest["layers"][0]);

    // The config names the layer before it was packed.
    let tar = small_root().tar(release().time).unwrap();
    assert_eq!(config["rootfs"]["diff_ids"], json!([format!("sha256:{}", sha256(&tar))]));
    assert_eq!(layer, pack(&tar).unwrap());
    assert_eq!((&config["architecture"], &config["created"]), (&json!("arm64"), &json!("2001-09-09T01:46:40Z")));

    let for_docker = json(read("manifest.json"));
    assert_eq!(for_docker[0]["RepoTags"], json!(["ghcr.io/evenkeel/evenkeel:1.2.3"]));
    assert_eq!(json(read(for_docker[0]["Config"].as_str().unwrap())), config);
    assert_eq!(read(for_docker[0]["Layers"][0].as_str().unwrap()), layer);
}

#[test]
fn the_same_files_give_the_same_archive() {
    let archive = || archive(Architecture::Amd64, &small_root(), &release()).unwrap();
    assert_eq!(archive(), archive());
}

#[test]
fn skopeo_reads_the_archive() {
    if !CommandLine::new("skopeo").args(["--version"]).succeeds() {
        return evenkeel_missing_tool::skip("skopeo is not installed");
    }
    let scratch = Scratch::new("skopeo");
    let _read = unpacked(&scratch);
    for format in ["oci-archive", "docker-archive"] {
        let image = format!("{format}:{}", scratch.path("image.tar").display());
        let inspect = ["--override-arch", "arm64", "inspect", &image];
        let inspected: Value =
            serde_json::from_slice(&CommandLine::new("skopeo").args(inspect).read().unwrap()).unwrap();
        assert_eq!(inspected["Architecture"], "arm64", "{format}");
        assert_eq!(inspected["Labels"]["org.opencontainers.image.version"], "1.2.3", "{format}");
    }
}

/// The instructions of a Dockerfile, one in each line.
fn instructions(text: &str) -> Vec<(String, String)> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let joined = lines.join("\n").replace("\\\n", "");
    let lines = joined.lines().filter(|line| !line.trim().is_empty());
    lines
        .map(|line| line.split_once(' ').map(|(name, rest)| (name.to_owned(), rest.trim().to_owned())).unwrap())
        .collect()
}

#[test]
fn the_dockerfile_makes_the_same_image() {
    let text = fs::read_to_string(repository().unwrap().join("Dockerfile")).unwrap();
    let all = instructions(&text);
    let stages: Vec<usize> = (0..all.len()).filter(|index| all[*index].0 == "FROM").collect();
    let [build, last] = stages.as_slice() else { panic!("{stages:?}") };
    let (build, last) = (&all[*build..*last], &all[*last..]);
    let one = |stage: &[(String, String)], name: &str| -> String {
        let found: Vec<_> = stage.iter().filter(|(other, _)| other == name).map(|(_, rest)| rest.clone()).collect();
        let [rest] = found.as_slice() else { panic!("{name}: {found:?}") };
        rest.clone()
    };

    // The oldest compiler that the repository promises to work with, on the oldest Debian with a C library that resolves names
    // in static binaries.
    let manifest = fs::read_to_string(repository().unwrap().join("Cargo.toml")).unwrap();
    let rust = manifest.lines().find_map(|line| line.strip_prefix("rust-version = ")).unwrap().trim_matches('"');
    assert_eq!(one(build, "FROM"), format!("--platform=$BUILDPLATFORM rust:{rust}-slim-bookworm AS build"));
    let steps: Vec<&str> = build.iter().map(|(_, rest)| rest.as_str()).collect();
    let steps = steps.join("\n");
    for architecture in Architecture::ALL {
        let (name, triple) = (architecture.name(), architecture.triple());
        assert!(steps.contains(&format!("{name}) rustup target add {triple} ;;")), "{steps}");
        // Debian's names of packages have no underscores.
        let compiler = format!("gcc-{}-linux-gnu libc6-dev-{name}-cross", architecture.gnu().replace('_', "-"));
        assert!(steps.contains(&compiler), "{compiler}: {steps}");
    }
    assert!(steps.contains("cargo xtask image-root \"$TARGETARCH\""), "{steps}");

    let config = config(Architecture::Amd64, "", &Release { version: "$VERSION".to_owned(), time: 0 });
    let config = &config["config"];
    assert_eq!(one(last, "FROM"), "scratch");
    assert_eq!(one(last, "USER"), config["User"].as_str().unwrap());
    assert_eq!(one(last, "WORKDIR"), config["WorkingDir"].as_str().unwrap());
    assert_eq!(one(last, "STOPSIGNAL"), config["StopSignal"].as_str().unwrap());
    assert_eq!(json!([one(last, "ENV")]), config["Env"]);
    let parsed = |text: &str| -> Value { serde_json::from_str(text).unwrap() };
    assert_eq!(parsed(&one(last, "ENTRYPOINT")), config["Entrypoint"]);
    assert_eq!(parsed(&one(last, "CMD")), config["Cmd"]);
    let ports = one(last, "EXPOSE");
    assert_eq!(ports.split(' ').collect::<Vec<_>>(), PORTS);
    let labels: BTreeMap<String, Value> = last
        .iter()
        .filter(|(name, _)| name == "LABEL")
        .map(|(_, rest)| rest.split_once('=').map(|(key, value)| (key.to_owned(), parsed(value))).unwrap())
        .collect();
    assert_eq!(json!(labels), config["Labels"]);

    let health = one(last, "HEALTHCHECK");
    let (options, command) = health.split_once(" CMD ").unwrap();
    let expected = &config["Healthcheck"];
    let seconds = |name: &str| expected[name].as_u64().unwrap() / SECOND_NS;
    let [interval, timeout, start] = ["Interval", "Timeout", "StartPeriod"].map(seconds);
    let retries = &expected["Retries"];
    assert_eq!(
        options,
        format!("--interval={interval}s --timeout={timeout}s --start-period={start}s --retries={retries}")
    );
    let words: Vec<Value> = [json!("CMD")].into_iter().chain(parsed(command).as_array().unwrap().clone()).collect();
    assert_eq!(json!(words), expected["Test"]);
    // A second COPY onto a folder that exists would not change its owner.
    assert_eq!(one(last, "COPY"), "--from=build /image /");
    let owner = format!("&& chown {USER}:{USER} /image/{DATA}");
    assert!(steps.lines().any(|step| step.ends_with(&owner)), "{steps}");
}
