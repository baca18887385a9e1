//! Active health checks: asks every upstream for a path from time to time, on a connection of its own.
//!
//! One worker does it for the whole process. No request waits for a check.

use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{HOST, USER_AGENT};
use http::{Request, StatusCode, Uri, Version};
use http_body_util::Empty;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::TokioIo;
use tokio::sync::watch;
use tokio::task::{JoinHandle, spawn_local};

use super::UpstreamTarget;
use super::health::Change;
use crate::config::{HealthCheckConfig, Protocol};
use crate::gateway::generation::Generation;
use crate::net::Stream;
use crate::proxy::worker::OnWorker;
use crate::timeouts::CoarseTimer;
use crate::tls::Offer;

/// The check of one upstream, until it is dropped.
#[derive(Debug)]
struct Checking {
    upstream: Arc<UpstreamTarget>,
    task: JoinHandle<()>,
}

/// The task that runs a connection, until it is dropped.
struct Driven(JoinHandle<()>);

/// The interval varies by this part of it, so that many gateways do not check at the same time.
const JITTER: u32 = 10;

/// Checks the upstreams, as the settings say, for as long as the future lives.
pub(crate) async fn check_upstreams(mut generations: watch::Receiver<Arc<Generation>>, timer: Rc<CoarseTimer>) {
    let mut all: Vec<Checking> = Vec::new();
    loop {
        let settings = Arc::clone(&generations.borrow_and_update());
        // The checks of upstreams whose settings have not changed go on.
        all.retain(|checking| settings.upstreams().any(|upstream| Arc::ptr_eq(upstream, &checking.upstream)));
        if let Some(check) = &settings.config.health.check {
            for upstream in settings.upstreams() {
                if !all.iter().any(|checking| Arc::ptr_eq(&checking.upstream, upstream)) {
                    let task = spawn_local(check_one(Arc::clone(upstream), check.clone(), Rc::clone(&timer)));
                    all.push(Checking { upstream: Arc::clone(upstream), task });
                }
            }
        }
        drop(settings);
        if generations.changed().await.is_err() {
            return;
        }
    }
}

async fn check_one(upstream: Arc<UpstreamTarget>, check: HealthCheckConfig, timer: Rc<CoarseTimer>) {
    let random = RandomState::new();
    // The first check is soon, so that the state of the upstream is known early.
    let mut pause = varied(check.interval / JITTER, random.hash_one(0));
    for number in 1_u64.. {
        tokio::time::sleep(pause).await;
        let outcome = tokio::time::timeout(check.timeout, ask(&upstream, &check, &timer)).await;
        let outcome = outcome.unwrap_or_else(|_| Err(format!("it took longer than {:?}", check.timeout)));
        upstream.metrics.checked(outcome.is_ok());
        let change = upstream.health.note_check(outcome.is_ok(), Instant::now(), &check);
        let name = &upstream.name;
        match (change, outcome) {
            (Some(Change::CheckFails), Err(error)) => {
                let path = &check.path;
                tracing::warn!(
                    upstream = name,
                    path,
                    error,
                    "the health check of an upstream fails; it gets no requests"
                );
            }
            (Some(Change::CheckPasses), _) => {
                tracing::info!(upstream = name, "the health check of an upstream passes again");
            }
            (_, Err(error)) => tracing::debug!(upstream = name, error, "a health check failed"),
            _ => {}
        }
        pause = varied(check.interval, random.hash_one(number));
    }
}

/// The interval, up to a tenth shorter or longer.
fn varied(interval: Duration, random: u64) -> Duration {
    let part = u32::try_from(random % 1000).unwrap_or(0);
    interval.saturating_sub(interval / JITTER) + interval * 2 / JITTER * part / 1000
}

/// Whether the upstream responds as it should; if not, how.
async fn ask(upstream: &UpstreamTarget, check: &HealthCheckConfig, timer: &Rc<CoarseTimer>) -> Result<(), String> {
    let offer = match upstream.protocol {
        Protocol::Http2 => Offer::Http2,
        Protocol::Auto if upstream.tls.is_some() => Offer::Both,
        Protocol::Http1 | Protocol::Auto => Offer::Http1,
    };
    let stream = upstream.open(offer, timer).await.map_err(|error| format!("no connection: {error}"))?;
    let is_agreed = matches!(&stream, Stream::Tls(tls) if tls.get_ref().1.alpn_protocol() == Some(b"h2"));
    let is_http2 = is_agreed || offer == Offer::Http2;
    let status = status(upstream, &check.path, stream, is_http2).await?;
    if check.expect.iter().any(|range| range.contains(status)) {
        return Ok(());
    }
    Err(format!("the status is {}", status.as_u16()))
}

/// The status of the response for a path.
async fn status(upstream: &UpstreamTarget, path: &str, stream: Stream, is_http2: bool) -> Result<StatusCode, String> {
    let fault = |error: hyper::Error| format!("no response: {error}");
    let request = request(upstream, path, is_http2)?;
    if is_http2 {
        let (mut sender, connection) = http2::handshake(OnWorker, TokioIo::new(stream)).await.map_err(fault)?;
        let _driven = Driven::new(connection);
        return Ok(sender.send_request(request).await.map_err(fault)?.status());
    }
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(fault)?;
    let _driven = Driven::new(connection);
    Ok(sender.send_request(request).await.map_err(fault)?.status())
}

fn request(upstream: &UpstreamTarget, path: &str, is_http2: bool) -> Result<Request<Empty<Bytes>>, String> {
    let target = format!("{}{path}", upstream.prefix);
    let request =
        Request::get("/").header(USER_AGENT, concat!("evenkeel/", env!("CARGO_PKG_VERSION"), " health check"));
    let request = if is_http2 {
        let scheme = if upstream.tls.is_some() { "https" } else { "http" };
        let uri = Uri::builder().scheme(scheme).authority(&*upstream.authority).path_and_query(target).build();
        request.uri(uri.map_err(|error| error.to_string())?).version(Version::HTTP_2)
    } else {
        request.uri(target).header(HOST, &upstream.authority)
    };
    request.body(Empty::new()).map_err(|error| error.to_string())
}

// === impl Checking ===

impl Drop for Checking {
    fn drop(&mut self) {
        self.task.abort();
    }
}

// === impl Driven ===

impl Driven {
    fn new(connection: impl Future + 'static) -> Self {
        Self(spawn_local(async move {
            connection.await;
        }))
    }
}

impl Drop for Driven {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_vary_by_a_tenth() {
        let second = Duration::from_secs(1);
        let pauses: Vec<_> = (0..1000).map(|random| varied(second, random)).collect();
        assert!(pauses.iter().all(|pause| (900..=1100).contains(&pause.as_millis())));
        assert!(pauses.first() != pauses.last());
    }
}
