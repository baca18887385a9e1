//! The container image: its files, and an archive of it that `docker load`, `podman load` and `skopeo` read.
//!
//! The last stage of the Dockerfile is the same image; a test compares the two.

use anyhow::Result;
use serde_json::{Value, json};

use super::architecture::Architecture;
use super::checksum::sha256;
use super::file_tree::FileTree;
use super::release::{DESCRIPTION, IMAGE, LICENCE, REPOSITORY, Release};
use crate::record::pack;

/// The most that the files of the image may take, uncompressed.
pub(crate) const BYTES_MAX: usize = 30_000_000;
/// The user of the image, who is not root.
pub(crate) const USER: u32 = 65532;
/// The binary, from the root of the image.
pub(crate) const BINARY: &str = "usr/bin/evenkeel";
/// The folder of the objects, if a command names it.
const DATA: &str = "var/lib/evenkeel";
/// Clients and operators.
const PORTS: [&str; 2] = ["8080/tcp", "9901/tcp"];
const SECOND_NS: u64 = 1_000_000_000;

/// Without this file, the C library would load others to find out how names are resolved.
const NSSWITCH: &str = "hosts: files dns\n";
const PASSWD: &str = "root:x:0:0:root:/:/sbin/nologin\nevenkeel:x:65532:65532:evenkeel:/:/sbin/nologin\n";
const GROUP: &str = "root:x:0:\nevenkeel:x:65532:\n";

/// The files of the image.
pub(crate) fn root(binary: Vec<u8>, certificates: Vec<u8>, licences: &FileTree) -> FileTree {
    let mut root = FileTree::default();
    root.file(BINARY, 0o755, binary)
        .file("etc/ssl/certs/ca-certificates.crt", 0o644, certificates)
        .file("etc/nsswitch.conf", 0o644, NSSWITCH)
        .file("etc/passwd", 0o644, PASSWD)
        .file("etc/group", 0o644, GROUP)
        .folder("tmp", 0o1777)
        .owned_folder(DATA, 0o700, USER)
        .tree("usr/share/doc/evenkeel", licences);
    root
}

/// An archive in the layout of OCI, with the `manifest.json` that older versions of Docker read.
pub(crate) fn archive(architecture: Architecture, root: &FileTree, release: &Release) -> Result<Vec<u8>> {
    let layer = root.tar(release.time)?;
    let packed = pack(&layer)?;
    let config = serde_json::to_vec(&config(architecture, &sha256(&layer), release))?;
    let [config_at, layer_at] = [&config, &packed].map(|blob| format!("blobs/sha256/{}", sha256(blob)));
    let manifest = serde_json::to_vec(&json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": descriptor("application/vnd.oci.image.config.v1+json", &config),
        "layers": [descriptor("application/vnd.oci.image.layer.v1.tar+gzip", &packed)],
    }))?;
    let name = format!("{IMAGE}:{}", release.version);
    let mut entry = descriptor("application/vnd.oci.image.manifest.v1+json", &manifest);
    entry["platform"] = json!({"architecture": architecture.name(), "os": "linux"});
    entry["annotations"] = json!({
        "org.opencontainers.image.ref.name": release.version,
        "io.containerd.image.name": name,
    });
    let index = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [entry],
    });
    let for_docker = json!([{"Config": config_at, "RepoTags": [name], "Layers": [layer_at]}]);

    let mut archive = FileTree::default();
    archive
        .file("oci-layout", 0o644, r#"{"imageLayoutVersion":"1.0.0"}"#)
        .file("index.json", 0o644, serde_json::to_vec(&index)?)
        .file("manifest.json", 0o644, serde_json::to_vec(&for_docker)?)
        .file(&format!("blobs/sha256/{}", sha256(&manifest)), 0o644, manifest)
        .file(&config_at, 0o644, config)
        .file(&layer_at, 0o644, packed);
    archive.tar(release.time)
}

fn descriptor(media_type: &str, blob: &[u8]) -> Value {
    json!({"mediaType": media_type, "digest": format!("sha256:{}", sha256(blob)), "size": blob.len()})
}

fn config(architecture: Architecture, layer: &str, release: &Release) -> Value {
    json!({
        "created": release.timestamp(),
        "architecture": architecture.name(),
        "os": "linux",
        "config": {
            "User": format!("{USER}:{USER}"),
            "ExposedPorts": PORTS.iter().map(|port| ((*port).to_owned(), json!({}))).collect::<serde_json::Map<_, _>>(),
            "Env": ["PATH=/usr/bin"],
            "Entrypoint": [format!("/{BINARY}")],
            "Cmd": ["--help"],
            "WorkingDir": "/",
            "StopSignal": "SIGTERM",
            "Labels": {
                "org.opencontainers.image.title": "evenkeel",
                "org.opencontainers.image.description": DESCRIPTION,
                "org.opencontainers.image.source": REPOSITORY,
                "org.opencontainers.image.licenses": LICENCE,
                "org.opencontainers.image.version": release.version,
            },
            // Docker's own; others ignore it.
            "Healthcheck": {
                "Test": ["CMD", format!("/{BINARY}"), "health"],
                "Interval": 10 * SECOND_NS,
                "Timeout": 5 * SECOND_NS,
                "StartPeriod": 5 * SECOND_NS,
                "Retries": 3,
            },
        },
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{layer}")]},
        "history": [{"created": release.timestamp(), "created_by": "cargo xtask dist"}],
    })
}

#[cfg(test)]
#[path = "image_tests.rs"]
mod tests;
