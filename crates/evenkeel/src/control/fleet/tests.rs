//! A flow control obeys the allowance of its fleet; tested without a fleet.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use evenkeel_engine::flow_hash;
use evenkeel_engine::rate::RatePart;
use evenkeel_engine::time::{Instant, MILLISECOND, SECOND};
use evenkeel_engine::{Attributes, RequestInfo, User, WorkEstimate};
use evenkeel_fleet::{Allowance, FleetConfig, FleetSettings, FoundSeats, RateShares};

use crate::clock::ManualClock;
use crate::request::{Arrived, Rejection};
use crate::{FlowControl, Permit, Rejected};

/// A flow control whose seats are those of an allowance, by a clock that is set by hand.
struct Limited {
    flow: FlowControl,
    clock: ManualClock,
}

impl Limited {
    fn new() -> Self {
        let clock = ManualClock::new();
        let flow = FlowControl::builder().server_concurrency(60).manual_clock(clock.clone()).build();
        flow.shared().upkeep().gate.limit(Arc::downgrade(flow.shared()));
        flow.shared().allow(Allowance::NONE);
        Self { flow, clock }
    }

    /// Allows a grant of 4 seats for a second from now on, and a floor of 2 for ten.
    fn grant(&self) {
        let now = self.flow.shared().now();
        self.flow.shared().allow(Allowance::new(4, now + SECOND, 2, now + 10 * SECOND));
    }

    fn arrive(&self, user: &str) -> Pin<Box<Arrived>> {
        let user = User::new(user, ["system:authenticated"]);
        let request = RequestInfo::for_path("get", "/");
        Box::pin(self.flow.arrive(Attributes { user: &user, request: &request }, WorkEstimate::ONE_SEAT))
    }

    fn pass(&self, nanos: i64) {
        self.clock.advance(Duration::from_nanos(nanos.unsigned_abs()));
    }

    /// As many requests as get a seat, one after the other, each of another client.
    fn fill(&self) -> Vec<Permit> {
        let next = |number: usize| match poll(&mut self.arrive(&format!("client-{number}"))) {
            Poll::Ready(Ok(permit)) => Some(permit),
            _ => None,
        };
        (0..).map_while(next).collect()
    }
}

fn poll(request: &mut Pin<Box<Arrived>>) -> Poll<Result<Permit, Box<Rejected>>> {
    request.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

/// FL-13: an instance sums up what happens, and leaves it to the fleet what follows from it.
#[test]
fn fl_13_an_instance_of_a_fleet_that_finds_its_seats_sums_up_what_happens() {
    let clock = ManualClock::new();
    let flow = FlowControl::builder().server_concurrency_auto(2..=50).manual_clock(clock.clone()).build();
    let found = flow.shared().sum_up_for_fleet().unwrap();
    assert_eq!((found.bounds(), found.limit_seats(), found.as_learnt()), (2..=50, 20, None));
    flow.shared().upkeep().gate.limit(Arc::downgrade(flow.shared()));
    let limited = Limited { flow, clock };
    limited.grant();
    let permits = limited.fill();
    let waiting = limited.arrive("somebody");
    limited.pass(SECOND / 2);
    drop(permits);
    limited.pass(SECOND / 4);
    let input = limited.flow.shared().limit_input().unwrap();
    let is_near = |sum: f64, wanted: f64| (sum - wanted).abs() < 1e-6;
    let totals = input.totals;
    assert!(is_near(totals.ends(), 4.0) && is_near(totals.seconds, 0.75), "{totals:?}");
    // Four seats for half a second, and then one for a quarter: that of the request that had waited.
    assert!(is_near(totals.in_use, 2.25) && is_near(totals.seat_seconds, 2.0), "{totals:?}");
    assert!(!input.is_held_down && input.floor >= 1);
    drop(waiting);
    // The limit of the flow control itself tries nothing.
    limited.flow.tick();
    assert_eq!(limited.flow.concurrency().to_string(), "auto:2..50");
    assert_eq!(limited.flow.shared().seat_limit(), 4, "what the fleet allows");
    limited.flow.hold_limit(true);
    assert!(limited.flow.shared().limit_input().unwrap().is_held_down);
    // Seats that somebody has set are not found.
    let set = Limited::new();
    assert!(set.flow.shared().sum_up_for_fleet().is_none() && set.flow.shared().limit_input().is_none());
}

#[test]
fn fl_8_what_has_ended_starts_nothing_whoever_comes_first() {
    let limited = Limited::new();
    assert!(limited.fill().is_empty(), "nothing before the fleet says so");
    limited.grant();
    let mut permits = limited.fill();
    assert_eq!(permits.len(), 4);
    let mut waiting: Vec<_> = (0..4).map(|_| limited.arrive("b")).collect();
    assert!(waiting.iter_mut().all(|request| poll(request).is_pending()));

    // The grant is over, and no event said so. Requests that end do not let others start above the floor.
    limited.pass(SECOND);
    permits.truncate(2);
    assert!(waiting.iter_mut().all(|request| poll(request).is_pending()), "two seats of the floor are in use");
    permits.truncate(1);
    let started: Vec<_> = waiting.iter_mut().map(poll).filter(Poll::is_ready).collect();
    assert_eq!(started.len(), 1);

    // Nor does anything start when the floor is over too.
    limited.pass(9 * SECOND);
    drop((permits, started));
    assert!(limited.fill().is_empty());
    assert!(waiting.iter_mut().all(|request| !matches!(poll(request), Poll::Ready(Ok(_)))));

    // Until the fleet allows something again.
    limited.grant();
    let again: Vec<_> = waiting.iter_mut().map(poll).filter(Poll::is_ready).collect();
    assert_eq!(again.len() + limited.fill().len(), 4);
}

#[test]
fn fl_8_a_request_that_was_about_to_run_when_the_process_stopped_does_not_run() {
    let limited = Limited::new();
    limited.grant();
    let mut permits = limited.fill();
    let mut next = limited.arrive("b");
    assert!(poll(&mut next).is_pending());
    // It is started, but its task does not get to run before the grant is over.
    permits.pop();
    limited.pass(2 * SECOND);
    let Poll::Ready(Err(rejected)) = poll(&mut next) else { panic!("it runs") };
    assert_eq!(rejected.reason, crate::request::Rejection::TimeOut);
    // Its seat is free.
    assert_eq!(limited.flow.shared().limited_seats_in_use(), 3);

    // One that waited while the grant was renewed runs.
    limited.grant();
    drop(permits);
    let permits = limited.fill();
    let mut next = limited.arrive("b");
    assert!(poll(&mut next).is_pending());
    drop(permits);
    limited.pass(MILLISECOND);
    limited.grant();
    assert!(matches!(poll(&mut next), Poll::Ready(Ok(_))));
}

#[test]
fn fl_6_a_smaller_grant_lets_requests_run_on_and_starts_none() {
    let limited = Limited::new();
    limited.grant();
    let permits = limited.fill();
    limited.flow.shared().allow(Allowance::new(1, Instant::from_nanos(SECOND), 0, Instant::from_nanos(SECOND)));
    assert_eq!(limited.flow.shared().limited_seats_in_use(), 4, "the fleet is told that they are still in use");
    assert!(limited.fill().is_empty());
    drop(permits);
    assert_eq!(limited.fill().len(), 1);
}

#[test]
fn fl_3_the_fleet_is_told_what_each_flow_could_use() {
    let limited = Limited::new();
    limited.grant();
    let _permits = limited.fill();
    let _waiting: Vec<_> = ["b", "b", "c"].map(|user| limited.arrive(user)).into();
    let usage = limited.flow.shared().fleet_usage();
    assert_eq!((usage.in_use, usage.demands.iter().map(|(_, demand)| demand).sum::<u64>()), (4, 7));
    let load = limited.flow.shared().fleet_load(60);
    let [level] = &load.levels[..] else { panic!("{load:?}") };
    assert_eq!((level.demand, level.nominal, level.flow_weight), (7, 60, 6));
    let mut demands: Vec<u64> = level.flows.iter().map(|flow| flow.demand).collect();
    demands.sort_unstable();
    assert_eq!(demands, [1, 1, 1, 1, 1, 2]);
}

/// A fleet whose etcd is away.
fn alone(settings: FleetSettings) -> FleetConfig {
    let etcd = evenkeel_store::EtcdConfig::new(["127.0.0.1:1"]);
    FleetConfig { service: "checkout".into(), etcd, settings, lock_file: None }
}

/// FL-13: who says only in the settings of the fleet that the seats are to be found gets an instance that helps to find them.
#[tokio::test]
async fn fl_13_an_instance_sums_up_what_happens_also_if_only_its_fleet_says_so() {
    let settings = FleetSettings::default().auto(FoundSeats::unknown(2..=50, 20));
    let flow = FlowControl::builder().drive_by_hand().fleet(alone(settings)).build();
    assert_eq!(flow.concurrency().to_string(), "auto:2..50");
    assert!(flow.shared().limit_input().is_some());
    let set = FlowControl::builder().drive_by_hand().fleet(alone(FleetSettings::default())).build();
    assert!(set.shared().limit_input().is_none());
}

#[test]
fn a_fleet_needs_levels_that_keep_to_their_seats() {
    let join = |builder: crate::FlowControlBuilder| {
        let error = builder.drive_by_hand().fleet(alone(FleetSettings::default())).try_build().unwrap_err();
        error.to_string()
    };
    let kubernetes = join(FlowControl::builder().kubernetes());
    assert!(kubernetes.contains("borrow at once"), "{kubernetes}");
    let elsewhere = join(FlowControl::builder());
    assert!(elsewhere.contains("tokio runtime"), "{elsewhere}");
}

/// Each user may send a request a second, and waits for four seconds at most.
const RATED: &str = "
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: api, annotations: {evenkeel.dev/queuing: per-flow, evenkeel.dev/wait-limit: 4s}}
spec: {type: Limited, limited: {nominalConcurrencyShares: 100, limitResponse: {type: Queue, queuing: {}}}}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: users, annotations: {evenkeel.dev/rate: 1/s;burst=1}}
spec:
  matchingPrecedence: 100
  priorityLevelConfiguration: {name: api}
  distinguisherMethod: {type: ByUser}
  rules:
  - subjects: [{kind: Group, group: {name: '*'}}]
    nonResourceRules: [{verbs: ['*'], nonResourceURLs: ['*']}]
";

impl Limited {
    /// Users have rates, and another instance has requests of theirs.
    fn rated() -> Self {
        let clock = ManualClock::new();
        let builder = FlowControl::builder().server_concurrency(60).manual_clock(clock.clone()).drive_by_hand();
        let limited = Self { flow: builder.objects(RATED).build(), clock };
        limited.share(None);
        limited
    }

    /// Alice has this part of her rate here, if somebody has told of her demand.
    fn share(&self, part: Option<RatePart>) {
        let parts = part.map(|part| ("users".to_owned(), [(flow_hash("users", "alice"), part)].into()));
        self.flow.shared().share_rates(&RateShares {
            instances: 2,
            is_apart: false,
            parts: parts.into_iter().collect(),
        });
    }
}

#[test]
fn rl_6_a_request_goes_sooner_when_the_part_of_its_rate_grows() {
    let limited = Limited::rated();
    assert!(poll(&mut limited.arrive("alice")).is_ready());
    let mut second = limited.arrive("alice");
    assert!(poll(&mut second).is_pending());
    // By an equal part it would be after two seconds.
    limited.pass(100 * MILLISECOND);
    let rates = limited.flow.shared().fleet_rates();
    assert_eq!((rates.len(), &*rates[0].schema), (1, "users"));
    assert!(rates[0].flows[&flow_hash("users", "alice")] > 0, "{rates:?}");
    limited.share(Some(RatePart::WHOLE));
    limited.pass(949 * MILLISECOND);
    assert!(poll(&mut second).is_pending());
    limited.pass(MILLISECOND);
    assert!(poll(&mut second).is_ready());
}

#[test]
fn rl_6_a_request_whose_part_has_gone_is_rejected_when_its_wait_limit_ends() {
    let limited = Limited::rated();
    assert!(poll(&mut limited.arrive("alice")).is_ready());
    let mut second = limited.arrive("alice");
    assert!(poll(&mut second).is_pending());
    limited.share(Some(RatePart::NONE));
    limited.pass(SECOND * 39 / 10);
    assert!(poll(&mut second).is_pending());
    limited.pass(SECOND / 10);
    let Poll::Ready(Err(rejected)) = poll(&mut second) else { panic!("it is not rejected") };
    assert_eq!(rejected.reason, Rejection::RateLimit);
    // What it took is given back: as soon as there is a part, the next one passes.
    limited.share(Some(RatePart::WHOLE));
    limited.pass(SECOND);
    assert!(poll(&mut limited.arrive("alice")).is_ready());
    assert!(limited.flow.shared().fleet_rates()[0].flows.len() == 1);
}

#[test]
fn rl_6_cut_off_from_the_others_a_flow_has_an_equal_part() {
    let limited = Limited::rated();
    limited.share(Some(RatePart::WHOLE));
    let shares = RateShares { instances: 2, is_apart: true, parts: std::collections::BTreeMap::new() };
    limited.flow.shared().share_rates(&shares);
    let user = User::new("alice", ["system:authenticated"]);
    let request = RequestInfo::for_path("get", "/");
    let explained = limited.flow.explain(Attributes { user: &user, request: &request }, WorkEstimate::ONE_SEAT);
    assert_eq!(explained.rate.unwrap().part_percent, Some(50));
}
