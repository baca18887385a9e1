//! A disk that takes no writes and an etcd that does not respond: what the gateway, the API and their probes show, and that
//! all of it is over when the fault is.
//!
//! A disk that takes no writes is made by the limit of the size of files (`RLIMIT_FSIZE`), which needs no rights.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use tempfile::TempDir;

use crate::child::{PATIENCE, Running, address_after, evenkeel, run, text};
use crate::etcd_server::EtcdServer;
use crate::peer::{Upstream, get};

const SCHEMAS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";

/// A gateway with an API in one process.
struct Served {
    process: Running,
    /// Where requests are forwarded from.
    gateway: SocketAddr,
    admin: SocketAddr,
    api: SocketAddr,
}

/// Starts it on a disk as it is, or on one that takes no writes.
fn serve(upstream: &Upstream, disk: Disk, flags: &[&str]) -> Served {
    let url = upstream.url();
    let fixed =
        ["serve", "--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0", "--api-listen=127.0.0.1:0", "--upstream", &url];
    let mut command = Command::new("sh");
    // A write beyond the limit fails, and does not end the process.
    let limit = if disk == Disk::Full { "ulimit -S -f 0; " } else { "" };
    command.arg("-c").arg(format!("trap '' XFSZ; {limit}exec \"$0\" \"$@\""));
    let served = evenkeel(&[&fixed, flags].concat());
    command.arg(served.get_program()).args(served.get_args()).env_remove("RUST_LOG").env("NO_COLOR", "1");
    let mut process = Running::spawn(&mut command);
    let api = address_after(&process.output_until("API ready on"), "API ready on https://");
    let line = process.line_with("ready: ");
    Served { gateway: address_after(&line, "listening on "), admin: address_after(&line, "admin on "), api, process }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Disk {
    Full,
    Fine,
}

// === impl Served ===

impl Served {
    fn set_disk(&self, disk: Disk) {
        let current = if disk == Disk::Full { Some(0) } else { None };
        let id = Pid::from_raw(i32::try_from(self.process.id()).unwrap());
        prlimit(id, Resource::Fsize, Rlimit { current, maximum: None }).unwrap();
    }

    fn metric(&self, name: &str) -> String {
        let page = get(self.admin, "/metrics").1;
        let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ').map(ToOwned::to_owned));
        line.unwrap_or_else(|| panic!("no {name} in {page}"))
    }

    fn wait_for_metric(&self, name: &str, value: &str) {
        let until = Instant::now() + PATIENCE;
        while self.metric(name) != value {
            assert!(Instant::now() < until, "{name} is {}, not {value}", self.metric(name));
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// What the API responds to a request of the administrator: the status and the body.
    fn ask(&self, data: &Path, host: &str, more: &[&str], path: &str) -> (String, String) {
        let token = fs::read_to_string(data.join("admin-token.csv")).unwrap();
        let authorization = format!("Authorization: Bearer {}", token.split(',').next().unwrap());
        let (port, ip) = (self.api.port(), self.api.ip());
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--write-out", "\n%{http_code}", "--header", &authorization]);
        curl.arg("--resolve").arg(format!("{host}:{port}:{ip}")).arg("--cacert").arg(data.join("ca.crt"));
        let output = curl.args(more).arg(format!("https://{host}:{port}{path}")).output();
        let output = output.unwrap_or_else(|error| panic!("cannot run curl: {error}; `cargo xtask setup` installs it"));
        assert!(output.status.success(), "{}", text(&output.stderr));
        let output = text(&output.stdout);
        let (body, status) = output.rsplit_once('\n').unwrap();
        (status.to_owned(), body.to_owned())
    }

    fn create(&self, data: &Path, name: &str) -> (String, String) {
        let schema = format!(
            r#"{{"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema", "metadata": {{"name": "{name}"}},
                "spec": {{"priorityLevelConfiguration": {{"name": "exempt"}}}}}}"#
        );
        self.ask(data, "localhost", &["--header", "Content-Type: application/json", "--data", &schema], SCHEMAS)
    }

    /// Whether the API has exactly these among those that the test creates.
    fn has(&self, data: &Path, host: &str, names: &[&str]) -> bool {
        let (status, list) = self.ask(data, host, &[], SCHEMAS);
        assert_eq!(status, "200", "{list}");
        ["made-1", "made-2", "refused", "later"]
            .iter()
            .all(|name| list.contains(&format!("\"{name}\"")) == names.contains(name))
    }

    fn stop(mut self) {
        self.process.signal("TERM");
        assert_eq!(self.process.end().0.code(), Some(0), "{}", self.process.rest());
    }
}

fn health(arguments: &[&str]) -> Output {
    run(&[&["health"], arguments].concat())
}

/// The store is unavailable, and requests are forwarded all the same.
fn assert_store_unavailable(served: &Served, data: &Path) {
    assert_eq!(served.metric("evenkeel_store_unavailable"), "1");
    // What is in effect is all that was acknowledged.
    assert_eq!(served.metric("evenkeel_objects_stale"), "0");
    assert_eq!(get(served.admin, "/livez"), (200, "ok".to_owned()));
    assert_eq!(get(served.admin, "/readyz"), (200, "ok".to_owned()));
    let ready = get(served.admin, "/readyz?verbose").1;
    assert!(ready.contains("[+]objects ok\n[-]store unavailable, which does not fail this check: a write"), "{ready}");
    assert_eq!(get(served.gateway, "/").0, 200);
    assert_eq!(served.ask(data, "localhost", &[], "/livez").0, "200");
    let (status, ready) = served.ask(data, "localhost", &[], "/readyz");
    assert!(status == "500" && ready.contains("[-]store failed: a write to the disk failed"), "{status}: {ready}");
    let said = health(&["--data-dir", data.to_str().unwrap()]);
    assert_eq!(said.status.code(), Some(1));
    assert!(text(&said.stderr).contains("store failed"), "{}", text(&said.stderr));
}

#[test]
fn a_full_disk_is_shown_and_over_when_there_is_room() {
    let (upstream, folder) = (Upstream::start(), TempDir::new().unwrap());
    let data = folder.path().join("data");
    let flags = ["--data-dir", data.to_str().unwrap()];
    let served = serve(&upstream, Disk::Fine, &flags);
    for name in ["made-1", "made-2"] {
        let (status, body) = served.create(&data, name);
        assert_eq!(status, "201", "{body}");
    }
    assert_eq!(served.metric("evenkeel_store_unavailable"), "0");
    assert!(get(served.admin, "/readyz?verbose").1.contains("[+]store ok\n"));
    // The metrics of the API are on the page of the gateway, too.
    assert_eq!(served.metric("evenkeel_api_denied_requests_total{code=\"401\",reason=\"unauthenticated\"}"), "0");

    served.set_disk(Disk::Full);
    let (status, body) = served.create(&data, "refused");
    assert!(status == "503" && body.contains("a write to the disk failed"), "{status}: {body}");
    assert_store_unavailable(&served, &data);
    assert!(served.has(&data, "localhost", &["made-1", "made-2"]));
    served.stop();

    // It also starts on that disk, with all objects, and with a certificate that it cannot write.
    let mut served = serve(&upstream, Disk::Full, &[&flags[..], &["--api-name", "other.example"]].concat());
    let said = served.process.said().join("\n");
    assert!(!said.contains("the gateway starts with the copy") && said.contains("is used from memory"), "{said}");
    assert!(served.has(&data, "other.example", &["made-1", "made-2"]));
    assert_eq!(served.create(&data, "refused").0, "503");
    served.wait_for_metric("evenkeel_store_unavailable", "1");
    served.set_disk(Disk::Fine);
    served.wait_for_metric("evenkeel_store_unavailable", "0");
    let (status, body) = served.create(&data, "later");
    assert_eq!(status, "201", "{body}");
    served.process.line_with("the store can be written again");
    served.process.line_with("the copy of the objects is up to date again");
    served.stop();

    let served = serve(&upstream, Disk::Fine, &flags);
    assert!(served.has(&data, "localhost", &["made-1", "made-2", "later"]));
    served.stop();
}

#[test]
fn health_asks_an_api_by_its_data_directory() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let data = data.to_str().unwrap();
    let missing = health(&["--data-dir", data]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(text(&missing.stderr).contains("kubeconfig"), "{}", text(&missing.stderr));
    let mut api = Running::start(&["serve", "--api-only", "--api-listen=127.0.0.1:0", "--data-dir", data]);
    let address = address_after(&api.output_until("API ready on"), "API ready on https://");
    let (url, ca) = (format!("https://{address}"), format!("{data}/ca.crt"));
    for arguments in [&["--data-dir", data][..], &[&url, "--ca", &ca], &[&url, "--data-dir", data]] {
        let said = health(arguments);
        assert_eq!(said.status.code(), Some(0), "{arguments:?}: {}", text(&said.stderr));
        assert_eq!(text(&said.stdout), format!("{url} is ready\n"));
    }
    // As in a container: by the environment.
    let said = evenkeel(&["health"]).env("EVENKEEL_DATA_DIR", data).output().unwrap();
    assert_eq!(said.status.code(), Some(0), "{}", text(&said.stderr));
    let unknown = health(&[&url]);
    assert!(unknown.status.code() == Some(1) && text(&unknown.stderr).contains("UnknownIssuer"));
    api.signal("TERM");
    assert_eq!(api.end().0.code(), Some(0), "{}", api.rest());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_etcd_that_does_not_respond_is_shown_while_the_gateway_runs() {
    if Command::new("etcd").arg("--version").output().is_err() {
        return evenkeel_missing_tool::skip("etcd is not installed");
    }
    let mut etcd = EtcdServer::start().await;
    let (upstream, folder) = (Upstream::start(), TempDir::new().unwrap());
    let (data, store) = (folder.path().join("data"), format!("etcd://{}", etcd.endpoint()));
    let served = serve(&upstream, Disk::Fine, &["--data-dir", data.to_str().unwrap(), "--store", &store]);
    for metric in ["evenkeel_objects_stale", "evenkeel_store_unavailable"] {
        assert_eq!(served.metric(metric), "0");
    }
    etcd.pause();
    served.wait_for_metric("evenkeel_store_unavailable", "1");
    served.wait_for_metric("evenkeel_objects_stale", "1");
    let ready = get(served.admin, "/readyz?verbose");
    assert_eq!(ready.0, 200);
    assert!(ready.1.contains("[+]objects ok, but they may be out of date: those of revision"), "{}", ready.1);
    assert!(
        ready.1.contains("[-]store unavailable, which does not fail this check: it has been out of reach"),
        "{}",
        ready.1
    );
    assert_eq!(get(served.gateway, "/").0, 200);
    etcd.resume();
    served.wait_for_metric("evenkeel_objects_stale", "0");
    served.wait_for_metric("evenkeel_store_unavailable", "0");
    assert!(get(served.admin, "/readyz?verbose").1.contains("[+]objects ok\n[+]store ok\n"));
    served.stop();
}
