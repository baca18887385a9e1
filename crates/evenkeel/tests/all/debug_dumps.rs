//! The dumps are those of the specification, byte for byte (OB-11 to OB-14).

use crate::observed;

use std::time::Duration;

use evenkeel::FlowControl;
use evenkeel::debug::RequestColumns;
use evenkeel_engine::deal::{DealSize, Dealer};
use evenkeel_engine::{Attributes, RequestInfo, User, WorkEstimate, flow_hash};
use observed::{Observed, queuing_level, schema, started, user_with_hand};

/// 2026-01-01T00:00:00Z.
const NEW_YEAR: Duration = Duration::from_secs(1_767_225_600);

#[test]
fn ob_11_and_ob_12_the_state_after_row_8_of_trace_t1() {
    // Five shares of ten, of four seats.
    let observed = Observed::new(4, vec![queuing_level("demo", 5, 4, 2, 2), schema("fs", "demo")]);
    let [a, b, c] = [[0, 1], [2, 1], [3, 2]].map(|hand| user_with_hand("fs", 4, &hand));
    let at = |nanos: u64| observed.clock.advance(Duration::from_nanos(nanos).saturating_sub(observed.clock.elapsed()));
    drop(started(observed.arrive("nobody", WorkEstimate::ONE_SEAT)));
    let mut held = Vec::new();
    for (nanos, user) in [
        (0, &a),
        (1_000_000, &a),
        (2_000_000, &a),
        (2_500_000, &a),
        (3_000_000, &a),
        (3_000_001, &b),
        (3_000_007, &a),
        (4_000_000, &c),
    ] {
        at(nanos);
        held.push(observed.arrive(user, WorkEstimate::ONE_SEAT));
    }
    assert_eq!(observed.flow.dump_queues(), "\
PriorityLevelName, Index,  PendingRequests, ExecutingRequests, SeatsInUse, NextDispatchR, InitialSeatsSum, MaxSeatsSum, TotalWorkSum
demo,              0,      2,               1,                 1,          0.00300000ss,  2,               2,           0.00600000ss
demo,              1,      2,               1,                 1,          0.00400000ss,  2,               2,           0.00600000ss
demo,              2,      1,               0,                 0,          0.00300000ss,  1,               1,           0.00300000ss
demo,              3,      1,               0,                 0,          0.00366666ss,  1,               1,           0.00300000ss
");
    (0..6).for_each(|_| drop(started(observed.arrive("root", WorkEstimate::ONE_SEAT))));
    let _exempt = started(observed.arrive("root", WorkEstimate::ONE_SEAT));
    assert_eq!(observed.flow.dump_priority_levels(), "\
PriorityLevelName, ActiveQueues, IsIdle, IsQuiescing, WaitingRequests, ExecutingRequests, DispatchedRequests, RejectedRequests, TimedoutRequests, CancelledRequests
catch-all,         0,            true,   false,       0,               0,                 1,                  0,                0,                0
demo,              4,            false,  false,       6,               2,                 2,                  0,                0,                0
exempt,            0,            false,  false,       0,               1,                 7,                  0,                0,                0
");
}

#[test]
fn ob_13_one_moment_is_written_in_one_way() {
    // The clock of the machine: a request that is started at once arrives and starts at the same moment.
    let flow = FlowControl::builder().kubernetes().drive_by_hand().build();
    let user = User::new("alice", ["system:authenticated"]);
    let request = RequestInfo { verb: "get".into(), path: "/orders".into(), ..RequestInfo::default() };
    let admit = || flow.arrive(Attributes { user: &user, request: &request }, WorkEstimate::ONE_SEAT);
    let _held: Vec<_> = (0..10).map(|_| admit()).collect();
    let dump = flow.dump_requests(RequestColumns::Basic);
    let rows: Vec<Vec<_>> = dump.lines().skip(1).map(|row| row.split(',').map(str::trim).collect()).collect();
    assert!(rows.len() == 10 && rows.iter().all(|row| row[5] == row[9]), "{dump}");
}

#[test]
fn ob_13_requests() {
    // As many queues as make the flow of alice wait in the first.
    let is_first = |queues: &i64| {
        let dealer = Dealer::from(DealSize::new(*queues, 1).unwrap());
        dealer.deal(flow_hash("fs-a", "alice")).cards()[0] == 0
    };
    let queues = (2..1000).find(is_first).unwrap();
    let level = queuing_level("demo", 5, i32::try_from(queues).unwrap(), 1, 2);
    let observed = Observed::new(2, vec![level, schema("fs-a", "demo")]);
    observed.clock.advance(NEW_YEAR);
    let _running = started(observed.arrive("alice", WorkEstimate::ONE_SEAT));
    observed.millis(2);
    let _waiting = observed.arrive("alice", WorkEstimate::ONE_SEAT);
    observed.clock.advance(Duration::from_micros(500));
    let lingers = WorkEstimate { initial_seats: 1, final_seats: 3, additional_latency: 5_000_000 };
    let exempt = started(observed.arrive_as(
        "root",
        "DELETE",
        "/apis/apps/v1/namespaces/shop/deployments/web/scale",
        lingers,
        |request| request,
    ));
    assert_eq!(observed.flow.dump_requests(RequestColumns::Basic), "\
PriorityLevelName, FlowSchemaName, QueueIndex, RequestIndexInQueue, FlowDistingsher, ArriveTime,                InitialSeats, FinalSeats, AdditionalLatency, StartTime
demo,              fs-a,           0,          0,                   alice,           2026-01-01T00:00:00.002Z,  1,            0,          0s,                0001-01-01T00:00:00Z
demo,              fs-a,           0,          -1,                  alice,           2026-01-01T00:00:00Z,      1,            0,          0s,                2026-01-01T00:00:00Z
exempt,            exempt,         -1,         -1,                  ,                2026-01-01T00:00:00.0025Z, 1,            3,          5ms,               2026-01-01T00:00:00.0025Z
");
    let detailed = observed.flow.dump_requests(RequestColumns::WithDetails);
    let tails: Vec<String> =
        detailed.lines().map(|line| line.split_whitespace().skip(9).collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(
        tails,
        [
            "StartTime, UserName, Verb, APIPath, Namespace, Name, APIVersion, Resource, SubResource",
            "0001-01-01T00:00:00Z, alice, get, /orders, , , , ,",
            "2026-01-01T00:00:00Z, alice, get, /orders, , , , ,",
            "2026-01-01T00:00:00.0025Z, root, delete, /apis/apps/v1/namespaces/shop/deployments/web/scale, shop, web, apps/v1, deployments, scale",
        ]
    );
    // A request that lingers is not shown.
    drop(exempt);
    assert!(!observed.flow.dump_requests(RequestColumns::Basic).contains("exempt"));
}

#[test]
fn ob_14_no_distinguisher_without_flows() {
    let observed = Observed::new(2, vec![queuing_level("demo", 5, 1, 1, 2), schema("fs-a", "demo")]);
    let _running = started(observed.arrive("alice", WorkEstimate::ONE_SEAT));
    let dump = observed.flow.dump_requests(RequestColumns::Basic);
    assert!(dump.contains("demo,              fs-a,           0,          -1,                  ,  "), "{dump}");
}

#[test]
fn a_level_on_its_way_out_is_quiescing_and_then_gone() {
    let observed = Observed::new(2, vec![queuing_level("demo", 5, 1, 1, 2), schema("fs-a", "demo")]);
    let running = started(observed.arrive("alice", WorkEstimate::ONE_SEAT));
    observed.apply(Vec::new());
    let dump = observed.flow.dump_priority_levels();
    assert!(dump.contains("demo,              0,            false,  true, "), "{dump}");
    drop(running);
    observed.flow.tick();
    assert!(!observed.flow.dump_priority_levels().contains("demo"));
}
