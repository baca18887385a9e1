//! What a log tells of seats and waits is what the report has, and what cannot be honoured is counted.

use evenkeel_api::Preset;
use evenkeel_engine::controller::Objects;
use evenkeel_engine::time::MILLISECOND;
use evenkeel_replay::{Report, Settings};

use crate::logs::{TENANTS, objects, replay};

/// Requests wait in hands of queues, and estimates would cap a request at one or two of the seats, of which none are borrowed.
fn tenants() -> Objects {
    let queuing = "queues: 64, handSize: 6, queueLengthLimit: 50";
    let manifest = TENANTS
        .replace("queues: 8, handSize: 1, queueLengthLimit: 6", queuing)
        .replace("nominalConcurrencyShares: 100", "nominalConcurrencyShares: 100\n    borrowingLimitPercent: 0");
    assert!(manifest.contains(queuing) && manifest.contains("borrowingLimitPercent"));
    objects(&manifest)
}

/// A request each second, which took these seats for a tenth of a second.
fn log(seats: &[Option<u32>]) -> String {
    let line = |(second, seats): (usize, &Option<u32>)| {
        let seats = seats.map(|seats| format!(r#","seats":{seats}"#)).unwrap_or_default();
        format!(
            r#"{{"time":"2026-11-16T10:51:{second:02}Z","user":"alice","groups":["system:authenticated"],"method":"GET","path":"/","schema":"tenants","level":"tenants"{seats},"waitMs":0,"serviceMs":100,"status":200}}"#
        ) + "\n"
    };
    seats.iter().enumerate().map(line).collect()
}

fn replayed(seats: &[Option<u32>]) -> Report {
    replay(Settings::new(Preset::Plain, 20), vec![tenants()], log(seats))
}

fn seat_seconds(report: &Report) -> f64 {
    report.flows.iter().map(|flow| flow.replayed[0].seat_seconds()).sum()
}

#[test]
fn requests_take_the_seats_that_the_log_tells() {
    let report = replayed(&[Some(8), Some(1), Some(3)]);
    assert!((seat_seconds(&report) - 1.2).abs() < 1e-6, "{}", seat_seconds(&report));
    let notes = &report.notes;
    assert_eq!((notes.narrowed, notes.unknown_seats, notes.seatless), (0, 0, 0));
}

#[test]
fn what_cannot_be_honoured_is_counted() {
    let report = replayed(&[Some(50), None, Some(0), Some(2)]);
    let notes = &report.notes;
    assert_eq!((notes.narrowed, notes.unknown_seats, notes.seatless), (1, 1, 1));
    assert_eq!(report.requests, 3, "a request that took no seats is left out");
    assert!((seat_seconds(&report) - 2.3).abs() < 1e-6, "20, 1 and 2 seats: {}", seat_seconds(&report));
}

/// As `jq .` and `jq -s .` write it.
#[test]
fn a_log_that_was_written_anew_is_read() {
    let text = log(&[Some(8), Some(1), Some(3)]);
    let over_lines = text.replace(",\"", ",\n  \"").replace("{\"", "{\n  \"").replace("\":", "\": ");
    let array = format!("[\n{}\n]\n", over_lines.trim_end().replace("}\n{", "},\n{"));
    let spaced = text.replace("\":", "\" : ").replace(",\"", ", \"");
    for anew in [over_lines, array, spaced] {
        let report = replay(Settings::new(Preset::Plain, 20), vec![tenants()], anew.clone());
        assert_eq!((report.requests, report.damaged.count()), (3, 0), "{anew}");
        assert!((seat_seconds(&report) - 1.2).abs() < 1e-6);
    }
}

#[test]
fn those_whose_clients_left_have_waited_and_those_rejected_on_arrival_have_not() {
    let rejected = |reason: &str, wait: u32| {
        let end = format!(r#""waitMs":{wait},"serviceMs":0,"rejected":"{reason}","#);
        log(&[Some(1)]).replace(r#""waitMs":0,"serviceMs":100,"#, &end)
    };
    let text = rejected("cancelled", 700) + &rejected("time-out", 900) + &rejected("queue-full", 0) + &log(&[Some(1)]);
    let report = replay(Settings::new(Preset::Plain, 20), vec![tenants()], text);
    let recorded = &report.flows[0].recorded;
    assert_eq!((recorded.rejected, recorded.wait.count()), (3, 3), "two waited, and one was served");
    assert_eq!(recorded.wait.max() / MILLISECOND, 900);
}
