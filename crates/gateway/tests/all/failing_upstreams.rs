//! Two upstreams, of which one fails: at once, now and then, slowly, by resets, or by never responding.

use crate::support;

use std::future::{Future, pending};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use evenkeel_gateway::Config;
use evenkeel_gateway::config::{HealthCheckConfig, Protocol};
use support::client::{Client, get};
use support::upstream::{Upstream, answer_all, has_more, ok};
use support::{PATIENCE, Running, config, eventually, start};

use crate::frames::{END_STREAM, Frames};

const FAILED: &str = "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n";
const UNAVAILABLE: &str = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";

/// An upstream that counts its requests, and does with each as a test says.
async fn counted<F>(on: impl Fn(usize) -> F + Clone + Send + Sync + 'static) -> (Upstream, Arc<AtomicUsize>)
where
    F: Future<Output = Option<String>> + Send + 'static,
{
    let count = Arc::<AtomicUsize>::default();
    let counter = Arc::clone(&count);
    let upstream = Upstream::new(move |mut client, _| {
        let (on, counter) = (on.clone(), Arc::clone(&counter));
        async move {
            while has_more(&mut client).await {
                client.answer().await;
                match on(counter.fetch_add(1, Ordering::SeqCst)).await {
                    Some(answer) => client.send(&answer).await,
                    None => return client.reset(),
                }
            }
        }
    });
    (upstream.await, count)
}

async fn good() -> (Upstream, Arc<AtomicUsize>) {
    counted(|_| async { Some(ok("good")) }).await
}

/// Settings with an admin endpoint, under which one that was ejected stays so for the rest of a test.
fn ejecting(upstreams: &[SocketAddr]) -> Config {
    let mut settings = config(upstreams);
    settings.admin.address = Some(SocketAddr::from(([127, 0, 0, 1], 0)).into());
    (settings.health.pause, settings.health.pause_max) = (10 * PATIENCE, 10 * PATIENCE);
    settings
}

/// Whether each upstream is up, by what the metrics say.
async fn up(running: &Running) -> Vec<bool> {
    let page = get(running.gateway.admin_address().unwrap(), "/metrics", "").await.text();
    let series = page.lines().filter(|line| line.starts_with("evenkeel_upstream_up{"));
    series.map(|line| line.ends_with(" 1")).collect()
}

/// Sends requests, several at a time, until the second upstream is down.
async fn until_ejected(running: &Running) {
    let address = running.address;
    let waiting = async {
        let mut under_way = tokio::task::JoinSet::new();
        while up(running).await != [true, false] {
            while under_way.len() < 8 {
                under_way.spawn(async move { get(address, "/", "").await.status });
            }
            // Those that wait in vain come back later.
            let _ = tokio::time::timeout(Duration::from_millis(20), under_way.join_next()).await;
        }
        while under_way.join_next().await.is_some() {}
    };
    tokio::time::timeout(PATIENCE, waiting).await.expect("it is ejected");
}

/// Once the other one is ejected, all requests are served, and it gets none.
async fn only_the_good_one_serves(running: &Running, good: &AtomicUsize, bad: &AtomicUsize) {
    let before = (good.load(Ordering::SeqCst), bad.load(Ordering::SeqCst));
    for _ in 0..20 {
        assert_eq!(get(running.address, "/", "").await.status, 200);
    }
    assert_eq!((good.load(Ordering::SeqCst), bad.load(Ordering::SeqCst)), (before.0 + 20, before.1));
}

#[tokio::test]
async fn one_that_responds_503_at_once_gets_no_more_requests() {
    let (good, served) = good().await;
    let (bad, failed) = counted(|_| async { Some(UNAVAILABLE.to_owned()) }).await;
    let running = start(ejecting(&[good.address, bad.address])).await;
    until_ejected(&running).await;
    only_the_good_one_serves(&running, &served, &failed).await;
    running.done().await;
}

#[tokio::test]
async fn one_that_fails_half_of_the_requests_gets_no_more() {
    let (good, served) = good().await;
    let half =
        |number: usize| async move { Some(if number.is_multiple_of(2) { ok("bad") } else { FAILED.to_owned() }) };
    let (bad, failed) = counted(half).await;
    let running = start(ejecting(&[good.address, bad.address])).await;
    until_ejected(&running).await;
    only_the_good_one_serves(&running, &served, &failed).await;
    running.done().await;
}

#[tokio::test]
async fn one_that_resets_connections_gets_no_more_requests() {
    let (good, served) = good().await;
    let (bad, failed) = counted(|_| async { None }).await;
    let running = start(ejecting(&[good.address, bad.address])).await;
    until_ejected(&running).await;
    only_the_good_one_serves(&running, &served, &failed).await;
    running.done().await;
}

/// What may be sent twice is sent to the other one; a POST is not, and waits for its timeout.
#[tokio::test]
async fn one_that_never_responds_gets_no_more_requests_and_those_that_wait_go_elsewhere() {
    let posts = Arc::<AtomicUsize>::default();
    let counter = Arc::clone(&posts);
    let good = Upstream::answering(move |request| {
        counter.fetch_add(usize::from(request.head.starts_with("POST")), Ordering::SeqCst);
        ok("good")
    });
    let good = good.await;
    let (bad, asked) = counted(|_| pending()).await;
    let mut settings = ejecting(&[good.address, bad.address]);
    settings.timeouts.response = Duration::from_secs(6);
    let running = start(settings).await;
    let address = running.address;
    let send_post = move |_| async move {
        let mut client = Client::connect(address).await;
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n").await;
        client.answer().await.status
    };
    let waiting: Vec<_> = (0..4).map(|number| tokio::spawn(send_post(number))).collect();
    eventually("a POST waits in vain", || asked.load(Ordering::SeqCst) > 0).await;
    // Every GET gets a response, though some of them were sent to the silent one.
    until_ejected(&running).await;
    let before = asked.load(Ordering::SeqCst);
    for _ in 0..20 {
        assert_eq!(get(address, "/", "").await.text(), "good");
    }
    assert_eq!(asked.load(Ordering::SeqCst), before);
    let mut statuses = Vec::new();
    for post in waiting {
        statuses.push(post.await.unwrap());
    }
    let served = statuses.iter().filter(|status| **status == 200).count();
    assert!(statuses.iter().all(|status| matches!(status, 200 | 504)) && served < 4, "{statuses:?}");
    assert_eq!(posts.load(Ordering::SeqCst), served);
    running.done().await;
}

#[tokio::test]
async fn one_that_is_much_slower_gets_few_requests() {
    let (quick, quickly) = good().await;
    let slow = |_| async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        Some(ok("slow"))
    };
    let (slow, slowly) = counted(slow).await;
    let running = start(ejecting(&[quick.address, slow.address])).await;
    let address = running.address;
    let round = async |count: usize| {
        let clients = (0..4).map(|_| {
            tokio::spawn(async move {
                for _ in 0..count {
                    assert_eq!(get(address, "/", "").await.status, 200);
                }
            })
        });
        for client in clients.collect::<Vec<_>>() {
            client.await.unwrap();
        }
    };
    // Each of them learns of it once, or a few times.
    round(20).await;
    let (quickly_before, slowly_before) = (quickly.load(Ordering::SeqCst), slowly.load(Ordering::SeqCst));
    round(100).await;
    let quickly = quickly.load(Ordering::SeqCst) - quickly_before;
    let slowly = slowly.load(Ordering::SeqCst) - slowly_before;
    assert!(quickly + slowly == 400 && slowly <= 12, "{slowly} of 400");
    assert_eq!(up(&running).await, [true, true]);
    running.done().await;
}

#[tokio::test]
async fn errors_that_all_upstreams_show_eject_nobody() {
    let ((a, of_a), (b, of_b)) =
        (counted(|_| async { Some(FAILED.to_owned()) }).await, counted(|_| async { Some(FAILED.to_owned()) }).await);
    let running = start(ejecting(&[a.address, b.address])).await;
    for _ in 0..10 {
        for _ in 0..20 {
            assert_eq!(get(running.address, "/", "").await.status, 500);
        }
        assert_eq!(up(&running).await, [true, true]);
    }
    let counts = [&of_a, &of_b].map(|count| count.load(Ordering::SeqCst));
    assert!(counts.iter().all(|count| *count > 20), "{counts:?}");
    running.done().await;
}

/// A response that fails is passed on, and sent nowhere else: nobody knows what the upstream has done.
#[tokio::test]
async fn responses_that_are_errors_are_not_retried() {
    for method in ["GET", "POST"] {
        let ((a, of_a), (b, of_b)) = (
            counted(|_| async { Some(UNAVAILABLE.to_owned()) }).await,
            counted(|_| async { Some(UNAVAILABLE.to_owned()) }).await,
        );
        let running = start(ejecting(&[a.address, b.address])).await;
        let mut client = Client::connect(running.address).await;
        client.send(&format!("{method} / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")).await;
        assert_eq!(client.answer().await.status, 503);
        assert_eq!(of_a.load(Ordering::SeqCst) + of_b.load(Ordering::SeqCst), 1, "{method}");
        drop(client);
        running.done().await;
    }
}

#[tokio::test]
async fn one_that_recovers_serves_again() {
    let (good, _) = good().await;
    let is_ill = Arc::new(AtomicBool::new(true));
    let state = Arc::clone(&is_ill);
    let (fickle, _) = counted(move |_| {
        let is_ill = state.load(Ordering::SeqCst);
        async move { Some(if is_ill { UNAVAILABLE.to_owned() } else { ok("recovered") }) }
    })
    .await;
    let mut settings = ejecting(&[good.address, fickle.address]);
    settings.health.pause = Duration::from_millis(100);
    (settings.health.pause_max, settings.health.slow_start) = (settings.health.pause, Duration::from_millis(200));
    let running = start(settings).await;
    until_ejected(&running).await;
    is_ill.store(false, Ordering::SeqCst);
    let recovering = async {
        let mut found = 0;
        while found < 5 {
            let answer = get(running.address, "/", "").await;
            assert_eq!(answer.status, 200);
            found += usize::from(answer.text() == "recovered");
        }
    };
    tokio::time::timeout(PATIENCE, recovering).await.expect("it serves again");
    assert_eq!(up(&running).await, [true, true]);
    running.done().await;
}

#[tokio::test]
async fn upstreams_get_requests_by_their_weights() {
    let ((a, of_a), (b, of_b)) = (good().await, good().await);
    let mut settings = config(&[a.address, b.address]);
    settings.upstreams[0].weight = 3;
    let running = start(settings).await;
    // On one connection: the next request is read when the one before is done.
    let mut client = Client::connect(running.address).await;
    for _ in 0..40 {
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        client.answer().await;
    }
    let counts = [of_a, of_b].map(|count| count.load(Ordering::SeqCst));
    // A busy machine may make one look slower than the other for a while.
    assert!(counts[0] >= 26 && counts[0] + counts[1] == 40, "{counts:?}");
    drop(client);
    running.done().await;
}

/// A check that passes or fails soon.
fn quick_check() -> HealthCheckConfig {
    let interval = Duration::from_millis(20);
    HealthCheckConfig { interval, timeout: PATIENCE, ..HealthCheckConfig::new("/healthz?of=gateway") }
}

/// Answers the health check as a test says, and everything else well.
async fn checked(name: &'static str) -> (Upstream, Arc<AtomicBool>) {
    let is_well = Arc::new(AtomicBool::new(true));
    let state = Arc::clone(&is_well);
    let upstream = Upstream::answering(move |request| {
        let is_check = request.head.starts_with("GET /base/healthz?of=gateway HTTP/1.1\r\n");
        if is_check && !state.load(Ordering::SeqCst) { UNAVAILABLE.to_owned() } else { ok(name) }
    });
    (upstream.await, is_well)
}

async fn until_up(running: &Running, expected: [bool; 2]) {
    let waiting = async {
        while up(running).await != expected {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("{expected:?}"));
}

#[tokio::test]
async fn one_whose_health_check_fails_gets_no_requests() {
    let ((a, a_is_well), (b, b_is_well)) = (checked("a").await, checked("b").await);
    let mut settings = ejecting(&[a.address, b.address]);
    for upstream in &mut settings.upstreams {
        upstream.url = format!("{}base", upstream.url).parse().unwrap();
    }
    settings.health.check = Some(quick_check());
    settings.health.slow_start = Duration::ZERO;
    let mut running = start(settings).await;
    let text = async |running: &Running| get(running.address, "/", "").await.text();
    assert_eq!(up(&running).await, [true, true]);
    b_is_well.store(false, Ordering::SeqCst);
    until_up(&running, [true, false]).await;
    for _ in 0..10 {
        assert_eq!(text(&running).await, "a");
    }
    // If all fail, they are asked all the same.
    a_is_well.store(false, Ordering::SeqCst);
    until_up(&running, [false, false]).await;
    assert_eq!(get(running.address, "/", "").await.status, 200);
    b_is_well.store(true, Ordering::SeqCst);
    until_up(&running, [false, true]).await;
    for _ in 0..10 {
        assert_eq!(text(&running).await, "b");
    }
    let page = get(running.gateway.admin_address().unwrap(), "/metrics", "").await.text();
    assert!(page.contains("evenkeel_upstream_checks_total{outcome=\"failed\""), "{page}");
    // Without a check, nothing is known against anybody.
    let mut settings = (*running.gateway.config()).clone();
    settings.health.check = None;
    running.gateway.reconfigure(settings).await.unwrap();
    until_up(&running, [true, true]).await;
    running.done().await;
}

#[tokio::test]
async fn health_checks_use_http2_where_the_upstream_does() {
    let is_well = Arc::new(AtomicBool::new(false));
    let state = Arc::clone(&is_well);
    let upstream = Upstream::new(move |client, _| {
        let state = Arc::clone(&state);
        async move {
            let mut frames = Frames::accept(client, &[]).await;
            while let Some(stream) = frames.next_request().await {
                let status = if state.load(Ordering::SeqCst) { "204" } else { "503" };
                frames.send_head(stream, &[(":status", status)], END_STREAM).await;
            }
        }
    });
    let upstream = upstream.await;
    let other = Upstream::new(|client, _| answer_all(client, |_| ok("here"))).await;
    let mut settings = ejecting(&[other.address, upstream.address]);
    settings.upstreams[1].protocol = Protocol::Http2;
    settings.health.check = Some(quick_check());
    let running = start(settings).await;
    until_up(&running, [true, false]).await;
    is_well.store(true, Ordering::SeqCst);
    until_up(&running, [true, true]).await;
    running.done().await;
}
