//! The log of a real kube-apiserver, with what it decided.

use evenkeel_api::Preset;
use evenkeel_recorded::compared;
use evenkeel_replay::{Input, Replay, Report, Settings, Truth};

use crate::logs::{RECORDED_SEATS, recorded_file, recorded_objects, recorded_text};

/// The requests that the recorded server classified.
const CLASSIFIED: u64 = 6758;

fn settings() -> Settings {
    Settings::new(Preset::Kubernetes, RECORDED_SEATS)
}

fn replay(log: &str, truth: Option<Truth>) -> Report {
    let mut replay = Replay::new(settings(), vec![recorded_objects()], truth);
    replay.read(&mut Input::open(&recorded_file(log), None).unwrap(), |_, _| {});
    replay.finish()
}

fn truth() -> Truth {
    Truth::read(&mut Input::open(&recorded_file("httplog.txt"), None).unwrap(), |_, _| {})
}

/// TL-38, TL-40
#[test]
fn every_request_is_classified_as_the_server_did() {
    let truth = truth();
    assert_eq!((truth.len() as u64, truth.damaged().count()), (CLASSIFIED, 0));
    let report = replay("audit.jsonl", Some(truth));
    assert_eq!(report.comparison.differ, []);
    assert_eq!((report.comparison.compared, report.comparison.agree), (CLASSIFIED, CLASSIFIED));
    compared("requests of a replayed log", usize::try_from(report.comparison.compared).unwrap());
}

#[test]
fn every_line_is_read() {
    let report = replay("audit.jsonl", None);
    assert_eq!((report.lines, report.requests), (13_725, CLASSIFIED));
    assert_eq!(report.damaged.first(), []);
    let notes = &report.notes;
    assert_eq!((notes.unauthenticated, notes.unfinished, notes.not_limited, notes.late), (168, 0, 0, 0));
    assert_eq!((notes.rejected, notes.untimed, notes.unknown_waits), (2505, 0, 3808));
    let flows = &report.flows;
    assert_eq!(flows.iter().map(|flow| flow.requests).sum::<u64>(), CLASSIFIED);
    assert_eq!(flows.iter().map(|flow| flow.recorded.rejected).sum::<u64>(), 2505);
    for flow in flows {
        let replayed = &flow.replayed[0];
        let rejected_before_start: u64 = replayed.rejected_total() - replayed.rejected[2];
        assert_eq!(replayed.wait.count() + rejected_before_start, flow.requests, "{:?}", flow.names);
    }
}

#[test]
fn the_flood_is_rejected_again_and_nobody_else() {
    let report = replay("audit.jsonl", None);
    let flood = &report.flows[0];
    assert_eq!((&*flood.names[0].schema, &*flood.names[0].level), ("batch", "batch"));
    assert_eq!(flood.names[0].distinguisher.as_deref(), Some("batch-runner"));
    let rejected = flood.replayed[0].rejected_total();
    assert_eq!(flood.recorded.rejected, 2505);
    assert!((2200..=2800).contains(&rejected), "{rejected} rejected; 2,505 recorded");
    assert!(report.flows[1..].iter().all(|flow| flow.replayed[0].rejected_total() == 0), "{:#?}", report.flows);
}

/// TL-31, TL-35
#[test]
fn the_request_log_alone_keeps_the_schemas() {
    let report = replay("httplog.txt", None);
    assert_eq!((report.lines, report.requests, report.damaged.count()), (6926, CLASSIFIED, 0));
    assert_eq!((report.comparison.compared, report.comparison.agree), (CLASSIFIED, CLASSIFIED));
    assert!(report.notes.without_users);
    assert_eq!(report.notes.unauthenticated, 168);
    let schemas = |report: &Report| {
        let mut requests: Vec<_> =
            report.flows.iter().map(|flow| (flow.names[0].schema.clone(), flow.requests)).collect();
        requests.sort();
        requests.dedup_by(|one, other| {
            let is_same = one.0 == other.0;
            other.1 += if is_same { one.1 } else { 0 };
            is_same
        });
        requests
    };
    assert_eq!(schemas(&report), schemas(&replay("audit.jsonl", None)));
}

#[test]
fn one_configuration_twice_makes_no_difference() {
    let mut replay = Replay::new(settings(), vec![recorded_objects(), recorded_objects()], None);
    replay.read(&mut Input::open(&recorded_file("audit.jsonl"), None).unwrap(), |_, _| {});
    let report = replay.finish();
    for flow in &report.flows {
        let [before, after] = &flow.replayed[..] else { panic!("two sides") };
        assert_eq!(flow.names[0], flow.names[1]);
        assert_eq!((before.rejected, before.waited, before.seat_time), (after.rejected, after.waited, after.seat_time));
        assert_eq!(before.wait.percentile(0.99), after.wait.percentile(0.99));
    }
}

/// TL-31
#[test]
fn the_same_log_as_a_list_gives_the_same() {
    let text = recorded_text("audit.jsonl");
    let list =
        format!("{{\"kind\":\"EventList\",\"items\":[{}],\"metadata\":{{}}}}\n", text.trim_end().replace('\n', ","));
    let report = crate::logs::replay(settings(), vec![recorded_objects()], list);
    let lines = crate::logs::replay(settings(), vec![recorded_objects()], text);
    assert_eq!((report.lines, report.requests), (lines.lines, lines.requests));
    let figures = |report: &Report| format!("{:?}", report.flows);
    assert_eq!(figures(&report), figures(&lines));
}

/// TL-35
#[test]
fn metrics_tell_the_numbers_of_objects() {
    let mut settings = settings();
    settings.object_numbers = recorded_text("metrics.txt").parse().unwrap();
    assert!(settings.object_numbers.len() > 2);
    let report = crate::logs::replay(settings, vec![recorded_objects()], recorded_text("audit.jsonl"));
    assert_eq!(report.notes.lists, 0);
    let seat_seconds = |report: &Report| {
        let exempt = report.flows.iter().filter(|flow| &*flow.names[0].schema == "exempt");
        exempt.map(|flow| flow.replayed[0].seat_seconds()).sum::<f64>()
    };
    assert!(seat_seconds(&report) > 2.0 * seat_seconds(&replay("audit.jsonl", None)), "lists are wide");
}
