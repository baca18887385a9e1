//! Levels that come and go while requests are about (CC-6, CC-13 to CC-15, CL-23).

use crate::busy_engine;

use busy_engine::{BusyEngine, Came, LINGERING, objects, queuing, rejecting, schema};
use evenkeel_engine::WorkEstimate;
use evenkeel_engine::controller::Objects;
use evenkeel_engine::queue_set::Finish;
use evenkeel_engine::retry_after::RetryAfter;
use evenkeel_engine::time::SECOND;

const ONE_SEAT: WorkEstimate = WorkEstimate::ONE_SEAT;

/// A server with one seat, whose level `batch` executes request 1 while the others wait.
fn busy_batch(work: WorkEstimate, waiting: std::ops::RangeInclusive<u32>) -> BusyEngine {
    let mut server = BusyEngine::new(1);
    server.apply(with_batch());
    let batch = server.id("batch");
    assert_eq!(server.arrive(batch, 1, work), Came::Started);
    for number in waiting {
        assert_eq!(server.arrive(batch, number, ONE_SEAT), Came::Waiting);
    }
    server
}

fn with_batch() -> Objects {
    objects(&[queuing("batch")], &[schema("batch", "batch", 500)])
}

#[test]
fn cc_15_a_busy_level_without_an_object_serves_its_requests_and_then_goes() {
    let mut server = busy_batch(ONE_SEAT, 2..=3);
    let batch = server.id("batch");
    server.apply(Objects::default());
    assert!(server.control("batch").is_quiescing() && server.engine.controller().is_quiescing(batch));
    assert_eq!(server.busy("batch"), (1, 2));
    assert_eq!(server.schema_names(), ["exempt", "catch-all"], "no schema leads to it any more");

    for number in 1..=3 {
        assert!(!server.engine.wants_reapply(), "{number} has not finished");
        assert_eq!(server.finish(number), Some(Finish::Released(number)));
    }
    assert_eq!(server.started, [1, 2, 3], "those that waited are served");
    assert!(server.engine.wants_reapply());
    assert_eq!(server.names(), ["batch", "catch-all", "exempt"], "it goes with the next digest");

    server.reapply();
    assert!(!server.engine.wants_reapply());
    assert_eq!(server.names(), ["catch-all", "exempt"]);
    assert!(!server.engine.controller().is_quiescing(batch));
    assert_eq!(server.arrive(batch, 4, ONE_SEAT), Came::Nowhere);
}

#[test]
fn cc_15_only_what_is_on_its_way_out_asks_for_a_digest_when_it_becomes_idle() {
    let names = ["a", "b", "c", "d"];
    let levels = names.map(|name| rejecting(name, 100));
    let mut server = BusyEngine::new(100);
    server.apply(objects(&levels, &[]));
    for (number, name) in (1..).zip(names) {
        assert_eq!(server.arrive(server.id(name), number, ONE_SEAT), Came::Started);
    }
    server.apply(objects(&levels[..1], &[]));
    assert_eq!(names.map(|name| server.control(name).is_quiescing()), [false, true, true, true]);
    server.finish(1);
    assert!(!server.engine.wants_reapply(), "`a` stays");
    server.apply(objects(&levels[..2], &[]));
    assert_eq!(names.map(|name| server.control(name).is_quiescing()), [false, false, true, true]);
    server.finish(2);
    assert!(!server.engine.wants_reapply(), "`b` has come back");
    server.finish(3);
    assert!(server.engine.wants_reapply());
    server.reapply();
    assert_eq!(server.names(), ["a", "b", "catch-all", "d", "exempt"]);
    assert!(server.control("d").is_quiescing() && !server.engine.wants_reapply());
}

#[test]
fn cc_15_an_idle_level_without_an_object_goes_at_once() {
    let mut server = BusyEngine::new(1);
    server.apply(with_batch());
    assert_eq!(server.names(), ["batch", "catch-all", "exempt"]);
    server.apply(Objects::default());
    assert_eq!(server.names(), ["catch-all", "exempt"]);
    assert!(!server.engine.wants_reapply());
}

#[test]
fn cc_15_a_digest_while_the_level_is_busy_keeps_it() {
    let mut server = busy_batch(ONE_SEAT, 2..=2);
    let batch = server.id("batch");
    for _ in 0..3 {
        server.apply(Objects::default());
        server.reapply();
    }
    assert_eq!((server.id("batch"), server.busy("batch")), (batch, (1, 1)));
}

#[test]
fn cc_15_the_end_of_a_level_that_stays_is_no_reason_to_digest() {
    let mut server = busy_batch(ONE_SEAT, 2..=2);
    server.cancel(2);
    server.finish(1);
    assert!(!server.engine.wants_reapply());
    let catch_all = server.id("catch-all");
    server.apply(Objects::default());
    assert_eq!(server.arrive(catch_all, 5, ONE_SEAT), Came::Started);
    assert_eq!(server.arrive(catch_all, 6, ONE_SEAT), Came::Rejected);
    server.finish(5);
    assert!(!server.engine.wants_reapply(), "a mandatory level never goes");
}

#[test]
fn cc_15_lingering_seats_do_not_delay_removal_and_their_release_is_harmless() {
    let mut server = busy_batch(LINGERING, 2..=2);
    server.apply(Objects::default());
    assert_eq!(server.finish(1), Some(Finish::Lingering { until: server.now + SECOND }));
    assert!(!server.engine.wants_reapply(), "request 2 waits for the lingering seat");
    assert_eq!(server.cancel(2), Some(2));
    assert!(server.engine.wants_reapply(), "a wait that was given up can be the last request");
    server.reapply();
    assert_eq!(server.names(), ["catch-all", "exempt"]);

    server.pass(SECOND);
    let before = server.started.clone();
    assert_eq!(server.release(1), None);
    assert_eq!((server.finish(1), server.cancel(2)), (None, None));
    assert_eq!((&server.started, server.engine.wants_reapply()), (&before, false));
    assert_eq!((server.busy("catch-all"), server.busy("exempt")), ((0, 0), (0, 0)));
}

#[test]
fn cc_15_a_request_that_was_classified_before_may_still_arrive_at_a_quiescing_level() {
    let mut server = busy_batch(ONE_SEAT, 2..=2);
    let batch = server.id("batch");
    server.apply(Objects::default());
    assert_eq!(server.arrive(batch, 3, ONE_SEAT), Came::Waiting);
    for number in 1..=3 {
        server.finish(number);
    }
    assert_eq!(server.started, [1, 2, 3]);
    assert!(server.engine.wants_reapply());
    assert_eq!(server.arrive(batch, 4, ONE_SEAT), Came::Started);
    server.reapply();
    assert_eq!(server.busy("batch"), (1, 0), "it is busy again, so it stays");
    server.finish(4);
    server.reapply();
    assert_eq!(server.names(), ["catch-all", "exempt"]);
}

#[test]
fn cl_23_a_level_that_comes_back_before_removal_keeps_all_that_it_had() {
    let mut server = busy_batch(ONE_SEAT, 2..=4);
    let batch = server.id("batch");
    assert_eq!(server.cancel(4), Some(4));
    server.pass(10 * SECOND);
    server.adjust();
    let (counters, statistics) = (server.view("batch").queue_set.counters(), server.control("batch").statistics());
    assert_eq!((counters.dispatched, counters.cancelled, statistics.high_watermark), (1, 1, 4));

    server.apply(Objects::default());
    assert!(server.control("batch").is_quiescing());
    server.apply(with_batch());
    assert!(!server.control("batch").is_quiescing());
    assert_eq!((server.id("batch"), server.busy("batch")), (batch, (1, 2)));
    assert_eq!(server.view("batch").queue_set.counters(), counters);
    let smoothed = server.control("batch").statistics().smoothed;
    assert_eq!(smoothed.to_bits(), statistics.smoothed.to_bits(), "no time has passed");
    assert_eq!(server.schema_names(), ["exempt", "batch", "catch-all"]);

    for number in 1..=3 {
        assert_eq!(server.finish(number), Some(Finish::Released(number)));
    }
    assert!(!server.engine.wants_reapply(), "it is wanted");
}

#[test]
fn hf_13_a_level_that_comes_back_goes_on_with_what_it_told_its_clients() {
    let mut server = BusyEngine::new(1);
    server.apply(with_batch());
    let (old, mut expected) = (server.id("batch"), RetryAfter::default());
    for second in (100..104).flat_map(|second| [second; 200]) {
        server.engine.retry_after(old, second);
        expected.record_drop(second);
    }
    assert_eq!(server.view("batch").retry_after_seconds, 4);
    server.apply(Objects::default());
    assert_eq!(server.engine.retry_after(old, 104), 1, "there is no such level");
    for _ in 0..2 {
        server.apply(Objects::default());
        server.apply(with_batch());
        assert_eq!(server.view("batch").retry_after_seconds, 4);
    }
    let new = server.id("batch");
    for second in 104..120 {
        expected.record_drop(second);
        assert_eq!(server.engine.retry_after(new, second), expected.seconds());
    }
}

#[test]
fn cl_23_a_level_that_was_removed_starts_from_nothing() {
    let mut server = busy_batch(ONE_SEAT, 2..=2);
    let old = server.id("batch");
    let (first, second) = (server.ticket(1), server.ticket(2));
    server.engine.retry_after(old, 100);
    server.pass(10 * SECOND);
    server.adjust();
    server.finish(1);
    server.finish(2);
    server.apply(Objects::default());
    server.apply(with_batch());

    let new = server.id("batch");
    assert_ne!(new, old);
    assert_eq!(new.index(), old.index(), "its place in a table is used again");
    let view = server.view("batch");
    assert_eq!((view.queue_set.counters().dispatched, view.queue_set.placed()), (0, 0));
    assert_eq!(view.control.statistics(), evenkeel_engine::borrowing::DemandStatistics::default());
    assert_eq!(server.arrive(old, 8, ONE_SEAT), Came::Nowhere);

    // The requests of the new level have the numbers of the old ones, and yet the old tickets do nothing.
    assert_eq!(server.arrive(new, 11, ONE_SEAT), Came::Started);
    assert_eq!(server.arrive(new, 12, ONE_SEAT), Came::Waiting);
    assert_eq!((server.ticket(11).id, server.ticket(12).id), (first.id, second.id));
    assert_eq!((server.finish(1), server.release(1), server.cancel(2)), (None, None, None));
    assert_eq!(server.engine.payload_mut(first), None);
    assert_eq!(server.busy("batch"), (1, 1));
    assert_eq!(server.finish(11), Some(Finish::Released(11)));
}

#[test]
fn cl_23_a_quiescing_level_keeps_its_shares_and_takes_part_in_adjustments() {
    let mut server = BusyEngine::new(100);
    server.apply(objects(&[queuing("batch"), rejecting("other", 100)], &[]));
    let nominal = |server: &BusyEngine, name: &str| server.control(name).limits().nominal;
    assert_eq!(["batch", "other", "catch-all"].map(|name| nominal(&server, name)), [48, 50, 3]);
    server.arrive(server.id("batch"), 1, WorkEstimate::seats(40));

    server.apply(objects(&[rejecting("other", 100)], &[]));
    assert_eq!(["batch", "other", "catch-all"].map(|name| nominal(&server, name)), [48, 50, 3], "nothing has gone");
    server.pass(10 * SECOND);
    server.adjust();
    assert_eq!(server.control("batch").statistics().high_watermark, 40);
    assert_eq!(server.view("batch").queue_set.concurrency_limit(), server.control("batch").current_limit());

    server.finish(1);
    server.reapply();
    assert_eq!(["other", "catch-all"].map(|name| nominal(&server, name)), [96, 5]);
    assert_eq!(server.engine.controller().nominal_sum(), 101);
}

#[test]
fn cc_6_a_level_follows_its_object_and_keeps_its_requests() {
    let mut server = busy_batch(ONE_SEAT, 2..=3);
    let batch = server.id("batch");
    server.apply(objects(&[rejecting("batch", 95)], &[]));
    assert_eq!((server.id("batch"), server.busy("batch")), (batch, (1, 2)), "those that wait go on waiting");
    assert_eq!(server.arrive(batch, 4, ONE_SEAT), Came::Rejected);
    assert_eq!(server.finish(1), Some(Finish::Released(1)));
    assert_eq!(server.started, [1, 2]);
    server.apply(with_batch());
    assert_eq!(server.arrive(batch, 5, ONE_SEAT), Came::Waiting);
}

#[test]
fn cc_6_an_object_that_cannot_be_used_is_ignored_as_if_there_were_none() {
    let mut server = busy_batch(ONE_SEAT, 2..=2);
    let mut broken = queuing("batch");
    broken.spec.limited = None;
    let report = server.apply(objects(&[broken], &[schema("batch", "batch", 500)]));
    assert_eq!(report.unusable.len(), 1);
    assert!(report.dangling[0].is_dangling);
    let batch = server.control("batch");
    assert!(batch.is_quiescing() && batch.object().spec == queuing("batch").spec, "it keeps the object it last had");
    server.finish(1);
    server.finish(2);
    server.reapply();
    assert_eq!(server.names(), ["catch-all", "exempt"]);
}

#[test]
fn cc_13_a_mandatory_level_without_an_object_stays_as_it_last_was() {
    let mut server = BusyEngine::new(100);
    let mut exempt = evenkeel_api::bootstrap::mandatory_priority_level("exempt").unwrap().clone();
    exempt.spec.exempt.as_mut().unwrap().nominal_concurrency_shares = Some(5);
    let catch_all = queuing("catch-all");
    let given = [exempt.clone(), catch_all.clone()];
    server.apply(objects(&given, &[schema("catch-all", "catch-all", 10_000)]));
    let ids = [server.id("exempt"), server.id("catch-all")];

    let report = server.apply(objects(&[], &[schema("catch-all", "catch-all", 10_000)]));
    assert_eq!([server.id("exempt"), server.id("catch-all")], ids);
    for (name, object) in [("exempt", &exempt), ("catch-all", &catch_all)] {
        assert!(!server.control(name).is_quiescing(), "{name}");
        assert_eq!(server.control(name).object().spec, object.spec, "{name}");
    }
    assert_eq!([server.control("exempt"), server.control("catch-all")].map(|level| level.limits().nominal), [5, 95]);
    assert!(report.dangling[0].is_dangling, "a level that is only kept does not count (CC-9)");

    // CC-8: an object without its stanza leaves the last one in force.
    exempt.spec.exempt = None;
    let report = server.apply(objects(&[exempt], &[]));
    assert_eq!(report.unusable.len(), 1);
    assert_eq!(server.control("exempt").limits().nominal, 5);
}

#[test]
fn cc_14_mandatory_levels_that_never_had_an_object_are_built_in() {
    let mut server = BusyEngine::new(100);
    server.apply(objects(&[rejecting("other", 15)], &[]));
    assert_eq!(server.names(), ["catch-all", "exempt", "other"]);
    for built_in in &evenkeel_api::bootstrap::mandatory().priority_levels {
        assert_eq!(server.control(built_in.name()).object(), built_in);
    }
    assert_eq!(["catch-all", "exempt", "other"].map(|name| server.control(name).limits().nominal), [25, 0, 75]);
}
