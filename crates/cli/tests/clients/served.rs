//! `evenkeel serve` with its API, as a child process, and the clients that know how to reach it.

use std::fs;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use k8s_openapi::api::flowcontrol::v1::FlowSchema;
use kube::Api;
use kube::api::ListParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::child::{PATIENCE, Running, address_after, address_apart, evenkeel, text};
use super::folder::folder;
use super::until::until;

/// A server that answers.
pub(super) struct Served {
    pub(super) process: Running,
    pub(super) address: SocketAddr,
    data: PathBuf,
    /// Where kubectl keeps what it knows about servers; gone with the test.
    home: TempDir,
}

/// How a command has ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) code: Option<i32>,
    pub(super) output: String,
    pub(super) errors: String,
}

// === impl Served ===

impl Served {
    /// Serves the API and nothing else, on a port that the system picks.
    pub(super) fn api(data: &Path, more: &[&str]) -> Self {
        Self::api_on("127.0.0.1:0", data, more)
    }

    /// The same for a test that restarts it: where nobody else listens, so that nobody takes its port in between.
    pub(super) fn api_apart(data: &Path) -> Self {
        Self::api_on(&SocketAddr::from((address_apart(), 0)).to_string(), data, &[])
    }

    pub(super) fn api_on(address: &str, data: &Path, more: &[&str]) -> Self {
        let arguments = ["serve", "--api-only", "--api-listen", address, "--data-dir", data.to_str().unwrap()];
        Self::start(data, &[&arguments, more].concat())
    }

    /// Runs the binary with these arguments, and waits until the API answers.
    pub(super) fn start(data: &Path, arguments: &[&str]) -> Self {
        let mut process = Running::spawn(&mut evenkeel(arguments));
        let address = address_after(&process.output_until("API ready on"), "API ready on https://");
        Self { process, address, data: data.to_owned(), home: folder() }
    }

    /// Stops it and starts it again where it was, which is for one that is apart.
    pub(super) fn restart(self) -> Self {
        let (address, data) = (self.address.to_string(), self.data.clone());
        self.stop();
        Self::api_on(&address, &data, &[])
    }

    /// Stops it in good order.
    pub(super) fn stop(mut self) {
        self.process.signal("TERM");
        let (status, _) = self.process.end();
        assert_eq!(status.code(), Some(0), "{}", self.process.rest());
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.data.join(name)
    }

    pub(super) fn kubeconfig(&self) -> PathBuf {
        self.file("kubeconfig")
    }

    /// The administrator, for kube-rs.
    pub(super) async fn admin(&self) -> kube::Client {
        client(Kubeconfig::read_from(self.kubeconfig()).unwrap()).await
    }

    /// The administrator, for kube-rs, by another way to the server.
    pub(super) async fn admin_by(&self, address: SocketAddr) -> kube::Client {
        let mut config = Kubeconfig::read_from(self.kubeconfig()).unwrap();
        for cluster in config.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
            cluster.server = Some(format!("https://{address}"));
        }
        client(config).await
    }

    /// The administrator, for kube-rs, who takes the server for one of that name.
    pub(super) async fn admin_at(&self, server_name: &str) -> kube::Client {
        let mut config = Kubeconfig::read_from(self.kubeconfig()).unwrap();
        for cluster in config.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
            cluster.tls_server_name = Some(server_name.to_owned());
        }
        client(config).await
    }

    /// Somebody with these credentials, as a kubeconfig has them.
    pub(super) async fn user(&self, credentials: Value) -> kube::Client {
        let cluster =
            json!({"server": format!("https://{}", self.address), "certificate-authority": self.file("ca.crt")});
        let config = json!({
            "clusters": [{"name": "server", "cluster": cluster}],
            "users": [{"name": "user", "user": credentials}],
            "contexts": [{"name": "context", "context": {"cluster": "server", "user": "user"}}],
            "current-context": "context",
        });
        client(serde_json::from_value(config).unwrap()).await
    }

    /// Waits until each flow schema has a condition; the server answers before the bootstrap ones have theirs.
    pub(super) async fn all_have_conditions(&self) {
        let api: Api<FlowSchema> = Api::all(self.admin().await);
        let has_condition = |schema: &FlowSchema| {
            schema.status.as_ref().and_then(|status| status.conditions.as_ref()).is_some_and(|all| !all.is_empty())
        };
        until("a condition of each flow schema", || async {
            let schemas = api.list(&ListParams::default()).await.unwrap().items;
            schemas.iter().all(has_condition).then_some(())
        })
        .await;
    }

    /// kubectl, or nothing where there is none.
    pub(super) fn kubectl(&self) -> Command {
        let mut command = Command::new("kubectl");
        command.env("HOME", self.home.path()).env("KUBECONFIG", self.kubeconfig()).stdin(Stdio::null());
        command
    }

    /// What kubectl prints, when it must succeed.
    pub(super) fn kubectl_does(&self, arguments: &[&str]) -> String {
        self.kubectl_reads("", arguments)
    }

    /// What kubectl prints, given this on its standard input, when it must succeed.
    pub(super) fn kubectl_reads(&self, input: &str, arguments: &[&str]) -> String {
        let ended = self.kubectl_ends(input, arguments);
        assert_eq!(ended.code, Some(0), "kubectl {arguments:?}: {}{}", ended.output, ended.errors);
        ended.output
    }

    /// How kubectl ends.
    pub(super) fn kubectl_ends(&self, input: &str, arguments: &[&str]) -> Ended {
        run(self.kubectl().args(arguments), input)
    }
}

pub(super) async fn client(config: Kubeconfig) -> kube::Client {
    let mut config = kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await.unwrap();
    config.connect_timeout = Some(PATIENCE);
    kube::Client::try_from(config).unwrap()
}

/// The first kubectl that reads OpenAPI v3, as the recorded conversations do (API-188).
const KUBECTL_MINOR_MIN: u32 = 27;

/// Says that the test does nothing, where there is no kubectl that is new enough.
pub(super) fn no_kubectl() -> bool {
    let version = Command::new("kubectl").args(["version", "--client", "-o", "json"]).output();
    let version: Value =
        version.ok().and_then(|output| serde_json::from_slice(&output.stdout).ok()).unwrap_or_default();
    let minor = version["clientVersion"]["minor"].as_str().and_then(|minor| minor.trim_end_matches('+').parse().ok());
    let is_missing = minor.is_none_or(|minor: u32| minor < KUBECTL_MINOR_MIN);
    if is_missing {
        evenkeel_missing_tool::skip(&format!("kubectl 1.{KUBECTL_MINOR_MIN} or newer is not installed"));
    }
    is_missing
}

/// Runs a command to its end.
pub(super) fn run(command: &mut Command, input: &str) -> Ended {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    end(child)
}

/// Waits for the end of a child.
pub(super) fn end(child: Child) -> Ended {
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    Ended { code: status.code(), output: text(&stdout), errors: text(&stderr) }
}

/// Writes a script that can be run.
pub(super) fn script(path: &Path, lines: &str) {
    use std::os::unix::fs::PermissionsExt;
    fs::write(path, format!("#!/bin/sh\n{lines}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}
