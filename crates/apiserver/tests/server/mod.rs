//! An API server on a loopback port, without TLS, for tests.

use std::net::SocketAddr;
use std::sync::Arc;

use evenkeel::identify::{Unidentified, anonymous, authenticated};
use evenkeel_apiserver::{ApiServer, ApiServerOptions};
use evenkeel_engine::User;
use evenkeel_store::{EmbeddedStore, HistoryLimits, Store};
use http::header::AUTHORIZATION;
use http::request::Parts;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;

/// A server, and where it listens.
pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
}

/// Who the tokens belong to.
fn identify(parts: &Parts) -> Result<Arc<User>, Unidentified> {
    let header = parts.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match header.strip_prefix("Bearer ") {
        Some("admin-token") => Ok(authenticated("admin", ["system:masters"])),
        Some("nobody-token") => Ok(authenticated::<&str>("nobody", [])),
        Some("viewer-token") => Ok(authenticated("viewer", ["evenkeel:viewers"])),
        Some(_) => Err(Unidentified::unauthorized()),
        None => Ok(anonymous()),
    }
}

impl TestServer {
    /// A new server with nothing but its bootstrap objects.
    pub(crate) async fn start(options: ApiServerOptions) -> Self {
        let store: Arc<dyn Store> =
            Arc::new(EmbeddedStore::in_memory(HistoryLimits::default()).expect("memory can be opened"));
        let server = ApiServer::start(store, &options).await.expect("the server starts");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("it has an address");
        tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else { return };
                let service = TowerToHyperService::new(server.service(identify));
                tokio::spawn(async move {
                    let _ = stream.set_nodelay(true);
                    let _ = auto::Builder::new(TokioExecutor::new())
                        .serve_connection_with_upgrades(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        Self { address }
    }
}
