//! The measures of the specification that are about time and fairness, each with its figure, its bar and the verdict.
//!
//! Figures of a debug build on a busy machine say little, so that here only what must hold anywhere is a failure: that the seats move at
//! all. `cargo xtask fleet` prints the figures of an optimised build.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::gateways::{Gateway, SEATS, Sharing};
use super::service::Service;
use crate::etcd_server::EtcdServer;
use crate::figures::{figure, told};
use crate::until::until;

/// The terms of the bars: those that a fleet has by default.
const FLEET: Sharing = Sharing::Fleet("ttl: 3s");
/// All tenants that do not matter.
const ANYBODY: [&str; 1] = ["anybody"];

pub(super) fn is_etcd_missing() -> bool {
    std::process::Command::new("etcd").arg("--version").output().is_err()
}

async fn until_in_flight(service: &Service, seats: u64) -> Duration {
    let start = Instant::now();
    until(&format!("{seats} requests in flight"), || async { (service.in_flight() >= seats).then_some(()) }).await;
    start.elapsed()
}

fn print(measure: &str, took: Duration, bar: Duration) {
    let ms = |time: Duration| format!("{} ms", time.as_millis());
    figure(measure, &ms(took), &ms(bar), took <= bar);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fl_4_seats_follow_the_demand_of_three_gateways() {
    if is_etcd_missing() {
        return evenkeel_missing_tool::skip("etcd is not installed");
    }
    let (etcd, service) = (EtcdServer::start().await, Service::start().await);
    let members = [etcd.endpoint()];
    let mut fleet = Gateway::start_three(&service, &members, &FLEET, &ANYBODY).await;
    // 90/5/5, then 5/5/90.
    let want = |fleet: &[Gateway], wanted: [u64; 3]| {
        fleet.iter().zip(wanted).for_each(|(gateway, wanted)| gateway.clients.want(wanted));
    };
    want(&fleet, [54, 3, 3]);
    until_in_flight(&service, SEATS * 95 / 100).await;
    want(&fleet, [3, 3, 54]);
    let start = Instant::now();
    until("the third has the seats", || async { (service.in_flight_of(2) >= 50).then_some(()) }).await;
    until_in_flight(&service, SEATS * 95 / 100).await;
    print("demand moves from 90/5/5 to 5/5/90, until 95 % are in use", start.elapsed(), Duration::from_secs(1));

    // Everybody sees the same fleet.
    for gateway in &fleet {
        gateway.until_page("/readyz?verbose", &["[+]fleet ok: ", " of 60 seats"]).await;
        let metrics = ["\nevenkeel_fleet_instances 3", "\nevenkeel_fleet_footing{footing=\"grant\"} 1"];
        gateway.until_page("/metrics", &metrics).await;
        for (name, _) in crate::monitoring::OF_FLEET {
            gateway.until_page("/metrics", &[&format!("\n{name}")]).await;
        }
        let fleet = gateway.json("/debug/explain?method=GET&url=/&user=anybody").await["fleet"].clone();
        assert_eq!((fleet["total"].as_u64(), fleet["instances"].as_u64()), (Some(60), Some(3)), "{fleet}");
        assert_eq!(
            (fleet["service"].as_str(), fleet["footing"].as_str()),
            (Some("checkout"), Some("grant")),
            "{fleet}"
        );
        gateway.until_page("/debug/status", &["\"footing\":\"grant\"", "\"total\":60"]).await;
    }

    // One shuts down, and has left when it has ended: nobody waits for its seats.
    fleet.remove(0).shut_down().await;
    fleet[0].until_page("/metrics", &["\nevenkeel_fleet_instances 2"]).await;

    // One is killed. Its seats are free after ttl and grace, less its floor of a quarter.
    want(&fleet, [60, 60, 0]);
    let halves = || fleet.iter().all(|gateway| service.in_flight_of(gateway.number) >= SEATS * 4 / 10);
    until("each has about a half", || async { halves().then_some(()) }).await;
    fleet.remove(0).kill(&service);
    let free = until_in_flight(&service, SEATS * 3 / 4 * 95 / 100).await;
    print("seats of a dead gateway, less its floor", free, Duration::from_secs(3 + 3 + 1));
    let (max, with_dead) = service.max();
    assert!(max <= SEATS, "{max} in flight");
    let measure = "in flight at the service while demand moves and gateways go";
    figure(measure, &format!("at most {max}"), &format!("{SEATS}"), max <= SEATS);
    told("apart: with what the dead gateway had sent", &format!("at most {with_dead}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fl_9_without_etcd_three_gateways_serve_their_floors() {
    if is_etcd_missing() {
        return evenkeel_missing_tool::skip("etcd is not installed");
    }
    let lasts = std::env::var("FLEET_AWAY_SECONDS").map_or(5, |seconds| seconds.parse().unwrap());
    let (mut etcd, service) = (EtcdServer::start().await, Service::start().await);
    let members = [etcd.endpoint()];
    let fleet = Gateway::start_three(&service, &members, &Sharing::Fleet("ttl: 1500ms"), &ANYBODY).await;
    for gateway in &fleet {
        gateway.clients.want(SEATS);
    }
    until_in_flight(&service, SEATS * 95 / 100).await;
    until("all floors are known", || async {
        let mut floors = 0;
        for gateway in &fleet {
            floors += gateway.fleet().await["floor"].as_u64().unwrap();
        }
        (floors == SEATS / 2).then_some(())
    })
    .await;
    // Also with etcd, a seat is empty at the service from the end of a request until the next one has come through.
    let with_etcd = mean_in_flight(&service, Duration::from_secs(2), SEATS).await;
    etcd.pause();
    // Before the last grant has ended, few requests in flight say only that the machine is slow.
    for gateway in &fleet {
        gateway.until_page("/readyz?verbose", &["HTTP/1.1 200", "[-]fleet cut off from etcd"]).await;
    }
    // Of each gateway: while one of them still has what began before, others must not be taken for those that have less.
    until("floors only", || async { (0..3).all(|gateway| service.in_flight_of(gateway) <= SEATS / 6).then_some(()) })
        .await;
    until_in_flight(&service, SEATS / 2 * 95 / 100).await;
    // For as long as it is away.
    let away = mean_in_flight(&service, Duration::from_secs(lasts), SEATS / 2).await;
    let part = away / with_etcd;
    figure(
        &format!("etcd away for {lasts} s, all busy: in flight on average, of what is in flight with it"),
        &format!("{away:.1} of {with_etcd:.1}, {part:.3} x"),
        "0.5 x",
        // The seats in between are those of requests that end and begin: the same part of each.
        part >= 0.495,
    );
    etcd.resume();
    let back = until_in_flight(&service, SEATS * 95 / 100).await;
    print("everything is back after etcd is", back, Duration::from_secs(1));
    assert!(service.max().0 <= SEATS, "{} in flight", service.max().0);
}

/// How many requests are in flight on average for a while. More than `most` are a failure.
async fn mean_in_flight(service: &Service, lasts: Duration, most: u64) -> f64 {
    let start = Instant::now();
    let (mut sum, mut samples) = (0, 0_u32);
    while start.elapsed() < lasts {
        let in_flight = service.in_flight();
        assert!(in_flight <= most, "{in_flight} in flight, at most {most} may be");
        (sum, samples) = (sum + u32::try_from(in_flight).unwrap(), samples + 1);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    f64::from(sum) / f64::from(samples.max(1))
}

/// Twelve tenants, all with more requests than they can have: one alone on a gateway, eleven on the other two.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fl_4_twelve_tenants_on_three_gateways_have_the_same() {
    if is_etcd_missing() {
        return evenkeel_missing_tool::skip("etcd is not installed");
    }
    let etcd = EtcdServer::start().await;
    let shared = jain_index(&[etcd.endpoint()], FLEET).await;
    let apart = jain_index(&[etcd.endpoint()], Sharing::Apart { seats: SEATS / 3 }).await;
    let measure = "Jain index of seat-time of 12 tenants, spread unevenly";
    figure(measure, &format!("{shared:.3}"), "0.990", shared >= 0.99);
    told("the same with a third of the seats for each gateway", &format!("{apart:.3}"));
    // One tenant has a third of the seats, eleven share the rest: 0.43.
    assert!(shared > 0.9 && apart < 0.6, "{shared} and {apart}");
}

/// What each gateway writes into etcd, beside the ledger: the versions of the keys count the writes.
fn writes(etcd: &EtcdServer) -> BTreeMap<String, u64> {
    let keys = etcd.etcdctl(&["get", "--prefix", "/evenkeel/fleet/checkout/live/", "--write-out=json"]).unwrap();
    let keys: serde_json::Value = serde_json::from_str(&keys).unwrap();
    let key = |key: &serde_json::Value| (key["key"].as_str().unwrap().to_owned(), key["version"].as_u64().unwrap());
    keys["kvs"].as_array().unwrap().iter().map(key).collect()
}

/// How many writes a second of the gateway that writes the most, while something happens again and again.
async fn writes_in_a_second(etcd: &EtcdServer, lasts: Duration, mut happens: impl FnMut()) -> f64 {
    let (before, start) = (writes(etcd), Instant::now());
    while start.elapsed() < lasts {
        happens();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let (after, seconds) = (writes(etcd), start.elapsed().as_secs_f64());
    let more = after.iter().filter_map(|(key, count)| Some(count - before.get(key)?));
    f64::from(u32::try_from(more.max().unwrap()).unwrap()) / seconds
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fl_3_etcd_gets_a_write_a_second_at_rest_and_four_in_a_storm() {
    if is_etcd_missing() {
        return evenkeel_missing_tool::skip("etcd is not installed");
    }
    let (etcd, service) = (EtcdServer::start().await, Service::start().await);
    let members = [etcd.endpoint()];
    let fleet = Gateway::start_three(&service, &members, &FLEET, &ANYBODY).await;
    fleet[0].until_page("/metrics", &["\nevenkeel_fleet_instances 3"]).await;
    let lasts = Duration::from_secs(if std::env::var_os("FLEET_LIVE_SECONDS").is_some() { 20 } else { 4 });
    // The division of those that have joined settles first.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let at_rest = writes_in_a_second(&etcd, lasts, || {}).await;
    let mut random = fastrand::Rng::with_seed(7);
    let storm = || fleet.iter().for_each(|gateway| gateway.clients.want(random.u64(0..2 * SEATS)));
    let in_a_storm = writes_in_a_second(&etcd, lasts, storm).await;
    // Which write is the last one that counts is chance: one more or less in all.
    let one = 1.0 / lasts.as_secs_f64();
    for (measure, writes, bar) in [
        ("writes to etcd a second, a gateway at rest", at_rest, 1.0),
        ("the same, demand changes ten times a second", in_a_storm, 4.0),
    ] {
        figure(measure, &format!("{writes:.2}"), &format!("{bar}"), writes <= bar + one);
        assert!(writes <= bar + one, "{measure}: {writes}");
    }
    assert!(service.max().0 <= SEATS, "{} in flight", service.max().0);
}

async fn jain_index(members: &[String], sharing: Sharing) -> f64 {
    let service = Service::start().await;
    let (alone, five, six) = (["t0"], ["t1", "t2", "t3", "t4", "t5"], ["t6", "t7", "t8", "t9", "t10", "t11"]);
    let mut gateways = Vec::new();
    for (number, tenants) in [(0, &alone[..]), (1, &five[..]), (2, &six[..])] {
        let gateway = Gateway::start(number, &service, members, sharing.clone(), tenants).await;
        gateway.clients.want(2 * SEATS);
        gateways.push(gateway);
    }
    until_in_flight(&service, SEATS * 95 / 100).await;
    // Until the seats have moved to where they belong.
    tokio::time::sleep(Duration::from_secs(2)).await;
    service.take_seat_time();
    let lasts = if std::env::var_os("FLEET_LIVE_SECONDS").is_some() { 10 } else { 4 };
    tokio::time::sleep(Duration::from_secs(lasts)).await;
    let seat_time: BTreeMap<String, Duration> = service.take_seat_time();
    assert!(service.max().0 <= SEATS, "{} in flight", service.max().0);
    let times: Vec<f64> = seat_time.values().map(Duration::as_secs_f64).collect();
    let (sum, squares) = times.iter().fold((0.0, 0.0), |(sum, squares), time| (sum + time, squares + time * time));
    sum * sum / (12.0 * squares)
}
