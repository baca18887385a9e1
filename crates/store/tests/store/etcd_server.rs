//! Real etcd servers on free ports of this machine, gone with the test.

use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::folder::folder;
use crate::until::until;

/// Somebody else may take a port between our asking for a free one and the server's taking it.
const ATTEMPTS: usize = 5;

/// What a member writes into its log, of whatever version, when it has a leader and begins to serve. It accepts connections
/// long before.
const READY: &str = "ready to serve client requests";

/// What must be free in memory for the data to be there: a member sets more than 100 MB aside for its log as it starts, and
/// containers often have less.
const ROOM_BYTES: u64 = 2 << 30;

/// How long `etcdctl` waits: long enough for the slowest machine, and short where somebody else is asked next.
const PATIENT: &str = "30s";
const HASTY: &str = "2s";

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
    is_paused: bool,
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
        let folder = roomy_folder();
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
        Self { folder, arguments, client_port, child: None, is_paused: false }
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("127.0.0.1:{}", self.client_port)
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    fn spawn(&mut self) {
        let log = File::create(self.log()).unwrap();
        let child = Command::new("etcd")
            .args(&self.arguments)
            // No test takes away the power. What a version does not know in its environment it passes over.
            .env("ETCD_UNSAFE_NO_FSYNC", "true")
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start etcd ({error}); `cargo xtask setup` installs it"));
        self.child = Some(child);
    }

    /// Waits until it responds; false if it has ended instead.
    async fn wait(&mut self) -> bool {
        let log = self.log();
        let child = std::cell::RefCell::new(self.child.as_mut().unwrap());
        until("etcd", || async {
            let ended = child.borrow_mut().try_wait().unwrap();
            match ended {
                Some(_) => Some(false),
                None => String::from_utf8_lossy(&fs::read(&log).unwrap()).contains(READY).then_some(true),
            }
        })
        .await
    }

    /// As `kill -9`.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
            self.is_paused = false;
        }
    }

    /// On the same port and with the same data.
    pub(crate) async fn restart(&mut self) {
        self.kill();
        for _ in 0..ATTEMPTS {
            self.spawn();
            if self.wait().await {
                return;
            }
        }
        panic!("etcd does not start again: {}", fs::read_to_string(self.log()).unwrap());
    }

    /// The same with one more argument.
    pub(crate) async fn restart_with(&mut self, argument: String) {
        self.arguments.push(argument);
        self.restart().await;
    }

    /// Copies its data, which it has to stop for.
    pub(crate) async fn back_up(&mut self) -> TempDir {
        self.kill();
        let backup = roomy_folder();
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

    /// Stops it from running without ending it: its connections stay, and nobody responds.
    pub(crate) fn pause(&mut self) {
        self.signal("-STOP");
        self.is_paused = true;
    }

    pub(crate) fn resume(&mut self) {
        self.signal("-CONT");
        self.is_paused = false;
    }

    fn signal(&self, signal: &str) {
        let pid = self.child.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    /// Runs `etcdctl` and returns what it prints, if it succeeds.
    pub(crate) fn etcdctl(&self, arguments: &[&str]) -> Option<String> {
        self.etcdctl_within(PATIENT, arguments)
    }

    fn etcdctl_within(&self, timeout: &str, arguments: &[&str]) -> Option<String> {
        let output = Command::new("etcdctl")
            .env("ETCDCTL_API", "3")
            .arg(format!("--endpoints={}", self.endpoint()))
            .args([format!("--dial-timeout={timeout}"), format!("--command-timeout={timeout}")])
            .args(arguments)
            .output()
            .expect("etcdctl is there; `cargo xtask setup` installs it");
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
    }

    fn leads(&self) -> bool {
        if self.child.is_none() || self.is_paused {
            return false;
        }
        let status = self.etcdctl_within(HASTY, &["endpoint", "status", "--write-out=json"]);
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

/// In memory where there is room, so that no test waits for the disk: not every version knows how to do without.
fn roomy_folder() -> TempDir {
    let folder = folder();
    if free_bytes(folder.path()).is_some_and(|free| free >= ROOM_BYTES) { folder } else { tempfile::tempdir().unwrap() }
}

fn free_bytes(folder: &Path) -> Option<u64> {
    let output = Command::new("df").args(["-k", "-P"]).arg(folder).output().ok()?;
    let kilobytes: u64 =
        String::from_utf8_lossy(&output.stdout).lines().nth(1)?.split_whitespace().nth(3)?.parse().ok()?;
    Some(kilobytes * 1024)
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}
