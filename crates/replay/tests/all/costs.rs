//! What a log tells of costs counts where the new objects count in the same unit (CO-6), and the limit that finds itself is in the report.

use std::sync::Arc;

use evenkeel::service::Occupancy;
use evenkeel_api::Preset;
use evenkeel_engine::auto_limit::Concurrency;
use evenkeel_engine::controller::Objects;
use evenkeel_engine::{RequestInfo, WorkEstimate};
use evenkeel_replay::{Report, RoutedRequest, Routes, Settings};

use crate::logs::{TENANTS, objects, replay};

/// Costs are counted in this unit, and 100 of it are a seat.
fn learnt(unit: &str) -> Objects {
    let annotations = format!(
        "metadata: {{name: tenants, annotations: {{evenkeel.dev/cost: '{unit}', evenkeel.dev/seats: learnt, evenkeel.dev/cost-per-seat: '100', evenkeel.dev/seats-max: '20'}}}}\nspec:\n  priorityLevelConfiguration"
    );
    objects(&TENANTS.replace("metadata: {name: tenants}\nspec:\n  priorityLevelConfiguration", &annotations))
}

/// A request each second that took a tenth of one, with these paths and members.
fn log(requests: impl Iterator<Item = (&'static str, String)>) -> String {
    let line = |(index, (path, members)): (usize, (&str, String))| {
        format!(
            r#"{{"time":"2026-11-16T10:{:02}:{:02}Z","user":"alice","groups":["system:authenticated"],"method":"GET","path":"{path}","schema":"tenants","level":"tenants","seats":1,{members},"waitMs":0,"serviceMs":100,"status":200}}"#,
            index / 60,
            index % 60,
        ) + "\n"
    };
    requests.enumerate().map(line).collect()
}

fn seat_seconds(report: &Report) -> f64 {
    report.flows.iter().map(|flow| flow.replayed[0].seat_seconds()).sum()
}

/// Thirty requests of 400 each, replayed with a unit.
fn thirty(unit: &str, members: &str) -> Report {
    let text = log((0..30).map(|_| ("/", members.to_owned())));
    replay(Settings::new(Preset::Plain, 100), vec![learnt(unit)], text)
}

#[test]
fn co_6_seats_are_learnt_from_the_costs_of_the_log() {
    let report = thirty("tokens", r#""cost":400,"costExpected":0,"costUnit":"tokens""#);
    assert_eq!(report.notes.untold_costs, 0);
    assert!((seat_seconds(&report) - 11.7).abs() < 1e-6, "one seat, and then four: {}", seat_seconds(&report));
    // Bytes are in every line.
    let report = thirty("bytes", r#""bytesOut":400,"cost":9,"costExpected":0,"costUnit":"tokens""#);
    assert_eq!(report.notes.untold_costs, 0);
    assert!((seat_seconds(&report) - 11.7).abs() < 1e-6, "{}", seat_seconds(&report));
}

#[test]
fn co_6_costs_in_another_unit_do_not_count_and_the_report_says_so() {
    for members in [r#""cost":400,"costExpected":0,"costUnit":"bytes""#, r#""cost":400"#, r#""bytesOut":400"#] {
        let report = thirty("tokens", members);
        assert_eq!(report.notes.untold_costs, 30, "{members}");
        assert!((seat_seconds(&report) - 3.0).abs() < 1e-6, "{members}: {}", seat_seconds(&report));
    }
    // How long a request ran is in the log in any case.
    assert_eq!(thirty("time", r#""bytesOut":400"#).notes.untold_costs, 0);
    assert_eq!(
        replay(
            Settings::new(Preset::Plain, 100),
            vec![objects(TENANTS)],
            log([("/", r#""cost":1"#.to_owned())].into_iter())
        )
        .notes
        .untold_costs,
        0
    );
}

/// Two routes whose paths look alike.
#[derive(Debug)]
struct Numbered {
    has_numbers: bool,
}

impl Routes for Numbered {
    fn find(&self, method: &str, target: &str) -> Option<RoutedRequest> {
        Some(RoutedRequest {
            info: RequestInfo::for_path(method.to_lowercase(), target).into_owned(),
            work: WorkEstimate::ONE_SEAT,
            occupancy: Occupancy::ToTheEnd,
            wait_limit: None,
            route: self.has_numbers.then(|| if target.ends_with('1') { 1 } else { 2 }),
        })
    }
}

#[test]
fn co_6_routes_have_averages_of_their_own() {
    let kinds = [("/items/1", 100), ("/items/2", 1600)];
    let text = log((0..80).map(|index| {
        let (path, cost) = kinds[index % 2];
        (path, format!(r#""cost":{cost},"costExpected":0,"costUnit":"tokens""#))
    }));
    let seats_max = |has_numbers| {
        let mut settings = Settings::new(Preset::Plain, 100);
        settings.routes = Some(Arc::new(Numbered { has_numbers }));
        let report = replay(settings, vec![learnt("tokens")], text.clone());
        let level = report.levels(0).iter().find(|level| level.name() == "tenants").unwrap();
        level.totals().seats_max
    };
    assert_eq!(seats_max(true), 16);
    assert!(seats_max(false) < 16, "both together: {}", seats_max(false));
}

/// AL-8
#[test]
fn al_8_the_report_tells_the_limit_that_was_found() {
    // 2,000 requests a second of 40 ms: 80 seats.
    let line = |index: u32| {
        let (second, micros) = (index / 2000, index % 2000 * 500);
        format!(
            r#"{{"time":"2026-11-16T10:51:{second:02}.{micros:06}Z","user":"user-{}","groups":["system:authenticated"],"method":"GET","path":"/","schema":"tenants","level":"tenants","seats":1,"waitMs":0,"serviceMs":40,"status":200}}"#,
            index % 50
        ) + "\n"
    };
    let text: String = (0..20_000).map(line).collect();
    let auto: Concurrency = "auto:10..400".parse().unwrap();
    let report = replay(Settings::new(Preset::Plain, auto), vec![objects(TENANTS)], text.clone());
    let limit = report.limit(0).expect("it found itself");
    assert!(limit.limit > 40.0 && !limit.changes.is_empty(), "{limit:?}");
    assert_eq!(replay(Settings::new(Preset::Plain, 100), vec![objects(TENANTS)], text).limit(0), None);
}
