//! What is left of a level that is gone: its numbers, and not its queues.

mod observed;

use evenkeel_counting_allocator::{Counting, bytes};
use evenkeel_engine::WorkEstimate;
use evenkeel_engine::time::SECOND;
use observed::{Observed, queuing_level, schema, started};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most queues of which each takes memory, used or not.
const QUEUES: i32 = 4096;
/// Fewer than any queue takes.
const BYTES_PER_QUEUE: i64 = 64;

fn objects() -> Vec<evenkeel_api::AnyObject> {
    vec![queuing_level("wide", 5, QUEUES, 1, 2), schema("fs", "wide")]
}

/// One test, so that nobody else allocates.
#[test]
fn ob_7_of_a_level_that_is_gone_only_the_numbers_stay() {
    let observed = Observed::new(2, Vec::new());
    let has_queues = |before: i64| bytes() > before + BYTES_PER_QUEUE * i64::from(QUEUES);
    let before = bytes();

    observed.apply(objects());
    assert!(has_queues(before));
    observed.apply(Vec::new());
    assert!(!has_queues(before), "nothing was in it");

    observed.apply(objects());
    let lingers = WorkEstimate { initial_seats: 1, final_seats: 1, additional_latency: SECOND };
    let permit = started(observed.arrive("a", lingers));
    observed.millis(5);
    drop(permit);
    let shown = |name: &str| observed.scrape().get(&format!(r#"{name}{{priority_level="wide"}}"#));
    let (progress, latest) = (shown("current_r"), shown("latest_s"));
    observed.apply(Vec::new());
    assert!(has_queues(before), "something lingers in it");
    observed.millis(1_000);
    observed.flow.tick();
    assert!(!has_queues(before), "nothing is left in it");
    assert!(progress > 0.0);
    assert!(shown("current_r") >= progress && shown("latest_s") >= latest, "the numbers stay");
    let dispatched = r#"dispatched_requests_total{flow_schema="fs",priority_level="wide"}"#;
    observed.scrape().assert(&[(dispatched, 1.0)]);
    // It has no seats any more, and gets them again when it comes back.
    let limits = ["nominal", "lower", "upper", "current"]
        .map(|limit| format!(r#"{limit}_limit_seats{{priority_level="wide"}}"#));
    observed.scrape().assert(&limits.each_ref().map(|limit| (limit.as_str(), 0.0)));
    observed.apply(objects());
    assert!(shown("nominal_limit_seats") > 0.0 && shown("current_limit_seats") > 0.0);
}
