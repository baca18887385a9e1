//! Seats that are divided exactly: never more than the server has, and none for a level that is to let nobody in.

use crate::busy_engine;

use busy_engine::{objects, rejecting, schema};
use evenkeel_api::Preset;
use evenkeel_api::v1::{FlowSchema, GroupSubject, PriorityLevelConfiguration, Subject, SubjectKind};
use evenkeel_engine::borrowing::{Adjustment, DemandStatistics, DivideSeats, ExactDivision, LevelDemand, SeatDivision};
use evenkeel_engine::controller::{ADJUSTMENT_PERIOD, Borrowing, Objects, SeatPlan, ServerConfig};
use evenkeel_engine::level::NewRequest;
use evenkeel_engine::limits::{LevelLimits, LevelShare, exact_limits};
use evenkeel_engine::queue_set::Arrival;
use evenkeel_engine::time::Instant;
use evenkeel_engine::{Attributes, Engine, RequestInfo, Ticket, User, WorkEstimate};
use proptest::prelude::*;

type ExactEngine = Engine<(), ExactDivision>;

const START: Instant = Instant::from_nanos(0);

fn engine(server_limit: i64, objects: Objects) -> ExactEngine {
    let mut engine = Engine::with_config(ServerConfig::new(server_limit).division(ExactDivision::default()), START);
    engine.apply(objects, START, &mut |_: Ticket, (): &mut ()| {});
    engine
}

/// How many of a thousand requests of many users that come at once start in a level.
fn started<D: DivideSeats>(engine: &mut Engine<(), D>, level: &str) -> usize {
    let level = engine.controller().level(level).expect("a level").id();
    let mut started = 0;
    for hash in 0..1000 {
        let new = NewRequest::new(hash, WorkEstimate::ONE_SEAT);
        let arrival = engine.arrive(START, level, new, (), &mut |_: Ticket, (): &mut ()| {});
        started += usize::from(matches!(arrival, Some(Arrival::Started { .. })));
    }
    started
}

fn nominal(engine: &ExactEngine) -> Vec<(String, i64)> {
    let levels = engine.controller().levels();
    levels.map(|(name, level)| (name.to_owned(), level.limits().nominal)).collect()
}

#[test]
fn the_plain_preset_has_all_seats_in_one_level() {
    for seats in [1, 8, 100, 600] {
        let mut engine = engine(seats, Preset::Plain.into());
        assert_eq!(
            nominal(&engine),
            [("catch-all".to_owned(), 0), ("everyone".to_owned(), seats), ("exempt".to_owned(), 0)]
        );
        // Exempt requests, and time, take nothing from it.
        started(&mut engine, "exempt");
        engine.adjust(START + ADJUSTMENT_PERIOD, &mut |_: Ticket, (): &mut ()| {});
        assert_eq!(started(&mut engine, "everyone"), usize::try_from(seats).unwrap());
        assert_eq!(started(&mut engine, "catch-all"), 0);
    }
}

#[test]
fn everybody_is_in_the_level_of_the_plain_preset() {
    let engine = engine(8, Preset::Plain.into());
    let path = RequestInfo { path: "/orders".into(), verb: "post".into(), ..RequestInfo::default() };
    let resource = RequestInfo { is_resource_request: true, resource: "orders".into(), ..path.clone() };
    for (user, request) in [(&[][..], &path), (&["system:authenticated"], &resource), (&["other"], &path)]
        .map(|(groups, request)| (User::new("alice", groups.iter().copied()), request))
    {
        let class = engine.classify(Attributes { user: &user, request });
        assert_eq!((&*class.schema.level.name, class.distinguisher), ("everyone", "alice"));
    }
}

#[test]
fn eight_seats_stay_eight() {
    // The bootstrap objects on eight seats: Kubernetes rounds each of the seven levels up.
    let running = |mut engine: Engine<(), SeatDivision>| {
        engine.apply(Preset::Kubernetes.into(), START, &mut |_: Ticket, (): &mut ()| {});
        let names: Vec<_> = engine.controller().levels().map(|(name, _)| name.to_owned()).collect();
        let limited = names.iter().filter(|name| *name != "exempt");
        limited.map(|name| started(&mut engine, name)).sum::<usize>()
    };
    let [exact, faithful] = [Preset::Plain, Preset::Kubernetes]
        .map(|preset| running(Engine::with_config(ServerConfig::new(8).division(SeatDivision::from(preset)), START)));
    assert_eq!(exact, 8);
    assert!(faithful > 8, "{faithful}: Kubernetes lets more run, or this test shows nothing");
}

fn queuing(name: &str, shares: i32) -> PriorityLevelConfiguration {
    let level = PriorityLevelConfiguration::builder(name);
    level.limited(|l| l.shares(shares).queue(|q| q.queues(8).hand_size(2).queue_length_limit(5))).build()
}

/// Zero shares hold everything, whether the level queues or rejects (LB-2a).
#[test]
fn a_level_without_shares_lets_nobody_in() {
    for (blocked, borrowing) in [rejecting("blocked", 0), queuing("blocked", 0)]
        .into_iter()
        .flat_map(|level| [Borrowing::Periodic, Borrowing::Immediate].map(|borrowing| (level.clone(), borrowing)))
    {
        let objects = || objects(&[blocked.clone(), rejecting("rest", 10)], &[]);
        let config = ServerConfig::new(10).division(ExactDivision::default()).borrowing(borrowing);
        let mut exact: ExactEngine = Engine::with_config(config, START);
        exact.apply(objects(), START, &mut |_: Ticket, (): &mut ()| {});
        assert_eq!(started(&mut exact, "blocked"), 0);
        exact.adjust(START + ADJUSTMENT_PERIOD, &mut |_: Ticket, (): &mut ()| {});
        assert_eq!(started(&mut exact, "blocked"), 0, "it borrows nothing, however much is asked for");
    }

    let mut faithful = Engine::new(10, START);
    faithful.apply(
        objects(&[rejecting("blocked", 0), rejecting("rest", 10)], &[]),
        START,
        &mut |_: Ticket, (): &mut ()| {},
    );
    assert!(started(&mut faithful, "blocked") > 0, "in Kubernetes it may borrow, and one runs at a time");
}

/// Who gets a seat that is left over goes by the names, in whichever order objects come (LB-2a).
#[test]
fn seats_do_not_depend_on_the_order_of_objects() {
    let one = nominal(&engine(5, objects(&[rejecting("a", 10), rejecting("b", 10)], &[])));
    let other = nominal(&engine(5, objects(&[rejecting("b", 10), rejecting("a", 10)], &[])));
    assert_eq!(one, other);
    let plan = [rejecting("b", 10), rejecting("a", 10)];
    let plan = SeatPlan::new(&plan, []).limits(&ExactDivision::default(), 5);
    let planned: Vec<_> = plan.into_iter().map(|(name, limits)| (name.to_owned(), limits.nominal)).collect();
    assert_eq!(one, planned, "a tool computes what the server computes");
}

/// Every level with shares needs a seat, an exempt one does not (LB-2a).
#[test]
fn fewer_seats_than_levels_with_shares_are_reported() {
    let levels = || objects(&[rejecting("a", 30), queuing("b", 1), rejecting("closed", 0)], &[]);
    let applied = |seats: i64| {
        let mut engine: ExactEngine =
            Engine::with_config(ServerConfig::new(seats).division(ExactDivision::default()), START);
        engine.apply(levels(), START, &mut |_: Ticket, (): &mut ()| {}).too_few_seats
    };
    assert_eq!(applied(3), None);
    let too_few = applied(2).expect("three levels have shares");
    assert_eq!(too_few.levels, ["a", "b", "catch-all"]);
    assert_eq!(
        too_few.to_string(),
        "2 seats are too few for 3 priority levels with shares (\"a\", \"b\", \"catch-all\"): each of them needs a seat"
    );
    let mut faithful: Engine<()> = Engine::new(2, START);
    assert_eq!(faithful.apply(levels(), START, &mut |_: Ticket, (): &mut ()| {}).too_few_seats, None);
}

#[test]
fn an_exempt_level_gives_its_last_seat() {
    let exempt = PriorityLevelConfiguration::builder("exempt").exempt(|e| e.shares(100)).build();
    let levels = [exempt, rejecting("a", 1), rejecting("b", 1)];
    let all = schema("all", "a", 500);
    let limits = SeatPlan::new(&levels, [&all]).limits(&ExactDivision::default(), 2);
    assert_eq!((limits["a"].nominal, limits["b"].nominal, limits["exempt"].nominal), (1, 1, 0));
}

#[test]
fn catch_all_has_seats_unless_nothing_gets_there() {
    let level = || rejecting("most", 95);
    let catch_all = |schemas: &[FlowSchema]| nominal(&engine(100, objects(&[level()], schemas)))[0].1;
    let narrow = |change: fn(&mut FlowSchema)| {
        let mut schema = schema("all", "most", 500);
        change(&mut schema);
        schema
    };
    assert_eq!(catch_all(&[schema("all", "most", 500)]), 0);
    assert_eq!(catch_all(&[]), 5);
    assert_eq!(catch_all(&[narrow(|schema| schema.spec.rules[0].resource_rules.clear())]), 5);
    assert_eq!(catch_all(&[narrow(|schema| schema.spec.rules[0].resource_rules[0].cluster_scope = false)]), 5);
    assert_eq!(catch_all(&[narrow(|schema| schema.spec.rules[0].non_resource_rules[0].verbs = vec!["get".into()])]), 5);
    let group = |name: &str, schema: FlowSchema| {
        let mut schema = schema;
        let group = Some(GroupSubject { name: name.to_owned() });
        schema.spec.rules[0].subjects = vec![Subject { kind: SubjectKind::Group, group, ..Subject::default() }];
        schema
    };
    let authenticated = group("system:authenticated", schema("some", "most", 500));
    let unauthenticated = group("system:unauthenticated", schema("others", "most", 600));
    assert_eq!(catch_all(std::slice::from_ref(&authenticated)), 5);
    assert_eq!(catch_all(&[authenticated.clone(), unauthenticated.clone()]), 0, "everybody is in one of the two");
    let mut both = authenticated;
    both.spec.rules[0].subjects.extend(unauthenticated.spec.rules[0].subjects.clone());
    assert_eq!(catch_all(&[both]), 0);
    let named = schema("some", "catch-all", 400);
    let with_mandatory = objects(&[level()], &[schema("all", "most", 500), named]).with_mandatory_levels();
    assert_eq!(nominal(&engine(100, with_mandatory))[0].1, 5, "another schema leads there");
    // A stored `catch-all` that is tried first takes everything.
    let first = schema("catch-all", "catch-all", 100);
    let stored = objects(&[level()], &[schema("all", "most", 500), first]).with_mandatory_levels();
    assert_eq!(nominal(&engine(100, stored))[0].1, 5);
}

/// What a level lends is what the formula says, also if that is all (LB-2a). A division leaves it one seat, so that somebody
/// notices when it wants them back; a ledger lends the last one too.
#[test]
fn a_level_may_lend_all_its_seats() {
    let lender = PriorityLevelConfiguration::builder("lender");
    let lender = lender.limited(|l| l.shares(10).lendable_percent(100).reject()).build();
    let objects = || objects(&[lender.clone(), rejecting("busy", 10)], &[schema("all", "busy", 500)]);
    let mut engine = engine(10, objects());
    let limits = engine.controller().level("lender").unwrap().limits();
    assert_eq!((limits.nominal, limits.lendable, limits.min), (5, 5, 0));
    assert!(started(&mut engine, "busy") > 5, "it borrows");
    engine.adjust(START + ADJUSTMENT_PERIOD, &mut |_: Ticket, (): &mut ()| {});
    assert_eq!(engine.controller().level("busy").unwrap().current_limit(), 9);
    assert_eq!(engine.controller().level("lender").unwrap().current_limit(), 1);

    let config = ServerConfig::new(10).division(ExactDivision::default()).borrowing(Borrowing::Immediate);
    let mut immediate: ExactEngine = Engine::with_config(config, START);
    immediate.apply(objects(), START, &mut |_: Ticket, (): &mut ()| {});
    assert_eq!(started(&mut immediate, "busy"), 10);
}

/// The shares, the lendable percentage and the limit on borrowing of a level.
type Shares = (i32, i32, Option<i32>);

fn shares() -> impl Strategy<Value = Shares> {
    (prop_oneof![Just(0), 0..200_i32, Just(i32::MAX)], 0..=100_i32, prop::option::of(0..300_i32))
}

fn level((shares, lendable, borrowing): Shares, name: &str) -> PriorityLevelConfiguration {
    let level = PriorityLevelConfiguration::builder(name);
    match borrowing {
        Some(percent) => {
            level.limited(|l| l.shares(shares).lendable_percent(lendable).borrowing_limit_percent(percent).reject())
        }
        None => level.limited(|l| l.shares(shares).lendable_percent(lendable).reject()),
    }
    .build()
}

proptest! {
    #[test]
    fn own_seats_add_up_to_those_of_the_server(
        specs in prop::collection::vec((shares(), any::<bool>()), 1..20),
        server_limit in prop_oneof![0..40_i64, Just(i64::MAX)],
    ) {
        let levels: Vec<_> = specs.iter().map(|(shares, _)| level(*shares, "some")).collect();
        let given = levels.iter().zip(&specs);
        let given: Vec<_> =
            given.map(|(level, (_, is_unreachable))| LevelShare { spec: &level.spec, is_unreachable: *is_unreachable }).collect();
        let limits = exact_limits(&given, server_limit);
        let with_shares = specs.iter().filter(|((shares, ..), is_unreachable)| *shares > 0 && !is_unreachable).count();
        let sum: i64 = limits.iter().map(|limits| limits.nominal).sum();
        prop_assert_eq!(sum, if with_shares == 0 { 0 } else { server_limit });
        for (limits, ((shares, ..), is_unreachable)) in limits.iter().zip(&specs) {
            let is_due = *shares > 0 && !is_unreachable && server_limit >= i64::try_from(with_shares).unwrap();
            prop_assert!(limits.nominal >= i64::from(is_due), "{limits:?}");
            prop_assert!(*shares > 0 && !is_unreachable || limits.nominal == 0, "{limits:?}");
            prop_assert!((0..=limits.nominal).contains(&limits.min), "{limits:?}");
            prop_assert!(*shares > 0 && !is_unreachable || limits.max == 0, "{limits:?}");
        }
    }

    #[test]
    fn seats_in_use_add_up_to_at_most_those_of_the_server(
        specs in prop::collection::vec((shares(), 0..500_i64, 0..1000_i64), 1..20),
        server_limit in 0..300_i64,
        exempt in 0..500_i64,
    ) {
        let levels: Vec<_> = specs.iter().map(|(shares, ..)| level(*shares, "some")).collect();
        let shares: Vec<_> =
            levels.iter().map(|level| LevelShare { spec: &level.spec, is_unreachable: false }).collect();
        let limits = exact_limits(&shares, server_limit);
        let mut demands: Vec<_> = limits.iter().zip(&specs).map(|(limits, (_, demand, current))| {
            #[expect(clippy::cast_precision_loss, reason = "a small number")]
            let smoothed = *demand as f64;
            let statistics = DemandStatistics { high_watermark: *demand, smoothed, ..DemandStatistics::default() };
            LevelDemand { is_exempt: false, limits: *limits, statistics, current: *current }
        }).collect();
        let statistics = DemandStatistics { high_watermark: exempt, ..DemandStatistics::default() };
        let limits = LevelLimits::default();
        demands.push(LevelDemand { is_exempt: true, limits, statistics, current: 0 });
        let mut adjustment = Adjustment::default();
        ExactDivision::default().divide(&demands, &mut adjustment);
        let limited = demands.iter().zip(&adjustment.levels).filter(|(level, _)| !level.is_exempt);
        let sum: i64 = limited.clone().map(|(_, adjusted)| adjusted.current).sum();
        prop_assert!(sum <= server_limit, "{sum} of {server_limit}: {adjustment:?}");
        for (level, adjusted) in limited {
            prop_assert!((level.limits.min..=level.limits.max).contains(&adjusted.current), "{level:?} {adjusted:?}");
        }
    }

    #[test]
    fn no_more_requests_run_than_there_are_seats(
        specs in prop::collection::vec(shares(), 1..10),
        server_limit in 0..50_i64,
    ) {
        let names: Vec<_> = (0..specs.len()).map(|number| format!("level-{number}")).collect();
        let levels: Vec<_> = specs.iter().zip(&names).map(|(shares, name)| level(*shares, name)).collect();
        let mut engine = engine(server_limit, objects(&levels, &[]));
        let running: usize = names.iter().map(String::as_str).chain(["catch-all"]).map(|name| started(&mut engine, name)).sum();
        prop_assert!(i64::try_from(running).unwrap() <= server_limit, "{running} of {server_limit}");
    }
}
