//! One tenant's flood does not move another tenant's p99 by more than twice.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use evenkeel_gateway::Gateway;
use evenkeel_gateway::config::{HeaderIdentity, IdentitySource};
use evenkeel_gateway::objects::DirectorySource;
use support::client::Client;
use support::upstream::{Upstream, has_more, ok};
use support::{Running, config};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// How many requests the upstream works on at a time; more wait in it.
const CAPACITY: usize = 16;
/// How long it works on one on average. Long enough that the noise of a busy machine is small beside it.
const SERVICE_TIME: Duration = Duration::from_millis(60);
const SERVICE_TIME_MIN: Duration = Duration::from_millis(50);
/// Some of them run, some wait, and the rest are turned away.
const FLOOD_CONNECTIONS: usize = 100;
/// Those who do not flood have one connection each, and rest for about as long as the service works on a request: less
/// than a fair share, which is what is promised to them.
const POLITE: usize = 8;
const POLITE_REQUESTS: usize = 13;
const ROUNDS: usize = 3;
/// So many if the machine is busy with something else.
const ROUNDS_MAX: usize = 10;
/// So many requests are not counted, of the flood and of each polite tenant. Fair queues charge a request with what it
/// took when it has ended, and until then with the three milliseconds that Kubernetes guesses: a flood of long requests
/// is ahead of others for the first two or three of them.
const FLOOD_UNCOUNTED: usize = 4 * CAPACITY;
const POLITE_UNCOUNTED: usize = 4;

const FAIR: &str = "{queues: 64, handSize: 6, queueLengthLimit: 10}";
/// Everybody waits in the same line.
const UNFAIR: &str = "{queues: 1, handSize: 1, queueLengthLimit: 60}";

/// Connections of one tenant that never rest.
struct Flood {
    is_over: Arc<AtomicBool>,
    connections: JoinSet<()>,
}

fn objects(queuing: &str) -> String {
    format!(
        "
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {{name: tenants}}
spec:
  type: Limited
  limited:
    nominalConcurrencyShares: 1000
    limitResponse: {{type: Queue, queuing: {queuing}}}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {{name: tenants}}
spec:
  priorityLevelConfiguration: {{name: tenants}}
  distinguisherMethod: {{type: ByUser}}
  rules:
  - subjects: [{{kind: Group, group: {{name: system:authenticated}}}}]
    nonResourceRules: [{{verbs: ['*'], nonResourceURLs: ['*']}}]
"
    )
}

/// Works on a few requests at a time, on each for between 50 and 70 milliseconds, so that those that began together do
/// not end together.
async fn limited_upstream() -> Upstream {
    let (places, turns) = (Arc::new(Semaphore::new(CAPACITY)), Arc::new(AtomicU64::new(0)));
    Upstream::new(move |mut client, _| {
        let (places, turns) = (Arc::clone(&places), Arc::clone(&turns));
        async move {
            while has_more(&mut client).await {
                client.answer().await;
                let place = places.acquire().await.unwrap();
                let turn = turns.fetch_add(1, Ordering::Relaxed);
                sleep(SERVICE_TIME_MIN + Duration::from_millis(turn * 8 % 21)).await;
                drop(place);
                client.send(&ok("done")).await;
            }
        }
    })
    .await
}

async fn gateway(upstream: &Upstream, queuing: &str) -> Running {
    let file = tempfile::NamedTempFile::with_suffix(".yaml").unwrap();
    std::fs::write(file.path(), objects(queuing)).unwrap();
    let mut settings = config(&[upstream.address]);
    settings.concurrency = Some((u32::try_from(CAPACITY).unwrap()).into());
    let trusted = HeaderIdentity { from_addresses: vec!["127.0.0.1/32".parse().unwrap()], ..HeaderIdentity::default() };
    settings.identity.sources = vec![IdentitySource::TrustedHeaders(trusted)];
    let gateway = Gateway::start(settings, Box::new(DirectorySource::new(file.path()))).await.unwrap();
    let address = gateway.addresses()[0];
    Running { gateway, address, objects: None }
}

async fn ask(client: &mut Client, tenant: &str) -> u16 {
    client.send(&format!("GET /work HTTP/1.1\r\nHost: a\r\nX-Remote-User: {tenant}\r\n\r\n")).await;
    client.answer().await.status
}

/// The time within which 99 of 100 requests of the polite tenants were answered. None may be turned away.
async fn polite_p99(address: SocketAddr) -> Duration {
    let mut tenants = JoinSet::new();
    for tenant in 0..POLITE {
        tenants.spawn(async move {
            let (mut client, name) = (Client::connect(address).await, format!("polite-{tenant}"));
            let mut times = Vec::new();
            for request in 0..POLITE_UNCOUNTED + POLITE_REQUESTS {
                // They know nothing of each other, and do not ask at the same moments.
                sleep(Duration::from_millis(((tenant * 23 + request * 37) % 61 + 30) as u64)).await;
                let started_at = Instant::now();
                assert_eq!(ask(&mut client, &name).await, 200);
                times.push(started_at.elapsed());
            }
            times.split_off(POLITE_UNCOUNTED)
        });
    }
    let mut times: Vec<_> = tenants.join_all().await.into_iter().flatten().collect();
    times.sort();
    times[(times.len() * 99).div_ceil(100) - 1]
}

// === impl Flood ===

impl Flood {
    /// Begins, and returns when it has settled, and requests of it are being turned away.
    async fn begin(running: &Running) -> Self {
        let address = running.address;
        let mut flood = Self { is_over: Arc::default(), connections: JoinSet::new() };
        let counts = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
        for _ in 0..FLOOD_CONNECTIONS {
            let (is_over, counts) = (Arc::clone(&flood.is_over), Arc::clone(&counts));
            flood.connections.spawn(async move {
                let mut client = Client::connect(address).await;
                while !is_over.load(Ordering::Relaxed) {
                    match ask(&mut client, "flood").await {
                        200 => counts.0.fetch_add(1, Ordering::Relaxed),
                        429 => {
                            // One that asks again at once would measure the machine.
                            sleep(SERVICE_TIME).await;
                            counts.1.fetch_add(1, Ordering::Relaxed)
                        }
                        other => panic!("{other}"),
                    };
                }
            });
        }
        let has_settled =
            || counts.0.load(Ordering::Relaxed) >= FLOOD_UNCOUNTED && counts.1.load(Ordering::Relaxed) > 0;
        support::eventually("the flood is more than fits", has_settled).await;
        flood
    }

    async fn end(self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.connections.join_all().await;
    }
}

/// The least of all rounds: whatever else the machine does only adds to them.
fn least(times: &[Duration]) -> Duration {
    times.iter().copied().min().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_does_not_move_the_p99_of_another_tenant_by_more_than_twice() {
    let upstream = limited_upstream().await;
    let running = gateway(&upstream, FAIR).await;
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    // What else the machine does only adds to either, so that further rounds come closer to what they are without it.
    while alone.len() < ROUNDS || (least(&beside) >= 2 * least(&alone) && alone.len() < ROUNDS_MAX) {
        alone.push(polite_p99(running.address).await);
        let flood = Flood::begin(&running).await;
        beside.push(polite_p99(running.address).await);
        flood.end().await;
        running.no_seat_is_taken().await;
    }
    println!("p99 alone {alone:?}, beside a flood {beside:?}");
    let (alone, beside) = (least(&alone), least(&beside));
    assert!(beside < 2 * alone, "p99 is {beside:?} beside a flood and {alone:?} without");
    running.done().await;
}

/// Without fair queues the same flood does: the test above would notice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_common_line_the_flood_is_felt() {
    let upstream = limited_upstream().await;
    let running = gateway(&upstream, UNFAIR).await;
    let mut alone = Vec::new();
    for _ in 0..ROUNDS {
        alone.push(polite_p99(running.address).await);
    }
    let alone = least(&alone);
    let flood = Flood::begin(&running).await;
    let mut client = Client::connect(running.address).await;
    let started_at = Instant::now();
    // It may well be turned away, and comes again.
    while ask(&mut client, "polite-0").await != 200 {
        sleep(SERVICE_TIME).await;
    }
    assert!(started_at.elapsed() > 2 * alone, "{:?} in a line, {alone:?} alone", started_at.elapsed());
    flood.end().await;
    drop(client);
    running.done().await;
}
