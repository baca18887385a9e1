//! What a fleet does with a real etcd: seats follow demand, and the service never gets more than it has.

use std::sync::Arc;
use std::time::{Duration, Instant};

use evenkeel_fleet::FoundSeats;

use crate::etcd_server::{EtcdCluster, EtcdServer};
use crate::instance::{Running, SEATS, Service};
use crate::until::until;

fn is_etcd_missing() -> bool {
    std::process::Command::new("etcd").arg("--version").output().is_err()
}

fn start(count: u64, wanted: u64, service: &Arc<Service>, endpoints: &[String]) -> Vec<Running> {
    (0..count).map(|number| Running::start(number, wanted, service, endpoints)).collect()
}

fn in_use(fleet: &[Running]) -> u64 {
    fleet.iter().map(|running| running.instance.in_use()).sum()
}

fn want_everything(fleet: &[Running]) {
    for running in fleet {
        running.instance.want(SEATS);
    }
}

/// Waits until this many seats are in use.
async fn until_in_use(fleet: &[Running], seats: u64) -> Duration {
    let start = Instant::now();
    until(&format!("{seats} seats in use"), || async { (in_use(fleet) >= seats).then_some(()) }).await;
    start.elapsed()
}

async fn until_floors_only(fleet: &[Running]) {
    until("floors only", || async { (in_use(fleet) <= SEATS / 2).then_some(()) }).await;
    until_in_use(fleet, SEATS / 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fl_5_seats_follow_demand_and_a_fleet_shrinks_and_grows() {
    if is_etcd_missing() {
        return evenkeel_missing_tool::skip("etcd is not installed");
    }
    let (etcd, service) = (EtcdServer::start().await, Arc::new(Service::default()));
    let endpoints = [etcd.endpoint()];
    let mut fleet = start(3, 20, &service, &endpoints);
    until_in_use(&fleet, SEATS).await;

    // 5/5/90.
    for (running, wanted) in fleet.iter().zip([3, 3, 54]) {
        running.instance.want(wanted);
    }
    let moved = Instant::now();
    until("seats for the third", || async { (fleet[2].instance.in_use() >= 50).then_some(()) }).await;
    println!("demand followed after {} ms", moved.elapsed().as_millis());

    // One leaves: the others know that it has gone, and have its seats.
    let leaver = fleet.remove(2);
    leaver.instance.want(0);
    assert!(leaver.fleet.leave(Duration::from_secs(60)).await, "it has left");
    want_everything(&fleet);
    until("two instances", || async {
        fleet.iter().all(|running| running.fleet.status().instances == 2).then_some(())
    })
    .await;
    // Both want everything: each ends with half. Until then the first may have nearly all, and would lose nothing with the other.
    until("half of the seats for each", || async {
        fleet.iter().all(|running| running.instance.in_use() == SEATS / 2).then_some(())
    })
    .await;

    // One is killed: its seats are free after ttl and grace, less its floor.
    let killed = Instant::now();
    let dead = fleet.remove(1).kill();
    dead.want(0);
    until_in_use(&fleet, SEATS - SEATS / 4).await;
    println!("seats of a dead instance after {} ms", killed.elapsed().as_millis());
    assert!(killed.elapsed() >= Duration::from_secs(1), "not before its requests have ended");

    // A new one joins.
    fleet.push(Running::start(7, SEATS, &service, &endpoints));
    until("seats for the new one", || async { (fleet[1].instance.in_use() > 5).then_some(()) }).await;
    assert!(service.in_flight_max() <= SEATS, "{} in flight", service.in_flight_max());
}

/// FL-13: each further seat brings as much as the others here, so that the fleet takes all that it may have.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fl_13_one_instance_finds_the_seats_for_all() {
    if is_etcd_missing() {
        return evenkeel_missing_tool::skip("etcd is not installed");
    }
    let (etcd, service) = (EtcdServer::start().await, Arc::new(Service::default()));
    let found = FoundSeats::unknown(3..=36, 6);
    let start = Instant::now();
    let start_one = |number| Running::start_finding(found, number, &service, &[etcd.endpoint()]);
    let mut fleet: Vec<Running> = (0..3).map(start_one).collect();
    until("more seats", || async { fleet.iter().all(|one| one.fleet.status().seats >= 20).then_some(()) }).await;
    println!("20 seats after {} ms", start.elapsed().as_millis());
    let limits: Vec<_> = fleet.iter().map(|one| one.fleet.status().limit.unwrap()).collect();
    assert_eq!(limits.iter().filter(|limit| limit.here.is_some()).count(), 1, "one finds them: {limits:?}");

    // The one that finds them is killed.
    let at = limits.iter().position(|limit| limit.here.is_some()).unwrap();
    let before = limits[at].found.by;
    fleet.remove(at).kill().want(0);
    until("another one", || async {
        let limit = fleet[0].fleet.status().limit.unwrap();
        (limit.found.by != before && limit.found.limit_seats() >= 10).then_some(())
    })
    .await;
    assert!(service.in_flight_max() <= 36, "{} in flight", service.in_flight_max());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fl_9_without_etcd_the_floors_are_served() {
    if is_etcd_missing() {
        return evenkeel_missing_tool::skip("etcd is not installed");
    }
    let (mut etcd, service) = (EtcdServer::start().await, Arc::new(Service::default()));
    let fleet = start(3, SEATS, &service, &[etcd.endpoint()]);
    until_in_use(&fleet, SEATS).await;
    // Each is told its floor, a sixth of the seats.
    until("floors", || async {
        fleet.iter().all(|running| running.fleet.status().allowance.floor == SEATS / 6).then_some(())
    })
    .await;
    etcd.pause();
    until_floors_only(&fleet).await;
    etcd.resume();
    let back = until_in_use(&fleet, SEATS).await;
    println!("all seats in use {} ms after etcd goes on", back.as_millis());
    etcd.kill();
    until_floors_only(&fleet).await;
    etcd.restart().await;
    until_in_use(&fleet, SEATS).await;
    assert!(service.in_flight_max() <= SEATS, "{} in flight", service.in_flight_max());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fl_1_the_leader_of_three_members_is_killed() {
    if is_etcd_missing() {
        return evenkeel_missing_tool::skip("etcd is not installed");
    }
    let (mut etcd, service) = (EtcdCluster::start(3).await, Arc::new(Service::default()));
    // Each has a third: one that was first could have everything.
    let fleet = start(3, SEATS / 3, &service, &etcd.endpoints());
    until_in_use(&fleet, SEATS).await;
    let before = fleet[0].fleet.status().ledger_revision;
    let leader = etcd.leader().await;
    etcd.member(leader).kill();
    // Demand moves: the ledger has to be written by way of the others.
    for (running, wanted) in fleet.iter().zip([3, 3, 54]) {
        running.instance.want(wanted);
    }
    until("seats for the third", || async { (fleet[2].instance.in_use() >= 50).then_some(()) }).await;
    assert!(fleet[0].fleet.status().ledger_revision > before);
    assert!(service.in_flight_max() <= SEATS, "{} in flight", service.in_flight_max());
}

/// Ten seconds of faults, or as many as `FLEET_LIVE_SECONDS` says. `cargo xtask fleet` has ten minutes of them with gateways.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fl_6_the_service_never_gets_more_than_it_has() {
    if is_etcd_missing() {
        return evenkeel_missing_tool::skip("etcd is not installed");
    }
    let lasts = std::env::var("FLEET_LIVE_SECONDS").map_or(10, |seconds| seconds.parse().expect("a number"));
    let seed = fastrand::u64(..);
    println!("seed {seed}, {lasts} s");
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut etcd, service) = (EtcdServer::start().await, Arc::new(Service::default()));
    let endpoints = [etcd.endpoint()];
    let mut fleet = start(3, SEATS, &service, &endpoints);
    until_in_use(&fleet, SEATS).await;
    let (start, mut faults) = (Instant::now(), 0);
    while start.elapsed() < Duration::from_secs(lasts) {
        faults += 1;
        let at = random.usize(0..fleet.len());
        match random.u32(0..6) {
            0 => etcd.restart().await,
            1 => {
                etcd.pause();
                tokio::time::sleep(Duration::from_millis(random.u64(0..3000))).await;
                etcd.resume();
            }
            2 => {
                // It dies, and another one starts in its place.
                fleet.remove(at).kill().want(0);
                fleet.push(Running::start(random.u64(..), SEATS, &service, &endpoints));
            }
            _ => fleet[at].instance.want(random.u64(0..SEATS)),
        }
        tokio::time::sleep(Duration::from_millis(random.u64(0..1000))).await;
        assert!(service.in_flight_max() <= SEATS, "seed {seed}: {} in flight", service.in_flight_max());
    }
    // Nothing is stuck.
    want_everything(&fleet);
    until_in_use(&fleet, SEATS / 2).await;
    println!("{faults} faults, at most {} of {SEATS} in flight", service.in_flight_max());
    assert!(service.in_flight_max() <= SEATS, "seed {seed}: {} in flight", service.in_flight_max());
}
