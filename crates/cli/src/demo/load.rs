//! `Load`: a tenant's requests to an address, sent in the tenant's manner, with a tally of how each of them went.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use http::{HeaderValue, Request, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::tally::{Ending, Tally};
use super::tenant::{HEADER, Manner, Tenant};

/// How long a request waits for its response.
const PATIENCE: Duration = Duration::from_secs(30);

/// So many requests of a polite tenant are under way at a time at most.
const UNDER_WAY_MAX: usize = 256;

/// A tenant at work.
#[derive(Debug)]
pub(crate) struct Load {
    tenant: Tenant,
    target: SocketAddr,
    /// Connections without a request: every request takes one, and brings it back.
    idle: Mutex<Vec<SendRequest<Empty<Bytes>>>>,
    tally: Mutex<Tally>,
}

// === impl Load ===

impl Load {
    pub(crate) fn new(tenant: Tenant, target: SocketAddr) -> Arc<Self> {
        Arc::new(Self { tenant, target, idle: Mutex::default(), tally: Mutex::default() })
    }

    pub(crate) fn tenant(&self) -> Tenant {
        self.tenant
    }

    /// How its requests have gone so far.
    pub(crate) fn tally(&self) -> Tally {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sends requests until then, and returns when the last of them has ended.
    pub(crate) async fn run(self: Arc<Self>, until: Instant) {
        let mut requests = JoinSet::new();
        match self.tenant.manner {
            Manner::Polite { first, every } => {
                let places = Arc::new(Semaphore::new(UNDER_WAY_MAX));
                let mut due = Instant::now() + first;
                while due < until {
                    sleep_until(due).await;
                    let Ok(place) = Arc::clone(&places).acquire_owned().await else { break };
                    let load = Arc::clone(&self);
                    requests.spawn(async move {
                        load.ask_once(due).await;
                        drop(place);
                    });
                    due += every;
                }
            }
            Manner::Greedy { connections, after_rejection } => {
                for _ in 0..connections {
                    requests.spawn(Arc::clone(&self).ask_without_end(until, after_rejection));
                }
            }
        }
        while requests.join_next().await.is_some() {}
    }

    async fn ask_without_end(self: Arc<Self>, until: Instant, after_rejection: Duration) {
        while Instant::now() < until {
            if self.ask_once(Instant::now()).await != Ending::Served {
                sleep(after_rejection).await;
            }
        }
    }

    /// Sends a request that was due at a time, and counts from then: a late start is a part of the waiting.
    async fn ask_once(&self, due: Instant) -> Ending {
        let ending = match timeout(PATIENCE, self.exchange()).await {
            Ok(Ok(status)) if status.is_success() => Ending::Served,
            Ok(Ok(StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE)) => Ending::Rejected,
            _ => Ending::Failed,
        };
        self.tally.lock().unwrap_or_else(PoisonError::into_inner).add(ending, due.elapsed());
        ending
    }

    async fn exchange(&self) -> Result<StatusCode> {
        let mut connection = match self.idle_connection() {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        connection.ready().await?;
        let mut request = Request::new(Empty::new());
        let headers = request.headers_mut();
        headers.insert(http::header::HOST, HeaderValue::from_str(&self.target.to_string())?);
        headers.insert(HEADER, HeaderValue::from_static(self.tenant.name));
        let response = connection.send_request(request).await?;
        let status = response.status();
        response.into_body().collect().await?;
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        Ok(status)
    }

    /// One that the other side has not closed.
    fn idle_connection(&self) -> Option<SendRequest<Empty<Bytes>>> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        std::iter::from_fn(|| idle.pop()).find(|connection| !connection.is_closed())
    }

    async fn connect(&self) -> Result<SendRequest<Empty<Bytes>>> {
        let stream = TcpStream::connect(self.target).await.context("cannot connect")?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // The connection ends with its sender; errors of it reach the request.
        drop(tokio::spawn(connection));
        Ok(sender)
    }
}
