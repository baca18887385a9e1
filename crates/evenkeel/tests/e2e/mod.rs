//! An axum server and its tenants, over real sockets of the loopback interface.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::get;
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// The header that names the tenant.
pub(crate) const TENANT: &str = "x-tenant";
/// How long the service works on a request on average. Long enough that the noise of a busy machine is small beside it.
pub(crate) const SERVICE_TIME: Duration = Duration::from_millis(20);

/// A server that is there until it is dropped.
pub(crate) struct Server {
    address: SocketAddr,
    task: JoinHandle<()>,
}

/// Connections of one tenant that ask again as soon as they have been answered.
pub(crate) struct Greedy {
    is_over: Arc<AtomicBool>,
    connections: JoinSet<usize>,
}

/// What the polite tenants have seen.
#[derive(Debug)]
pub(crate) struct Seen {
    times: Vec<Duration>,
    pub(crate) rejected: usize,
}

/// A service that takes between 15 and 25 milliseconds, so that requests that began together do not end together.
pub(crate) fn app() -> Router {
    let turns = Arc::new(AtomicU64::new(0));
    let work = async move || {
        let turn = turns.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(15 + turn * 7 % 11)).await;
        "done"
    };
    Router::new().route("/work", get(work))
}

// === impl Server ===

impl Server {
    pub(crate) async fn start(app: Router) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { address, task }
    }

    async fn connect(&self) -> SendRequest<Empty<Bytes>> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (sender, connection) = handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        sender
    }

    /// So many connections that never rest. Returns when every one of them has sent its first request.
    pub(crate) async fn greedy(&self, connections: usize) -> Greedy {
        let mut greedy = Greedy { is_over: Arc::default(), connections: JoinSet::new() };
        for _ in 0..connections {
            let (mut sender, is_over) = (self.connect().await, Arc::clone(&greedy.is_over));
            greedy.connections.spawn(async move {
                let mut answers = 0;
                while !is_over.load(Ordering::Relaxed) {
                    if ask(&mut sender, "greedy").await == StatusCode::OK {
                        answers += 1;
                    } else {
                        // A client that is turned away and asks again at once would measure its own processor.
                        tokio::time::sleep(SERVICE_TIME).await;
                    }
                }
                answers
            });
        }
        tokio::time::sleep(2 * SERVICE_TIME).await;
        greedy
    }

    /// So many tenants with one connection each, that rest between requests for about as long as the service works on
    /// one. They know nothing of each other, so that they do not all ask at the same moment.
    pub(crate) async fn polite(&self, tenants: usize, requests: usize) -> Seen {
        let mut clients = JoinSet::new();
        for tenant in 0..tenants {
            let mut sender = self.connect().await;
            clients.spawn(async move {
                let name = format!("polite-{tenant}");
                let mut answers = Vec::with_capacity(requests);
                for request in 0..requests {
                    let rest = (tenant * 5 + request * 7) % 31 + 5;
                    tokio::time::sleep(Duration::from_millis(rest as u64)).await;
                    let start = Instant::now();
                    let status = ask(&mut sender, &name).await;
                    answers.push((status, start.elapsed()));
                }
                answers
            });
        }
        let answers: Vec<_> = clients.join_all().await.into_iter().flatten().collect();
        let rejected = answers.iter().filter(|(status, _)| *status != StatusCode::OK).count();
        let mut times: Vec<_> = answers.into_iter().map(|(_, time)| time).collect();
        times.sort();
        Seen { times, rejected }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

// === impl Greedy ===

impl Greedy {
    /// Ends the connections, and tells how many answers they got.
    pub(crate) async fn stop(self) -> usize {
        self.is_over.store(true, Ordering::Relaxed);
        self.connections.join_all().await.into_iter().sum()
    }
}

// === impl Seen ===

impl Seen {
    /// The time within which 99 of 100 requests were answered.
    pub(crate) fn p99(&self) -> Duration {
        self.times[(self.times.len() * 99).div_ceil(100) - 1]
    }
}

async fn ask(sender: &mut SendRequest<Empty<Bytes>>, tenant: &str) -> StatusCode {
    let request = Request::get("/work").header("host", "test").header(TENANT, tenant).body(Empty::new()).unwrap();
    let response = sender.send_request(request).await.unwrap();
    let status = response.status();
    response.into_body().collect().await.unwrap();
    status
}
