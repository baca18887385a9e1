//! Clients of the API that make it keep or make too much: its memory has a bound, and health checks are answered.

use std::fs;
use std::io::ErrorKind;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use evenkeel_bars::Bar;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::Stage;
use crate::http1::{PATIENCE, Reader, connect_narrow};
use crate::http2::{END_STREAM, opening, request};
use crate::server::Server;

const VIEWER: &str = "viewers-token";
const SCHEMAS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";

/// Objects that make a list of about 0.93 MB.
const OBJECTS: usize = 30;
const OBJECT_BYTES: usize = 30_000;

const CONNECTIONS: usize = 8;
const STREAMS: u32 = 250;
const LASTS: Duration = Duration::from_secs(6);

const PATCHES: usize = 6;
const PATCH_ROUNDS: usize = 3;
const PROBE_EVERY: Duration = Duration::from_millis(20);

/// More than the API has places for.
const SILENT: usize = 11_000;
const SILENT_AT_ONCE: usize = 500;
const SILENT_FROM: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
/// Somebody else does not notice.
const SILENT_PROBE_MAX: Duration = Duration::from_secs(1);

/// The API, and what clients need to reach it.
struct Api {
    server: Server,
    roots: RootCertStore,
    administrator: String,
}

/// Lists that are asked for and never read.
pub(crate) fn lists(stage: &mut Stage, attack: &str) -> Result<()> {
    let attack = format!("{attack}, {CONNECTIONS} x {STREAMS} unread");
    let server = stage.runtime.block_on(async {
        let api = Api::start().await?;
        let bearer = format!("Bearer {VIEWER}");
        let mut held = Vec::new();
        for _ in 0..CONNECTIONS {
            let mut stream = api.connect(&[b"h2"]).await?;
            stream.write_all(&opening()).await?;
            for number in 0..STREAMS {
                let ask = request(2 * number + 1, "GET", SCHEMAS, &[("authorization", &bearer)], END_STREAM);
                stream.write_all(&ask).await?;
            }
            stream.flush().await?;
            held.push(stream);
        }
        sleep(LASTS).await;
        api.probe().await?;
        drop(held);
        anyhow::Ok(api.server)
    })?;
    stage.end(&attack, server)
}

/// Patches that copy what they have copied.
pub(crate) fn patches(stage: &mut Stage, attack: &str) -> Result<()> {
    let attack = format!("{attack}, {PATCHES} at once");
    let (server, worst) = stage.runtime.block_on(async {
        let api = Arc::new(Api::start().await?);
        let patches = {
            let api = Arc::clone(&api);
            tokio::spawn(async move {
                for _ in 0..PATCH_ROUNDS {
                    let mut patches = JoinSet::new();
                    for number in 0..PATCHES {
                        let api = Arc::clone(&api);
                        patches.spawn(async move { api.patch(number).await });
                    }
                    while let Some(patch) = patches.join_next().await {
                        patch??;
                    }
                }
                anyhow::Ok(())
            })
        };
        let mut worst = Duration::ZERO;
        while !patches.is_finished() {
            worst = worst.max(api.probe().await?);
            sleep(PROBE_EVERY).await;
        }
        patches.await??;
        let api = Arc::into_inner(api).context("patches are still being sent")?;
        anyhow::Ok((api.server, worst))
    })?;
    stage.bars.add(format!("{attack}: longest health check"), worst.as_secs_f64() * 1e3, "ms", Bar::None);
    stage.end(&attack, server)
}

/// Connections from one address that never say anything.
pub(crate) fn silence(stage: &mut Stage, attack: &str) -> Result<()> {
    let attack = format!("{attack}, {SILENT} connections");
    let (server, worst) = stage.runtime.block_on(async {
        let api = Api::start().await?;
        let (mut open, mut worst) = (Vec::new(), Duration::ZERO);
        for _ in 0..SILENT / SILENT_AT_ONCE {
            for _ in 0..SILENT_AT_ONCE {
                open.push(connect_narrow(SILENT_FROM, api.server.address()).await.context("raise `ulimit -Hn`")?);
            }
            worst = worst.max(api.probe().await?);
            // Those that were closed take no descriptors of ours.
            open.retain(
                |stream| matches!(stream.try_read(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock),
            );
        }
        anyhow::Ok((api.server, worst))
    })?;
    let bar = Bar::AtMost(SILENT_PROBE_MAX.as_secs_f64() * 1e3, "ms");
    stage.bars.add(format!("{attack}: longest health check"), worst.as_secs_f64() * 1e3, "ms", bar);
    stage.end(&attack, server)
}

/// 3.5 KB that make two million values: a list is doubled again and again, and then copied.
fn nested_copies() -> String {
    let mut operations = vec![r#"{"op":"add","path":"/spec/a","value":[0]}"#.to_owned()];
    operations.extend((0..14).map(|_| r#"{"op":"copy","from":"/spec/a","path":"/spec/a/-"}"#.to_owned()));
    operations.extend((0..55).map(|number| format!(r#"{{"op":"copy","from":"/spec/a","path":"/spec/b{number}"}}"#)));
    format!("[{}]", operations.join(","))
}

fn objects() -> String {
    let text = "x".repeat(OBJECT_BYTES);
    let object = |number| {
        format!(
            "apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {{name: large-{number}, annotations: {{text: {text}}}}}
spec: {{priorityLevelConfiguration: {{name: workload-low}}, matchingPrecedence: 9000}}
"
        )
    };
    (0..OBJECTS).map(object).collect::<Vec<_>>().join("---\n")
}

// === impl Api ===

impl Api {
    /// Starts it, and waits until all objects are there.
    async fn start() -> Result<Self> {
        let server = Server::api(&format!("{VIEWER},victor,1,evenkeel:viewers\n"), &objects())?;
        let data = server.folder.path().join("data");
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(data.join("ca.crt"))?)?;
        let tokens = fs::read_to_string(data.join("admin-token.csv"))?;
        let administrator = tokens.split(',').next().unwrap_or_default().to_owned();
        let mut api = Self { server, roots, administrator };
        let start = Instant::now();
        let last = format!("{SCHEMAS}/large-{}", OBJECTS - 1);
        while !api.exchange("GET", &last, VIEWER, "").await?.1 {
            ensure!(start.elapsed() < PATIENCE, "the objects are not there");
            sleep(PROBE_EVERY).await;
        }
        api.server.is_idle_now()?;
        Ok(api)
    }

    /// A connection for one of these protocols.
    async fn connect(&self, protocols: &[&[u8]]) -> Result<TlsStream<TcpStream>> {
        let mut config = ClientConfig::builder().with_root_certificates(self.roots.clone()).with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        let stream = connect_narrow(Ipv4Addr::LOCALHOST, self.server.address()).await?;
        let name = ServerName::from(self.server.address().ip());
        Ok(TlsConnector::from(Arc::new(config)).connect(name, stream).await?)
    }

    /// A request on a connection of its own: how long it took, and whether it succeeded.
    async fn exchange(&self, method: &str, path: &str, token: &str, body: &str) -> Result<(Duration, bool)> {
        let start = Instant::now();
        let mut client = Reader::new(self.connect(&[b"http/1.1"]).await?);
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: api\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json-patch+json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let head = client.exchange(&request).await?;
        Ok((start.elapsed(), head.is_success()))
    }

    /// How long a health check takes.
    async fn probe(&self) -> Result<Duration> {
        let (time, is_alive) =
            self.exchange("GET", "/livez", VIEWER, "").await.context("no health check is answered")?;
        ensure!(is_alive, "the health check fails");
        Ok(time)
    }

    async fn patch(&self, number: usize) -> Result<()> {
        let path = format!("{SCHEMAS}/large-{number}");
        self.exchange("PATCH", &path, &self.administrator, &nested_copies()).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_patch_is_small() {
        let length = nested_copies().len();
        assert!((3_300..3_700).contains(&length), "{length}");
    }
}
