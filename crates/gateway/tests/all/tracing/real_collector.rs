//! A collector that others have made, rotel, between the gateway and ours. `cargo xtask setup` installs it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use evenkeel_gateway::config::OtlpProtocol;
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};

use super::collector::Collector;
use super::{of, traced};
use crate::support::client::get;
use crate::support::upstream::{Upstream, ok};
use crate::support::{PATIENCE, config, start};

/// The program, in the environment for Python packages. Says that the test does nothing, where there is none.
fn program() -> Option<PathBuf> {
    let environment = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("python-client");
    let versions = std::fs::read_dir(environment.join("lib")).into_iter().flatten().flatten();
    let found =
        versions.map(|version| version.path().join("site-packages/rotel/rotel-agent")).find(|path| path.exists());
    if found.is_none() {
        evenkeel_missing_tool::skip(&format!("{} has no OpenTelemetry collector", environment.display()));
    }
    found
}

async fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

/// Starts it in front of another collector. It ends when it is dropped.
async fn run(program: &Path, grpc: SocketAddr, http: SocketAddr, next: SocketAddr) -> Child {
    let mut command = Command::new(program);
    command.args(["start", "--exporter", "otlp", "--otlp-exporter-protocol", "http", "--disable-batching"]);
    command.arg("--otlp-exporter-endpoint").arg(format!("http://{next}"));
    command.arg("--otlp-grpc-endpoint").arg(grpc.to_string()).arg("--otlp-http-endpoint").arg(http.to_string());
    let process = command.stdout(std::process::Stdio::null()).kill_on_drop(true).spawn().unwrap();
    for address in [grpc, http] {
        let listens = async {
            while TcpStream::connect(address).await.is_err() {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        assert!(tokio::time::timeout(PATIENCE, listens).await.is_ok(), "the collector does not listen on {address}");
    }
    process
}

#[tokio::test]
async fn a_collector_that_others_have_made_takes_spans_over_both_protocols() {
    let Some(program) = program() else { return };
    let upstream = Upstream::answering(|_| ok("")).await;
    let (ours, grpc, http) = (Collector::http().await, free_address().await, free_address().await);
    let _process = run(&program, grpc, http, ours.address).await;
    let mut expected = 0;
    for (protocol, address, path) in [(OtlpProtocol::Grpc, grpc, "/grpc"), (OtlpProtocol::Http, http, "/http")] {
        let mut settings = traced(config(&[upstream.address]), &ours);
        settings.tracing.protocol = protocol;
        settings.tracing.endpoint = Some(format!("http://{address}").parse().unwrap());
        let running = start(settings).await;
        get(running.address, path, "").await;
        running.done().await;
        expected += 3;
        ours.has_spans(expected).await;
        let spans = ours.spans();
        assert!(spans.iter().any(|span| of(span, "url.path").as_deref() == Some(path)), "{spans:#?}");
    }
    assert_eq!(ours.spans().len(), expected);
}
