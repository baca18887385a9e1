//! A real Envoy with the settings of `deploy/envoy/envoy.yaml`. `cargo xtask setup` installs it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};

use crate::support::PATIENCE;

/// An Envoy that runs until it is dropped.
pub(super) struct Envoy {
    /// Where clients connect to.
    pub(super) address: SocketAddr,
    _process: Child,
    _folder: TempDir,
}

pub(super) const SETTINGS: &str = include_str!("../../../../../deploy/envoy/envoy.yaml");

/// The program, in the environment for Python packages. Says that the test does nothing, where there is none.
fn program() -> Option<PathBuf> {
    let environment = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("python-client");
    let versions = std::fs::read_dir(environment.join("lib")).into_iter().flatten().flatten();
    let found =
        versions.map(|version| version.path().join("site-packages/envoy/_bin/envoy")).find(|path| path.exists());
    if found.is_none() {
        evenkeel_missing_tool::skip(&format!("{} has no Envoy", environment.display()));
    }
    found
}

// === impl Envoy ===

impl Envoy {
    /// In front of this service, with these texts of the settings replaced. None where there is no Envoy.
    pub(super) async fn start(service: SocketAddr, evenkeel: SocketAddr, replaced: &[(&str, &str)]) -> Option<Self> {
        let program = program()?;
        let address = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let ports = [("10000", address.port()), ("9000", service.port()), ("9902", evenkeel.port())];
        let mut settings = ports.iter().fold(SETTINGS.to_owned(), |settings, (printed, port)| {
            let (printed, here) = (format!("port_value: {printed}"), format!("port_value: {port}"));
            assert!(settings.contains(&printed), "{printed}");
            settings.replace(&printed, &here)
        });
        for (printed, here) in replaced {
            assert!(settings.contains(printed), "{printed}");
            settings = settings.replace(printed, here);
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("envoy.yaml");
        std::fs::write(&path, settings).unwrap();
        let mut command = Command::new(program);
        command.arg("-c").arg(&path).args(["--concurrency", "1", "--log-level", "error", "--disable-hot-restart"]);
        let process = command.stdout(Stdio::null()).kill_on_drop(true).spawn().unwrap();
        let listens = async {
            while TcpStream::connect(address).await.is_err() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        assert!(tokio::time::timeout(PATIENCE, listens).await.is_ok(), "Envoy does not listen on {address}");
        Some(Self { address, _process: process, _folder: folder })
    }
}
