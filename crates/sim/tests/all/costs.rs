//! Costs and rates in the simulator (CO-6): a workload says what requests cost, and the same accounts count as in a server.

use std::cell::RefCell;

use evenkeel_api::Preset;
use evenkeel_engine::controller::Objects;
use evenkeel_engine::time::{MILLISECOND, SECOND};
use evenkeel_engine::{Attributes, RequestInfo, User, WorkEstimate};
use evenkeel_sim::report::{FlowReport, Report};
use evenkeel_sim::workload::Workload;
use evenkeel_sim::{End, NewRequest, Outcome, Scenario, ServerSettings, Simulator, run};

use crate::costed_objects::costed_objects;

fn objects(annotations: &str) -> Objects {
    objects_told_apart(annotations, "{type: ByUser}")
}

/// With a distinguisher of its flows; `null`: all requests are one flow.
pub(crate) fn objects_told_apart(annotations: &str, distinguisher: &str) -> Objects {
    costed_objects(annotations, distinguisher, "{}")
}

fn simulate(annotations: &str, seconds: u32, flows: &str) -> Report {
    let text = format!(
        "{{apiVersion: evenkeel.dev/v1, kind: Workload, metadata: {{name: costs}}, spec: {{seconds: {seconds}, warmup: 10, flows: [{flows}]}}}}"
    );
    let workload = Workload::parse("workload", text.as_bytes(), Preset::Plain).unwrap();
    let mut settings = ServerSettings::new(100);
    settings.preset = Preset::Plain;
    let scenario = Scenario { settings, objects: objects(annotations), applied: Vec::new() };
    run(&workload, &scenario, 1, &mut |_| {}).report
}

fn flow<'a>(report: &'a Report, name: &str) -> &'a FlowReport {
    report.flows.iter().find(|flow| flow.name == name).unwrap()
}

const LEARNT: &str = "evenkeel.dev/cost: tokens, evenkeel.dev/seats: learnt, evenkeel.dev/cost-per-seat: '1', evenkeel.dev/seats-max: '50'";

/// Two kinds of requests, of which nobody says how many seats they take.
const KINDS: &str = "
    {name: rows, request: {path: /rows}, arrivals: {poisson: {rate: 100}}, service: {fixed: 100ms, cost: 1}},
    {name: reports, request: {path: /reports}, arrivals: {poisson: {rate: 1}}, service: {fixed: 100ms, cost: {fixed: 40}}}";

#[test]
fn co_6_seats_are_learnt_from_what_simulated_requests_cost() {
    let seats = |report: &Report, name| {
        let figures = &flow(report, name).figures;
        figures.seat_seconds / (figures.completed as f64 * 0.1)
    };
    let learnt = simulate(LEARNT, 60, KINDS);
    assert!((seats(&learnt, "rows") - 1.0).abs() < 0.05, "{}", seats(&learnt, "rows"));
    assert!((seats(&learnt, "reports") - 40.0).abs() < 2.0, "{}", seats(&learnt, "reports"));
    let reports = &flow(&learnt, "reports").figures;
    assert_eq!(reports.cost, Some(40.0 * reports.completed as f64));
    let unknown = simulate("", 60, KINDS);
    assert!((seats(&unknown, "reports") - 1.0).abs() < 0.05, "one each where nothing is said");
}

#[test]
fn co_1_flows_take_turns_by_cost() {
    let flows = "
        {name: cheap, arrivals: {closed: {clients: 200}}, service: {fixed: 100ms, cost: 1}},
        {name: dear, arrivals: {closed: {clients: 200}}, service: {fixed: 100ms, cost: {mix: [[0.5, 1], [0.5, 3]]}}}";
    let report = simulate("evenkeel.dev/cost: tokens", 60, flows);
    let (cheap, dear) = (&flow(&report, "cheap").figures, &flow(&report, "dear").figures);
    let requests = cheap.completed as f64 / dear.completed as f64;
    let cost = cheap.cost.unwrap() / dear.cost.unwrap();
    assert!((1.9..2.1).contains(&requests) && (0.95..1.05).contains(&cost), "{requests} {cost}");
}

#[test]
fn rl_2_a_rate_delays_and_does_not_reject_where_the_wait_is_short() {
    let flows = "{name: steady, arrivals: {poisson: {rate: 120}}, service: {fixed: 5ms}, patience: 60s}";
    let report = simulate("evenkeel.dev/rate: 100/s;burst=10", 60, flows);
    let figures = &flow(&report, "steady").figures;
    // The tail of those that arrived still waits at the end.
    let per_second = figures.seat_seconds / 0.005 / 50.0;
    assert!((per_second - 100.0).abs() < 1.0, "{per_second}");
    assert_eq!((figures.rejected_sum(), figures.timed_out), (0, 0));
    assert!(figures.wait.max > 1000.0, "{:?}", figures.wait);
}

#[test]
fn rl_2_what_is_over_a_rate_that_rejects_counts_as_rate_limit() {
    let flows = "{name: steady, arrivals: {poisson: {rate: 120}}, service: {fixed: 5ms}}";
    let report = simulate("evenkeel.dev/rate: 100/s;burst=10;excess=reject", 60, flows);
    let figures = &flow(&report, "steady").figures;
    let rejected = figures.rejected["rate-limit"] as f64 / figures.requests as f64;
    assert!((0.1..0.25).contains(&rejected), "{rejected}");
    assert_eq!(
        report.levels.iter().find(|level| level.name == "api").unwrap().rejected["rate-limit"],
        figures.rejected["rate-limit"]
    );
    let per_second = figures.completed as f64 / 50.0;
    assert!((95.0..=101.0).contains(&per_second), "{per_second}");
}

#[test]
fn rl_3_a_rate_of_bytes_is_corrected_when_they_are_known() {
    let flows = "{name: exports, arrivals: {poisson: {rate: 11}}, service: {fixed: 5ms, cost: {lognormal: {median: 900, sigma: 0.5}}}, patience: 60s}";
    let report = simulate("evenkeel.dev/rate: 10000/s;unit=bytes;burst=20000", 120, flows);
    let per_second = flow(&report, "exports").figures.cost.unwrap() / 110.0;
    assert!((9500.0..10_500.0).contains(&per_second), "{per_second}");
}

/// The level is gone that a request should come to after it has waited for its rate: the request gives back what it took.
#[test]
fn rl_2_a_request_whose_level_went_away_gives_back_what_it_took_of_the_rate() {
    let rate = objects("evenkeel.dev/rate: 1/s;burst=1");
    let mut settings = ServerSettings::new(100);
    settings.preset = Preset::Plain;
    let mut simulator: Simulator<u32> = Simulator::new(settings, rate.clone());
    let ends = RefCell::new(Vec::new());
    let note = |outcome: Outcome<u32>| ends.borrow_mut().push((outcome.token, outcome.ended, outcome.end));
    let arrive = |simulator: &mut Simulator<u32>, at, token| {
        let user = User::new("alice", ["system:authenticated"]);
        let request = RequestInfo::for_path("get", "/orders");
        let attributes = Attributes { user: &user, request: &request };
        let class = simulator.classify(attributes);
        let key = simulator.account_key(attributes, class);
        let new = NewRequest::new(token, 10 * MILLISECOND, WorkEstimate::ONE_SEAT).patience(15 * SECOND);
        simulator.arrive(at, class, new.cost(None, key), &mut { note });
    };
    arrive(&mut simulator, 0, 1);
    arrive(&mut simulator, 0, 2);
    simulator.apply(SECOND / 2, Objects::from(Preset::Plain), &mut { note });
    simulator.apply(SECOND + 100 * MILLISECOND, rate, &mut { note });
    arrive(&mut simulator, SECOND + 200 * MILLISECOND, 3);
    simulator.run_until(2 * SECOND, &mut { note });
    let ends = ends.into_inner();
    let end_of = |token| ends.iter().find(|(of, ..)| *of == token).unwrap_or_else(|| panic!("{token}: {ends:?}"));
    assert!(matches!(end_of(2), (_, SECOND, End::Rejected { .. })), "{ends:?}");
    assert_eq!(end_of(3).1, SECOND + 210 * MILLISECOND, "the rate has room for it: {ends:?}");
}

#[test]
fn what_is_wrong_with_a_cost_is_told_with_its_place() {
    let problem = |service: &str| {
        let text = format!(
            "apiVersion: evenkeel.dev/v1\nkind: Workload\nspec:\n  seconds: 1\n  flows:\n  - {{name: a, arrivals: {{poisson: {{rate: 1}}}}, service: {service}}}\n"
        );
        Workload::parse("w.yaml", text.as_bytes(), Preset::Plain).unwrap_err().to_string()
    };
    let told = problem("{fixed: 1ms, cost: many}");
    assert!(told.contains("spec.flows[0].service.cost") && told.contains("whole number"), "{told}");
    let told = problem("{cost: 5}");
    assert!(told.contains("must be exactly one of fixed"), "{told}");
    let told = problem("{fixed: 1ms, cost: {mix: [[0.5, 1]]}}");
    assert!(told.contains("add up to 0.5"), "{told}");
}
