//! A seat stands for the upstream's work: no client can dodge it by leaving, or hold it by dawdling.

mod bodies;
mod leaving;
mod responses;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use evenkeel_gateway::Config;
use tokio::io::AsyncWriteExt;
use tokio::sync::Semaphore;

use crate::support::client::Client;
use crate::support::upstream::{Upstream, has_more, ok};
use crate::support::{ONE_LEVEL, Running, config, start_with};

const SEATS: usize = 4;

/// What an upstream has to do, which does not notice when clients leave.
#[derive(Clone)]
struct Work {
    now: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
    begun: Arc<AtomicUsize>,
    /// Every request ends with one of these.
    ends: Arc<Semaphore>,
}

impl Work {
    fn new() -> Self {
        let count = Arc::<AtomicUsize>::default;
        Self { now: count(), most: count(), begun: count(), ends: Arc::new(Semaphore::new(0)) }
    }

    fn now(&self) -> usize {
        self.now.load(Ordering::SeqCst)
    }

    fn begun(&self) -> usize {
        self.begun.load(Ordering::SeqCst)
    }

    async fn run(&self) {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        self.begun.fetch_add(1, Ordering::SeqCst);
        self.ends.acquire().await.unwrap().forget();
        self.now.fetch_sub(1, Ordering::SeqCst);
    }

    /// An upstream that works on every request to the end, whether its client is there or not.
    async fn upstream(&self) -> Upstream {
        let work = self.clone();
        Upstream::new(move |mut client, _| {
            let work = work.clone();
            async move {
                while has_more(&mut client).await {
                    client.answer().await;
                    work.run().await;
                    let _ = client.stream.write_all(ok("done").as_bytes()).await;
                }
            }
        })
        .await
    }
}

fn settings(upstream: SocketAddr) -> Config {
    let mut settings = config(&[upstream]);
    settings.concurrency = Some((u32::try_from(SEATS).unwrap()).into());
    settings.timeouts.queue = Duration::from_secs(60);
    settings
}

/// A gateway with one level, which has all seats.
async fn start(settings: Config) -> Running {
    start_with(settings, ONE_LEVEL).await
}

/// How many requests run and wait.
fn in_level(running: &Running) -> (usize, usize) {
    let status = running.gateway.flow().status();
    let level = status.iter().find(|level| level.name == "everybody").unwrap();
    (level.executing, level.waiting)
}

/// A client that has sent a request.
async fn asking(address: SocketAddr) -> Client {
    let mut client = Client::connect(address).await;
    client.send("GET /work HTTP/1.1\r\nHost: a\r\n\r\n").await;
    client
}
