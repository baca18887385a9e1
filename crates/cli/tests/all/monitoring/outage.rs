//! Outages of upstreams as a real Prometheus sees them: the critical alert is about to fire when no upstream responds, ends when
//! one does, and is silent otherwise.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tempfile::TempDir;

use super::station::{Prometheus, fetch, serve_on};
use crate::child::{Running, address_after, address_apart};

/// A gateway, and a client that asks it again and again until it is dropped.
struct Asked {
    _process: Running,
    _folder: TempDir,
    admin: SocketAddr,
    is_over: Arc<AtomicBool>,
    client: Option<JoinHandle<()>>,
}

/// How long the client pauses.
const PAUSE: Duration = Duration::from_millis(100);

// === impl Asked ===

impl Asked {
    fn before(upstreams: &[SocketAddr]) -> Self {
        let folder = TempDir::new().unwrap();
        let upstreams: Vec<String> = upstreams.iter().map(|address| format!("{{url: 'http://{address}'}}")).collect();
        let settings = format!(
            "listen: [{{address: 127.0.0.1:0}}]\n\
             admin: {{address: 127.0.0.1:0}}\n\
             workers: 1\n\
             upstreams: [{}]\n\
             timeouts: {{response: 100ms}}\n",
            upstreams.join(", ")
        );
        let path = folder.path().join("evenkeel.yaml");
        fs::write(&path, settings).unwrap();
        let mut process = Running::start(&["serve", "--config", path.to_str().unwrap()]);
        let line = process.line_with("ready: ");
        let (address, admin) = (address_after(&line, "listening on "), address_after(&line, "admin on "));
        let is_over = Arc::<AtomicBool>::default();
        let is_ended = Arc::clone(&is_over);
        let client = thread::spawn(move || {
            while !is_ended.load(Ordering::Relaxed) {
                // What becomes of the request shows in the metrics.
                let _ = fetch(address, "/", "");
                thread::sleep(PAUSE);
            }
        });
        Self { _process: process, _folder: folder, admin, is_over, client: Some(client) }
    }

    /// The series of the alert.
    fn alert(&self) -> String {
        format!("ALERTS{{alertname=\"EvenkeelNoUpstream\", severity=\"critical\", instance=\"{}\"}}", self.admin)
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(client) = self.client.take() {
            // It has nothing to say.
            let _ = client.join();
        }
    }
}

/// A server that accepts connections and never says anything.
fn silent() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || listener.incoming().collect::<Vec<_>>());
    address
}

#[test]
fn the_critical_alert_is_pending_when_no_upstream_responds_and_only_then() {
    let dead = || SocketAddr::from((address_apart(), 9));
    let well = || serve_on(TcpListener::bind("127.0.0.1:0").unwrap(), "ok", Duration::ZERO);
    let recovering = TcpListener::bind((address_apart(), 0)).unwrap().local_addr().unwrap();
    let outages = [
        ("the only upstream refuses connections", Asked::before(&[recovering])),
        ("both upstreams refuse connections", Asked::before(&[dead(), dead()])),
        ("the only upstream never responds", Asked::before(&[silent()])),
    ];
    let others = [
        ("one of two upstreams refuses connections", Asked::before(&[well(), dead()])),
        ("the only upstream responds", Asked::before(&[well()])),
    ];
    let all = outages.iter().chain(&others);
    let targets: Vec<String> = all.map(|(_, gateway)| format!("'{}'", gateway.admin)).collect();
    let jobs = format!("- {{job_name: evenkeel, static_configs: [{{targets: [{}]}}]}}\n", targets.join(", "));
    let prometheus = Prometheus::scraping(&jobs);
    for (what, gateway) in &outages {
        prometheus.wait_for(what, &gateway.alert());
    }
    for (what, gateway) in &others {
        let served = format!("rate(evenkeel_upstream_requests_total{{instance=\"{}\"}}[5m]) > 0", gateway.admin);
        prometheus.wait_for(what, &served);
        let ever = prometheus.query(&format!("count_over_time({}[10m])", gateway.alert()));
        assert!(ever.is_empty(), "{what}, and the alert was pending");
    }
    let (what, gateway) = &outages[0];
    serve_on(TcpListener::bind(recovering).unwrap(), "ok", Duration::ZERO);
    let is_over =
        format!("evenkeel_upstream_up{{instance=\"{}\"}} == 1 unless on (instance) {}", gateway.admin, gateway.alert());
    prometheus.wait_for(&format!("{what} no more, and the alert ends"), &is_over);
}
