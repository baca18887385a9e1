//! Everything that can fail, one thing after the other and at random: the service never works on more requests than it has seats.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::bars::is_etcd_missing;
use super::etcd_proxy::Link;
use super::gateways::{Gateway, SEATS, Sharing};
use super::history::Recorder;
use super::service::Service;
use crate::etcd_server::EtcdCluster;
use crate::figures::{figure, told};
use crate::until::until;

/// Short, so that a test meets all of it in little time. Requests are shorter than the grace.
const FLEET: Sharing = Sharing::Fleet("ttl: 1500ms, floorHold: 8s");

/// What may happen.
#[derive(Debug, Clone, Copy)]
enum Fault {
    /// A gateway is killed, and another one starts in its place.
    Kill,
    /// A gateway is stopped for longer than its grant lasts.
    Stop,
    /// A member of etcd is killed and comes back: the leader, or the only one.
    EtcdLeader,
    /// All members of etcd are stopped.
    EtcdStopped,
    /// A gateway is cut off from etcd.
    Cut,
    /// Its connections are slow.
    Slow,
    /// Demand moves.
    Demand,
}

/// A quarter of a minute of faults with one member of etcd; `cargo xtask fleet` makes it ten minutes with three.
#[expect(clippy::too_many_lines, reason = "one story, from the first gateway to the last check")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fl_6_the_service_of_three_gateways_never_gets_more_than_it_has() {
    if is_etcd_missing() {
        return evenkeel_missing_tool::skip("etcd is not installed");
    }
    let lasts: Option<u64> = std::env::var("FLEET_LIVE_SECONDS").ok().map(|seconds| seconds.parse().unwrap());
    let (size, lasts) = lasts.map_or((1, 15), |seconds| (3, seconds));
    let seed = fastrand::u64(..);
    println!("seed {seed}: {lasts} s, {size} members of etcd");
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut etcd, service) = (EtcdCluster::start(size).await, Service::start().await);
    let members = etcd.endpoints();
    let recorder = Recorder::start(&members);
    let (mut next, mut registrations) = (0.., BTreeMap::new());
    let mut fleet = Vec::new();
    for number in next.by_ref().take(3) {
        let gateway = Gateway::start(number, &service, &members, FLEET, &["anybody"]).await;
        registrations.insert(number, gateway.registration().await);
        gateway.clients.want(SEATS);
        fleet.push(gateway);
    }
    until("all seats in use", || async { (service.in_flight() >= SEATS * 95 / 100).then_some(()) }).await;
    let everything = [
        Fault::Kill,
        Fault::Stop,
        Fault::EtcdLeader,
        Fault::EtcdStopped,
        Fault::Cut,
        Fault::Slow,
        Fault::Demand,
        Fault::Demand,
    ];
    let (start, mut faults) = (Instant::now(), 0);
    let mut order = everything;
    while start.elapsed() < Duration::from_secs(lasts) {
        // All of them once, then all again in another order.
        if faults % order.len() == 0 {
            random.shuffle(&mut order);
        }
        let fault = order[faults % order.len()];
        faults += 1;
        let at = random.usize(0..fleet.len());
        match fault {
            Fault::Kill => {
                fleet.remove(at).kill(&service);
                let number = next.next().unwrap();
                let gateway = Gateway::start(number, &service, &members, FLEET, &["anybody"]).await;
                registrations.insert(number, gateway.registration().await);
                gateway.clients.want(SEATS);
                fleet.push(gateway);
            }
            Fault::Stop => {
                let seconds = if size > 1 { 10 } else { 4 };
                fleet[at].stop();
                tokio::time::sleep(Duration::from_secs(seconds)).await;
                service.note_going_on(fleet[at].number);
                fleet[at].go_on();
            }
            Fault::EtcdLeader => {
                let leader = etcd.leader().await;
                etcd.member(leader).restart().await;
            }
            Fault::EtcdStopped => {
                (0..size).for_each(|member| etcd.member(member).pause());
                tokio::time::sleep(Duration::from_millis(random.u64(500..4000))).await;
                (0..size).for_each(|member| etcd.member(member).resume());
            }
            Fault::Cut => {
                fleet[at].etcd.set(Link::Cut);
                tokio::time::sleep(Duration::from_millis(random.u64(500..4000))).await;
                fleet[at].etcd.set(Link::Up);
            }
            Fault::Slow => {
                fleet[at].etcd.set(Link::Slow(Duration::from_millis(random.u64(50..500))));
                tokio::time::sleep(Duration::from_millis(random.u64(500..4000))).await;
                fleet[at].etcd.set(Link::Up);
            }
            Fault::Demand => fleet.iter().for_each(|gateway| gateway.clients.want(random.u64(0..SEATS))),
        }
        tokio::time::sleep(Duration::from_millis(random.u64(0..1000))).await;
        assert!(service.max().0 <= SEATS, "seed {seed}, {fault:?}: {} in flight", service.max().0);
    }
    // Nothing is stuck: the seats come back, less the floors of gateways that were killed a short while ago.
    for gateway in &fleet {
        gateway.clients.want(SEATS);
    }
    until("seats in use", || async { (service.in_flight() >= SEATS * 95 / 100).then_some(()) }).await;
    let (max, with_dead) = service.max();
    let verdict = recorder.check(&service.history(), &registrations);
    let (seconds, starts) = (start.elapsed().as_secs(), verdict.starts);
    let measure =
        format!("in flight at the service, {faults} faults in {seconds} s, {starts} requests, {size} members of etcd");
    figure(&measure, &format!("at most {max}"), &format!("{SEATS}"), max <= SEATS);
    told("apart: with what killed gateways had sent", &format!("at most {with_dead}"));
    told(
        "apart: with what was being sent by gateways that were stopped",
        &format!("at most {}", service.max_with_late()),
    );
    let measure = format!(
        "moments of its history with more than {SEATS} held; {} of {starts} starts compared with the ledgers of their time, at most {} held \
         in any",
        verdict.compared, verdict.held_max,
    );
    figure(&measure, &verdict.violations.len().to_string(), "0", verdict.violations.is_empty());
    assert!(max <= SEATS, "seed {seed}: {max} in flight");
    assert!(verdict.violations.is_empty(), "seed {seed}: {:?}", &verdict.violations[..verdict.violations.len().min(5)]);
    assert!(verdict.compared > 0, "seed {seed}: no start could be compared with a ledger");
}
