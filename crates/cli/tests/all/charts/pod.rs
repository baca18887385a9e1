//! A pod on this machine: what the kubelet would mount, under a folder, and Evenkeel with the arguments of its container.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use tempfile::TempDir;

use super::rendered::{Rendered, arguments, list, string};
use crate::child::{PATIENCE, Running, address_after, evenkeel};
use crate::folder::folder;

/// The files of Secrets, by the names of these.
pub(super) type Secrets = BTreeMap<String, BTreeMap<String, String>>;

/// A pod that can be started.
pub(super) struct Pod {
    root: TempDir,
    arguments: Vec<String>,
    pub(super) token: Option<String>,
    upstream: String,
    /// How often files were replaced.
    versions: Cell<usize>,
}

/// Where a pod listens.
#[derive(Debug, Clone, Copy)]
pub(super) struct Addresses {
    pub(super) http: SocketAddr,
    pub(super) admin: SocketAddr,
}

// === impl Pod ===

impl Pod {
    /// The pod of a workload, with an upstream at this URL.
    pub(super) fn new(rendered: &Rendered, secrets: &Secrets, upstream: &str) -> Self {
        let mut pod = Self {
            root: folder(),
            arguments: Vec::new(),
            token: None,
            upstream: upstream.to_owned(),
            versions: Cell::new(0),
        };
        let container = rendered.container();
        let mut mounts: Vec<_> = list(&container["volumeMounts"]).iter().collect();
        // A file that is mounted into a volume comes after the volume.
        mounts.sort_by_key(|mount| string(&mount["mountPath"]).len());
        for mount in mounts {
            pod.mount(rendered, secrets, mount);
        }
        pod.arguments = arguments(container).iter().map(|argument| pod.local(argument)).collect();
        pod.token = list(&container["env"]).iter().find(|one| one["name"] == "EVENKEEL_ADMIN_TOKEN").map(|variable| {
            let source = &variable["valueFrom"]["secretKeyRef"];
            files_of_secret(rendered, secrets, string(&source["name"]))[string(&source["key"])].clone()
        });
        pod
    }

    /// A path of the pod on this machine.
    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path.trim_start_matches('/'))
    }

    /// A text with what is different on this machine: paths, ports, and the upstream.
    fn local(&self, text: &str) -> String {
        let root = self.root.path().display();
        let mut text = text.to_owned();
        for path in ["/etc/evenkeel", "/var/lib/evenkeel"] {
            text = text.replace(path, &format!("{root}{path}"));
        }
        for port in [8080, 9901, 8443] {
            text = text.replace(&format!("0.0.0.0:{port}"), "127.0.0.1:0");
        }
        text.replace("http://orders:80", &self.upstream).replace("http://127.0.0.1:9000", &self.upstream)
    }

    fn mount(&self, rendered: &Rendered, secrets: &Secrets, mount: &Value) {
        let path = self.path(string(&mount["mountPath"]));
        let volumes = list(&rendered.template()["spec"]["volumes"]);
        let volume = volumes.iter().find(|volume| volume["name"] == mount["name"]);
        let secret = volume.and_then(|volume| volume.pointer("/secret/secretName"));
        if let Some(name) = secret {
            let files = files_of_secret(rendered, secrets, string(name));
            match mount.get("subPath") {
                // The mode in which a member of the group of the pod sees it.
                Some(file) => write(&path, &files[string(file)], 0o440),
                None => self.put(&path, &files, 0o440),
            }
        } else if volume.is_some_and(|volume| volume.get("configMap").is_some()) {
            let files = rendered.files(string(&mount["name"])).into_iter();
            let files = files.map(|(file, text)| (file.to_owned(), self.local(text))).collect();
            self.put(&path, &files, 0o644);
        } else {
            fs::create_dir_all(&path).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(0o770)).unwrap();
        }
    }

    /// As the kubelet does it: files are links into a folder that is replaced as a whole.
    fn put(&self, path: &Path, files: &BTreeMap<String, String>, mode: u32) {
        let version = format!("..{}", self.versions.replace(self.versions.get() + 1));
        fs::create_dir_all(path.join(&version)).unwrap();
        for (file, text) in files {
            write(&path.join(&version).join(file), text, mode);
            if path.join(file).symlink_metadata().is_err() {
                symlink(Path::new("..data").join(file), path.join(file)).unwrap();
            }
        }
        symlink(version, path.join("..data_tmp")).unwrap();
        fs::rename(path.join("..data_tmp"), path.join("..data")).unwrap();
    }

    /// Changes the one file of a `ConfigMap`, as the kubelet does after `helm upgrade`.
    pub(super) fn change(&self, folder: &str, file: &str, change: impl Fn(&str) -> String) {
        let path = self.path(folder);
        let old = fs::read_to_string(path.join(file)).unwrap();
        let new = change(&old);
        assert_ne!(new, old, "nothing has changed");
        self.put(&path, &BTreeMap::from([(file.to_owned(), new)]), 0o644);
    }

    pub(super) fn start(&self) -> Running {
        let arguments: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
        let mut command = evenkeel(&arguments);
        if let Some(token) = &self.token {
            command.env("EVENKEEL_ADMIN_TOKEN", token);
        }
        Running::spawn(&mut command)
    }

    /// Starts the gateway, and waits until it says where it listens.
    pub(super) fn start_gateway(&self) -> (Running, Addresses) {
        let mut running = self.start();
        let line = running.line_with("ready: listening on ");
        let addresses =
            Addresses { http: address_after(&line, "listening on "), admin: address_after(&line, "admin on ") };
        (running, addresses)
    }

    /// Asks the admin endpoint with the token.
    pub(super) fn ask(&self, address: SocketAddr, path: &str) -> (u16, String) {
        let token = self.token.as_ref().unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let head =
            format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n");
        write!(stream, "{head}\r\n").unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        let status = response.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap();
        (status, response)
    }
}

/// The files of a Secret that is rendered, or that the user has made.
fn files_of_secret(rendered: &Rendered, secrets: &Secrets, name: &str) -> BTreeMap<String, String> {
    if let Some(secret) = rendered.of_kind("Secret").find(|secret| secret["metadata"]["name"] == name) {
        let decode = |value: &Value| String::from_utf8(STANDARD.decode(string(value)).unwrap()).unwrap();
        return secret["data"].as_object().unwrap().iter().map(|(key, value)| (key.clone(), decode(value))).collect();
    }
    secrets.get(name).unwrap_or_else(|| panic!("no Secret {name}")).clone()
}

fn write(path: &Path, text: &str, mode: u32) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}
