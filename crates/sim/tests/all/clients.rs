//! Clients: when they send requests, and what they do when they are rejected.

use evenkeel_api::Preset;
use evenkeel_api::v1::{FlowSchema, PriorityLevelConfiguration};
use evenkeel_engine::controller::Objects;
use evenkeel_sim::report::{Figures, Report};
use evenkeel_sim::workload::Workload;
use evenkeel_sim::{Scenario, ServerSettings, run};

/// A level that rejects what finds no seat.
fn one_level() -> Objects {
    let level = PriorityLevelConfiguration::builder("all").limited(|l| l.shares(10).reject()).build();
    let schema = FlowSchema::builder("all").priority_level("all");
    let schema = schema.rule(|r| r.user("*").non_resource_urls(["*"]).verbs(["*"])).build();
    [level.into(), schema.into()].into_iter().collect::<Objects>().with_mandatory_levels()
}

fn report(spec: &str, seats: i64, objects: Objects) -> Report {
    let text = format!("{{apiVersion: evenkeel.dev/v1, kind: Workload, metadata: {{name: w}}, spec: {{{spec}}}}}");
    let workload =
        Workload::parse("w.yaml", text.as_bytes(), Preset::Kubernetes).unwrap_or_else(|problems| panic!("{problems}"));
    let scenario = Scenario { settings: ServerSettings::new(seats), objects, applied: vec![one_level()] };
    run(&workload, &scenario, 7, &mut |_| {}).report
}

fn figures(spec: &str, seats: i64) -> Figures {
    report(spec, seats, one_level()).flows.remove(0).figures
}

#[test]
fn arrivals_are_as_the_workload_says() {
    let flow =
        |arrivals: &str| format!("seconds: 10, flows: [{{name: a, arrivals: {arrivals}, service: {{fixed: 10ms}}}}]");
    let requests = |arrivals: &str| figures(&flow(arrivals), 1000).requests;
    assert_eq!(requests("{periodic: {every: 200ms}}"), 50);
    assert_eq!(requests("{burst: {at: 3s, requests: 70}}"), 70);
    assert!((4_800..5_200).contains(&requests("{poisson: {rate: 500}}")));
    // Each client: 10 ms of service and 90 ms of thinking.
    assert_eq!(requests("{closed: {clients: 5, think: 90ms}}"), 500);
    let late = figures(&flow("{periodic: {every: 200ms}}, from: 2s, to: 4s"), 1000);
    assert_eq!(late.requests, 10);
}

/// Clients that neither think nor are served for any time would keep a simulation busy for hours.
#[test]
fn a_simulation_with_too_many_events_ends_and_says_why() {
    let text = "{apiVersion: evenkeel.dev/v1, kind: Workload, metadata: {name: w}, spec: {seconds: 60, flows: [
        {name: slow, arrivals: {periodic: {every: 1s}}, service: {fixed: 10ms}},
        {name: hasty, arrivals: {closed: {clients: 10, think: 0s}}, service: {fixed: 0s}}]}}";
    let mut workload = Workload::parse("w.yaml", text.as_bytes(), Preset::Kubernetes).unwrap();
    workload.simulated_events_max = 10_000;
    let scenario = Scenario { settings: ServerSettings::new(10), objects: one_level(), applied: Vec::new() };
    let report = run(&workload, &scenario, 7, &mut |_| {}).report;
    let early = report.ended_early.expect("it ended early");
    assert_eq!((&*early.busiest_flow, early.of_seconds), ("hasty", 60.0));
    assert!(report.simulated_seconds < 1.0 && report.events < 20_000, "{} {}", report.simulated_seconds, report.events);
}

#[test]
fn warm_up_is_not_counted() {
    let flow =
        "seconds: 10, warmup: 4, flows: [{name: a, arrivals: {periodic: {every: 100ms}}, service: {fixed: 50ms}}]";
    let report = report(flow, 10, one_level());
    let Figures { requests, completed, seat_seconds, .. } = report.flows[0].figures;
    assert_eq!((requests, completed), (60, 60));
    assert!((seat_seconds - 3.0).abs() < 0.001, "{seat_seconds}");
    assert_eq!(report.simulated_seconds, 10.0);
    let level = report.levels.iter().find(|level| level.name == "all").unwrap();
    assert!((level.seats.mean - 0.5).abs() < 0.001, "{level:?}");
}

#[test]
fn rejected_clients_do_as_they_are_told() {
    // One seat is taken for the whole time; a request arrives at each second.
    let flow = |on_rejection: &str| {
        format!(
            "seconds: 60, flows: [{{name: a, arrivals: {{burst: {{requests: 1, at: 1s}}}}, service: {{fixed: 1ms}}, onRejection: {on_rejection}}}, \
             {{name: b, arrivals: {{burst: {{requests: 1, at: 0s}}}}, service: {{fixed: 60s}}}}]"
        )
    };
    let attempts = |on_rejection: &str| {
        let Figures { requests, retries, completed, rejected, .. } = figures(&flow(on_rejection), 1);
        assert_eq!((requests - 1, completed), (retries, 0));
        assert_eq!(rejected["concurrency-limit"], requests);
        requests
    };
    assert_eq!(attempts("giveUp"), 1);
    // A Kubernetes API tells one client a second to come back in a second.
    assert!((20..=59).contains(&attempts("{retryAfter: honour}")));
    assert_eq!(attempts("ignore"), 59_000);
    // 1, 2, 4, 8, 16 s, less up to a half of each.
    assert!((6..=10).contains(&attempts("{backoff: {base: 1s, max: 16s}}")));
}

#[test]
fn impatient_requests_give_up_waiting() {
    let objects = Objects::bootstrap();
    let spec =
        "seconds: 20, flows: [{name: a, arrivals: {burst: {requests: 100}}, service: {fixed: 2s}, patience: 3s}]";
    let report = report(spec, 120, objects);
    let flow = &report.flows[0];
    assert_eq!((&*flow.priority_level, &*flow.flow_schema), ("global-default", "global-default"));
    let Figures { requests, completed, timed_out, wait, .. } = flow.figures;
    assert_eq!((requests, completed + timed_out), (100, 100));
    assert!(timed_out > 0 && wait.max < 3_000.0, "{timed_out} {wait:?}");
}

#[test]
fn events_change_the_server() {
    let spec = "seconds: 20, flows: [{name: a, arrivals: {periodic: {every: 10ms}}, service: {fixed: 100ms}}], \
                events: [{at: 10s, apply: x.yaml}, {at: 15s, concurrency: 5}]";
    // No seats for requests without a schema but that of catch-all, then a level with all of them, then with half of what is needed.
    let report = report(spec, 100, Objects::default());
    let level = |name: &str| report.levels.iter().find(|level| level.name == name).unwrap();
    assert_eq!(level("all").nominal, 4);
    assert_eq!(level("all").seats.max, 10.0);
    assert!(level("all").rejected["concurrency-limit"] > 250);
}
