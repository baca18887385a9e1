//! Real etcd servers on free ports of this machine, gone with the test.

use std::fs::File;
use std::net::TcpListener;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;
use tokio::net::TcpStream;

use crate::until::until;

/// Somebody else may take a port between our asking for a free one and the server's taking it.
const ATTEMPTS: usize = 5;

/// A cluster of one member or more.
pub(crate) struct EtcdCluster {
    members: Vec<EtcdServer>,
}

/// A member and its data.
pub(crate) struct EtcdServer {
    folder: TempDir,
    arguments: Vec<String>,
    client_port: u16,
    child: Option<Child>,
}

/// Certificates for the server, and what it wants of its clients.
pub(crate) struct ServerTls {
    pub(crate) ca: PathBuf,
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

// === impl EtcdCluster ===

impl EtcdCluster {
    pub(crate) async fn start(size: usize) -> Self {
        for _ in 0..ATTEMPTS {
            if let Some(cluster) = Self::try_start(size, None).await {
                return cluster;
            }
        }
        panic!("etcd does not start; `cargo xtask setup` installs it");
    }

    async fn try_start(size: usize, tls: Option<&ServerTls>) -> Option<Self> {
        let ports: Vec<(u16, u16)> = (0..size).map(|_| (free_port(), free_port())).collect();
        let peers: Vec<String> =
            ports.iter().enumerate().map(|(index, (_, peer))| format!("m{index}=http://127.0.0.1:{peer}")).collect();
        let peers = peers.join(",");
        let mut members: Vec<_> = ports
            .iter()
            .enumerate()
            .map(|(index, &(client, peer))| EtcdServer::new(index, client, peer, &peers, tls))
            .collect();
        members.iter_mut().for_each(EtcdServer::spawn);
        for member in &mut members {
            if !member.wait().await {
                return None;
            }
        }
        Some(Self { members })
    }

    pub(crate) fn endpoints(&self) -> Vec<String> {
        self.members.iter().map(EtcdServer::endpoint).collect()
    }

    pub(crate) fn member(&mut self, index: usize) -> &mut EtcdServer {
        &mut self.members[index]
    }

    /// The member that leads.
    pub(crate) async fn leader(&self) -> usize {
        until("a leader", || async { self.members.iter().position(EtcdServer::leads) }).await
    }
}

// === impl EtcdServer ===

impl EtcdServer {
    pub(crate) async fn start() -> Self {
        Self::start_with(None).await
    }

    pub(crate) async fn start_with(tls: Option<&ServerTls>) -> Self {
        for _ in 0..ATTEMPTS {
            if let Some(mut cluster) = EtcdCluster::try_start(1, tls).await {
                return cluster.members.remove(0);
            }
        }
        panic!("etcd does not start; `cargo xtask setup` installs it");
    }

    fn new(index: usize, client_port: u16, peer_port: u16, peers: &str, tls: Option<&ServerTls>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let client = format!("{scheme}://127.0.0.1:{client_port}");
        let peer = format!("http://127.0.0.1:{peer_port}");
        let mut arguments: Vec<String> = [
            ("name", format!("m{index}")),
            ("data-dir", text(&folder.path().join("data"))),
            ("listen-client-urls", client.clone()),
            ("advertise-client-urls", client),
            ("listen-peer-urls", peer.clone()),
            ("initial-advertise-peer-urls", peer),
            ("initial-cluster", peers.to_owned()),
            ("initial-cluster-token", peers.to_owned()),
        ]
        .into_iter()
        .map(|(name, value)| format!("--{name}={value}"))
        .collect();
        if let Some(tls) = tls {
            arguments.extend([
                "--client-cert-auth".to_owned(),
                format!("--trusted-ca-file={}", text(&tls.ca)),
                format!("--cert-file={}", text(&tls.certificate)),
                format!("--key-file={}", text(&tls.key)),
            ]);
        }
        Self { folder, arguments, client_port, child: None }
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("127.0.0.1:{}", self.client_port)
    }

    fn spawn(&mut self) {
        let log = File::options().create(true).append(true).open(self.folder.path().join("log")).unwrap();
        let child = Command::new("etcd")
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start etcd ({error}); `cargo xtask setup` installs it"));
        self.child = Some(child);
    }

    /// Waits until it accepts connections; false if it has ended instead.
    async fn wait(&mut self) -> bool {
        let address = self.endpoint();
        let child = std::cell::RefCell::new(self.child.as_mut().unwrap());
        until("etcd", || async {
            let ended = child.borrow_mut().try_wait().unwrap();
            match ended {
                Some(_) => Some(false),
                None => TcpStream::connect(&address).await.is_ok().then_some(true),
            }
        })
        .await
    }

    /// As `kill -9`.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// On the same port and with the same data.
    pub(crate) async fn restart(&mut self) {
        self.kill();
        self.spawn();
        assert!(self.wait().await, "etcd does not start again");
    }

    /// The same with one more argument.
    pub(crate) async fn restart_with(&mut self, argument: String) {
        self.arguments.push(argument);
        self.restart().await;
    }

    /// Copies its data, which it has to stop for.
    pub(crate) async fn back_up(&mut self) -> TempDir {
        self.kill();
        let backup = tempfile::tempdir().unwrap();
        copy(&self.data(), backup.path());
        self.restart().await;
        backup
    }

    /// On the same port, with the data of a backup.
    pub(crate) async fn restore(&mut self, backup: &TempDir) {
        self.kill();
        std::fs::remove_dir_all(self.data()).unwrap();
        copy(backup.path(), &self.data());
        self.restart().await;
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Stops it from running without ending it: its connections stay, and nobody answers.
    pub(crate) fn pause(&self) {
        self.signal("-STOP");
    }

    pub(crate) fn resume(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let pid = self.child.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    /// Runs `etcdctl` and returns what it prints, if it succeeds.
    pub(crate) fn etcdctl(&self, arguments: &[&str]) -> Option<String> {
        let output = Command::new("etcdctl")
            .env("ETCDCTL_API", "3")
            .arg(format!("--endpoints={}", self.endpoint()))
            .args(["--dial-timeout=2s", "--command-timeout=2s"])
            .args(arguments)
            .output()
            .expect("etcdctl is there; `cargo xtask setup` installs it");
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
    }

    fn leads(&self) -> bool {
        let status = self.child.as_ref().and_then(|_| self.etcdctl(&["endpoint", "status", "--write-out=json"]));
        let status: serde_json::Value = serde_json::from_str(&status.unwrap_or_default()).unwrap_or_default();
        let status = &status[0]["Status"];
        status["leader"].as_u64().is_some_and(|leader| Some(leader) == status["header"]["member_id"].as_u64())
    }
}

impl Drop for EtcdServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Copies what is in a folder.
fn copy(from: &Path, to: &Path) {
    // etcd wants a folder that is for its owner only.
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}
