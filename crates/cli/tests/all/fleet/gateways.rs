//! The gateways of a fleet, as processes.

use std::path::PathBuf;

use tempfile::TempDir;

use super::clients::Clients;
use super::etcd_proxy::EtcdProxy;
use super::service::Service;
use crate::child::{Running, address_after};
use crate::until::until;

/// The seats of the service.
pub(super) const SEATS: u64 = 60;

/// A gateway, its clients, and its way to etcd.
pub(super) struct Gateway {
    pub(super) number: u64,
    pub(super) clients: Clients,
    pub(super) etcd: EtcdProxy,
    process: Running,
    admin: std::net::SocketAddr,
    _folder: TempDir,
}

/// How the seats are shared.
#[derive(Debug, Clone)]
pub(super) enum Sharing {
    /// By a fleet, with the settings of it.
    Fleet(&'static str),
    /// The same, and each client has a rate.
    WithRate { terms: &'static str, rate: &'static str },
    /// By a fleet that finds out how many there should be.
    Finding { terms: &'static str, concurrency: &'static str },
    /// Each has its own.
    Apart { seats: u64 },
}

// === impl Gateway ===

impl Gateway {
    /// Three of them in front of one service.
    pub(super) async fn start_three(
        service: &Service,
        members: &[String],
        sharing: &Sharing,
        tenants: &[&str],
    ) -> Vec<Self> {
        let mut fleet = Vec::new();
        for number in 0..3 {
            fleet.push(Self::start(number, service, members, sharing.clone(), tenants).await);
        }
        fleet
    }

    pub(super) async fn start(
        number: u64,
        service: &Service,
        members: &[String],
        sharing: Sharing,
        tenants: &[&str],
    ) -> Self {
        let folder = TempDir::new().unwrap();
        let etcd = EtcdProxy::start(members).await;
        let path = settings(&folder, service, &etcd, &sharing);
        // Starting blocks this thread until the gateway is ready, and its way to etcd is one of this runtime's tasks.
        let (process, address, admin) = tokio::task::spawn_blocking(move || {
            let mut process = Running::start(&["serve", "--config", path.to_str().unwrap()]);
            let line = process.line_with("ready: ");
            (process, address_after(&line, "listening on "), address_after(&line, "admin on "))
        })
        .await
        .unwrap();
        let clients = Clients::start(number, address, 2 * SEATS, tenants);
        Self { number, clients, etcd, process, admin, _folder: folder }
    }

    /// `kill -9`.
    pub(super) fn kill(mut self, service: &Service) {
        service.note_killed(self.number);
        self.process.signal("KILL");
        self.process.end();
    }

    pub(super) fn stop(&self) {
        self.process.signal("STOP");
    }

    pub(super) fn go_on(&self) {
        self.process.signal("CONT");
    }

    /// Shuts it down in an orderly way.
    pub(super) async fn shut_down(mut self) {
        self.clients.want(0);
        self.process.signal("TERM");
        let ended = tokio::task::spawn_blocking(move || self.process.end().0.success());
        assert!(ended.await.unwrap());
    }

    /// Waits until a page of its admin endpoint has all of this.
    pub(super) async fn until_page(&self, path: &str, parts: &[&str]) {
        until(&format!("{parts:?} on {path}"), || async {
            let page = self.page(path).await;
            parts.iter().all(|part| page.contains(part)).then_some(())
        })
        .await;
    }

    async fn page(&self, path: &str) -> String {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let mut stream = tokio::net::TcpStream::connect(self.admin).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut page = String::new();
        stream.read_to_string(&mut page).await.unwrap();
        page
    }

    /// Its first registration in the fleet.
    pub(super) async fn registration(&self) -> u64 {
        until("a registration", || async {
            let fleet = self.fleet().await;
            let steps = fleet["steps"].as_array()?;
            let mut registered = steps.iter().filter_map(|step| step["text"].as_str()?.rsplit_once(" as "));
            registered.find_map(|(_, id)| u64::from_str_radix(id, 16).ok())
        })
        .await
    }

    /// How it stands in the fleet, by its own account.
    pub(super) async fn fleet(&self) -> serde_json::Value {
        self.json("/debug/status").await["fleet"].clone()
    }

    /// A page of its admin endpoint that is JSON.
    pub(super) async fn json(&self, path: &str) -> serde_json::Value {
        let page = self.page(path).await;
        let json = page.split_once("\r\n\r\n").unwrap().1;
        let json = &json[json.find('{').unwrap()..=json.rfind('}').unwrap()];
        serde_json::from_str(json).unwrap()
    }
}

fn settings(folder: &TempDir, service: &Service, etcd: &EtcdProxy, sharing: &Sharing) -> PathBuf {
    let of_fleet = |terms: &str| format!("fleet: {{service: checkout, endpoints: {:?}, {terms}}}\n", etcd.endpoints);
    let (concurrency, fleet) = match sharing {
        Sharing::Apart { seats } => (seats.to_string(), String::new()),
        Sharing::Fleet(terms) => (SEATS.to_string(), of_fleet(terms)),
        Sharing::WithRate { terms, rate } => {
            let rated = format!("levels: {{people: {{share: 100}}}}\nmatch: [{{level: people, rate: {rate}}}]\n");
            (SEATS.to_string(), of_fleet(terms) + &rated)
        }
        Sharing::Finding { terms, concurrency } => ((*concurrency).to_owned(), of_fleet(terms)),
    };
    let text = format!(
        "listen: [{{address: 127.0.0.1:0}}]\nadmin: {{address: 127.0.0.1:0}}\nworkers: 1\nconcurrency: {concurrency}\n{fleet}\
         upstreams: [{{url: 'http://{}'}}]\nidentity: {{sources: [{{trustedHeaders: {{fromAddresses: [127.0.0.1]}}}}]}}\n",
        service.address
    );
    let path = folder.path().join("evenkeel.yaml");
    std::fs::write(&path, text).unwrap();
    path
}
