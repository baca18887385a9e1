//! What the metrics say after something has happened (OB-2 to OB-8).

use crate::observed;

use evenkeel_engine::WorkEstimate;
use observed::{Observed, poll, queuing_level, rejecting_level, schema, started};

const ONE: WorkEstimate = WorkEstimate::ONE_SEAT;

/// One seat, one queue of two places.
fn narrow() -> Observed {
    Observed::new(2, vec![queuing_level("demo", 5, 1, 1, 2), schema("fs", "demo")])
}

#[test]
fn waits_and_executions() {
    let observed = narrow();
    let first = started(observed.arrive("a", ONE));
    let mut second = observed.arrive("b", ONE);
    let third = observed.arrive("c", ONE);
    assert!(poll(&mut second).is_pending());
    observed.scrape().assert(&[
        (r#"current_inqueue_requests{flow_schema="fs",priority_level="demo"}"#, 2.0),
        (r#"current_inqueue_seats{flow_schema="fs",priority_level="demo"}"#, 2.0),
        (r#"current_executing_requests{flow_schema="fs",priority_level="demo"}"#, 1.0),
        (r#"request_queue_length_after_enqueue_sum{flow_schema="fs",priority_level="demo"}"#, 1.0 + 1.0 + 2.0),
        (r#"next_s_bounds{bound="min",priority_level="demo"}"#, 0.003),
        (r#"next_discounted_s_bounds{bound="max",priority_level="demo"}"#, 0.0),
    ]);
    observed.millis(30);
    drop(first);
    observed.millis(5);
    drop(started(second));
    drop(started(third));
    let scrape = observed.scrape();
    scrape.assert(&[
        (r#"dispatched_requests_total{flow_schema="fs",priority_level="demo"}"#, 3.0),
        (r#"request_wait_duration_seconds_count{execute="true",flow_schema="fs",priority_level="demo"}"#, 3.0),
        (r#"request_wait_duration_seconds_sum{execute="true",flow_schema="fs",priority_level="demo"}"#, 0.065),
        (
            r#"request_wait_duration_seconds_bucket{le="0.0",execute="true",flow_schema="fs",priority_level="demo"}"#,
            1.0,
        ),
        (
            r#"request_wait_duration_seconds_bucket{le="0.02",execute="true",flow_schema="fs",priority_level="demo"}"#,
            1.0,
        ),
        (
            r#"request_wait_duration_seconds_bucket{le="0.05",execute="true",flow_schema="fs",priority_level="demo"}"#,
            3.0,
        ),
        (r#"request_execution_seconds_sum{flow_schema="fs",priority_level="demo",type="regular"}"#, 0.035),
        (r#"current_inqueue_requests{flow_schema="fs",priority_level="demo"}"#, 0.0),
        (r#"current_executing_requests{flow_schema="fs",priority_level="demo"}"#, 0.0),
        (r#"current_executing_seats{flow_schema="fs",priority_level="demo"}"#, 0.0),
    ]);
    assert!(
        scrape
            .get(r#"request_wait_duration_seconds_count{execute="false",flow_schema="fs",priority_level="demo"}"#)
            .is_nan()
    );
}

#[test]
fn rejections_of_every_kind() {
    let observed =
        Observed::new(4, vec![queuing_level("demo", 5, 1, 1, 1), schema("fs", "demo"), rejecting_level("strict", 5)]);
    let held: Vec<_> = (0..2).map(|_| started(observed.arrive("a", ONE))).collect();
    let mut waiting = observed.arrive("a", ONE);
    let mut full = observed.arrive("a", ONE);
    assert!(matches!(poll(&mut full), std::task::Poll::Ready(Err(_))));
    observed.millis(15_000);
    assert!(matches!(poll(&mut waiting), std::task::Poll::Ready(Err(_))));
    // Catch-all turns away whoever finds no seat.
    let nobodies: Vec<_> = (0..3).map(|_| observed.arrive("nobody", ONE)).collect();
    let scrape = observed.scrape();
    scrape.assert(&[
        (r#"rejected_requests_total{flow_schema="fs",priority_level="demo",reason="queue-full"}"#, 1.0),
        (r#"rejected_requests_total{flow_schema="fs",priority_level="demo",reason="time-out"}"#, 1.0),
        (
            r#"rejected_requests_total{flow_schema="catch-all",priority_level="catch-all",reason="concurrency-limit"}"#,
            1.0,
        ),
        // The quirk of OB-4: one that waited in vain counts as executed.
        (r#"request_wait_duration_seconds_sum{execute="true",flow_schema="fs",priority_level="demo"}"#, 15.0),
        (r#"request_wait_duration_seconds_count{execute="true",flow_schema="fs",priority_level="demo"}"#, 3.0),
        (r#"request_wait_duration_seconds_count{execute="false",flow_schema="fs",priority_level="demo"}"#, 1.0),
        (r#"work_estimated_seats_count{flow_schema="fs",priority_level="demo"}"#, 4.0),
        (r#"current_inqueue_requests{flow_schema="fs",priority_level="demo"}"#, 0.0),
    ]);
    assert!(scrape.get(r#"current_inqueue_requests{flow_schema="catch-all",priority_level="catch-all"}"#).is_nan());
    drop((held, nobodies));
}

#[test]
fn exempt_requests_do_not_wait() {
    let observed = narrow();
    drop(started(observed.arrive("root", ONE)));
    let scrape = observed.scrape();
    scrape.assert(&[(r#"dispatched_requests_total{flow_schema="exempt",priority_level="exempt"}"#, 1.0)]);
    assert!(!observed.page().contains(r#"request_wait_duration_seconds_count{execute="true",flow_schema="exempt""#));
}

#[test]
#[expect(clippy::redundant_closure_for_method_calls, reason = "the method alone is not general enough")]
fn watches_and_the_watches_that_a_change_concerns() {
    let observed = narrow();
    drop(started(observed.arrive_as("a", "GET", "/x", ONE, |request| request.watch())));
    drop(started(observed.arrive_as("a", "POST", "/x", ONE, |request| request.interested_watches(12))));
    observed.scrape().assert(&[
        (r#"request_execution_seconds_count{flow_schema="fs",priority_level="demo",type="watch"}"#, 1.0),
        (r#"request_execution_seconds_count{flow_schema="fs",priority_level="demo",type="regular"}"#, 1.0),
        (r#"watch_count_samples_sum{flow_schema="fs",priority_level="demo"}"#, 12.0),
    ]);
}

#[test]
fn lingering_holds_seats_and_narrowing_leaves_seats_behind() {
    // Trace T2: two seats.
    let observed = Observed::new(4, vec![queuing_level("demo", 5, 4, 2, 2), schema("fs", "demo")]);
    let first = started(observed.arrive("a", ONE));
    observed.millis(1);
    let wide = observed.arrive("b", WorkEstimate { initial_seats: 1, final_seats: 5, additional_latency: 5_000_000 });
    observed.scrape().assert(&[
        (r#"current_inqueue_seats{flow_schema="fs",priority_level="demo"}"#, 5.0),
        (r#"request_dispatch_no_accommodation_total{flow_schema="fs",priority_level="demo"}"#, 1.0),
    ]);
    observed.millis(1);
    drop(first);
    observed.millis(4);
    drop(started(wide));
    observed.scrape().assert(&[
        (r#"current_inqueue_seats{flow_schema="fs",priority_level="demo"}"#, 3.0),
        (r#"current_executing_requests{flow_schema="fs",priority_level="demo"}"#, 0.0),
        (r#"current_executing_seats{flow_schema="fs",priority_level="demo"}"#, 2.0),
    ]);
    observed.clock.advance(std::time::Duration::from_micros(12_500));
    observed.flow.tick();
    observed.scrape().assert(&[
        (r#"current_executing_seats{flow_schema="fs",priority_level="demo"}"#, 0.0),
        // 2 seats of 2 for 16.5 ms (12.5 of them lingering), 1 for 2 ms.
        (r#"priority_level_seat_utilization_sum{phase="executing",priority_level="demo"}"#, 16_500_000.0 + 1_000_000.0),
        (r#"priority_level_seat_utilization_count{phase="executing",priority_level="demo"}"#, 18_500_000.0),
        (r#"priority_level_seat_utilization_bucket{le="0.5",phase="executing",priority_level="demo"}"#, 2_000_000.0),
    ]);
}

#[test]
fn ob_6_denominators() {
    let observed = narrow();
    let _held = started(observed.arrive("a", ONE));
    let _waiting = observed.arrive("a", ONE);
    let _exempt = started(observed.arrive_as("root", "POST", "/x", ONE, |request| request));
    observed.millis(10);
    observed.scrape().assert(&[
        // One of a queue with two places, one of one seat, two seats wanted of one.
        (r#"priority_level_request_utilization_sum{phase="waiting",priority_level="demo"}"#, 5e6),
        (r#"priority_level_request_utilization_sum{phase="executing",priority_level="demo"}"#, 1e7),
        (r#"demand_seats_sum{priority_level="demo"}"#, 2e7),
        // CC-17: one of two places in queues, one of the two seats of demo and catch-all for each kind.
        (r#"read_vs_write_current_requests_sum{phase="waiting",request_kind="readOnly"}"#, 5e6),
        (r#"read_vs_write_current_requests_sum{phase="executing",request_kind="readOnly"}"#, 5e6),
        (r#"read_vs_write_current_requests_sum{phase="executing",request_kind="mutating"}"#, 5e6),
        (r#"read_vs_write_current_requests_sum{phase="waiting",request_kind="mutating"}"#, 0.0),
        (r#"read_vs_write_current_requests_count{phase="waiting",request_kind="mutating"}"#, 1e7),
    ]);
}

#[test]
fn ob_8_the_most_in_the_last_second() {
    let observed = Observed::new(4, vec![queuing_level("demo", 5, 1, 1, 2), schema("fs", "demo")]);
    let held: Vec<_> = (0..3).map(|_| observed.arrive("a", ONE)).collect();
    observed.millis(500);
    drop(held);
    observed.millis(500);
    observed.scrape().assert(&[
        (r#"apiserver_current_inflight_requests{request_kind="readOnly"}"#, 2.0),
        (r#"apiserver_current_inqueue_requests{request_kind="readOnly"}"#, 1.0),
        (r#"apiserver_current_inflight_requests{request_kind="mutating"}"#, 0.0),
    ]);
    observed.millis(1000);
    observed.scrape().assert(&[(r#"apiserver_current_inflight_requests{request_kind="readOnly"}"#, 0.0)]);
}

#[test]
fn ob_8_a_scrape_long_after_the_last_request_shows_none_of_it() {
    let inflight = r#"apiserver_current_inflight_requests{request_kind="readOnly"}"#;
    let observed = Observed::new(4, vec![queuing_level("demo", 5, 1, 1, 2), schema("fs", "demo")]);
    let mut held: Vec<_> = (0..2).map(|_| observed.arrive("a", ONE)).collect();
    observed.millis(2_900);
    drop(held.pop());
    observed.millis(1_000);
    observed.scrape().assert(&[(inflight, 2.0)]);
    observed.millis(60_000);
    observed.scrape().assert(&[(inflight, 1.0)]);
    drop(held);
    observed.millis(60_000);
    observed.scrape().assert(&[(inflight, 0.0)]);
}

#[test]
fn limits_and_demand_after_an_adjustment() {
    let observed = narrow();
    let _held = started(observed.arrive("a", ONE));
    observed.millis(10_000);
    observed.flow.tick();
    observed.scrape().assert(&[
        (r#"nominal_limit_seats{priority_level="demo"}"#, 1.0),
        (r#"lower_limit_seats{priority_level="demo"}"#, 1.0),
        (r#"upper_limit_seats{priority_level="demo"}"#, 1.0),
        (r#"current_limit_seats{priority_level="demo"}"#, 1.0),
        (r#"demand_seats_high_watermark{priority_level="demo"}"#, 1.0),
        (r#"demand_seats_average{priority_level="demo"}"#, 1.0),
        (r#"demand_seats_stdev{priority_level="demo"}"#, 0.0),
        (r#"demand_seats_smoothed{priority_level="demo"}"#, 1.0),
        (r#"target_seats{priority_level="demo"}"#, 1.0),
    ]);
}

#[test]
fn ob_7_series_survive_their_level_and_go_on_when_it_comes_back() {
    let objects = || vec![queuing_level("demo", 5, 1, 1, 2), schema("fs", "demo")];
    let observed = Observed::new(2, objects());
    drop(started(observed.arrive("a", ONE)));
    let lingers = WorkEstimate { initial_seats: 1, final_seats: 1, additional_latency: 1_000_000_000 };
    drop(started(observed.arrive("a", lingers)));
    let dispatched = r#"dispatched_requests_total{flow_schema="fs",priority_level="demo"}"#;
    let seats = r#"current_executing_seats{flow_schema="fs",priority_level="demo"}"#;
    observed.millis(10);
    observed.apply(Vec::new());
    assert!(!observed.flow.dump_priority_levels().contains("demo"));
    observed.scrape().assert(&[
        (dispatched, 2.0),
        (seats, 1.0),
        // The series stays, but a level that was deleted has no seats.
        (r#"nominal_limit_seats{priority_level="demo"}"#, 0.0),
    ]);
    observed.apply(objects());
    observed.millis(10);
    drop(started(observed.arrive("a", ONE)));
    observed.scrape().assert(&[
        (dispatched, 3.0),
        (seats, 0.0),
        (r#"priority_level_seat_utilization_count{phase="executing",priority_level="demo"}"#, 2e7),
    ]);
    // The request that lingered in the level that has gone disturbs nobody.
    observed.millis(2_000);
    observed.flow.tick();
    observed.scrape().assert(&[(seats, 0.0), (dispatched, 3.0)]);
}
