//! The workloads in `examples/workloads`: what each is to show, and that the same input gives the same bytes.

use std::fs;
use std::path::PathBuf;

use evenkeel_api::Preset;
use evenkeel_api::decode::{Manifest, Strictness};
use evenkeel_engine::controller::{Borrowing, Objects};
use evenkeel_sim::report::{FlowReport, Report};
use evenkeel_sim::workload::Workload;
use evenkeel_sim::{Scenario, ServerSettings, run};

fn folder(example: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "../../examples/workloads", example].iter().collect()
}

fn objects(example: &str, file: &str) -> Objects {
    let text = fs::read(folder(example).join(file)).unwrap();
    let manifest = Manifest::read(file, &text, Strictness::Strict).unwrap();
    manifest.entries.into_iter().map(|entry| entry.object).collect::<Objects>().with_mandatory_levels()
}

fn workload(example: &str) -> Workload {
    let text = fs::read(folder(example).join("workload.yaml")).unwrap();
    Workload::parse("workload.yaml", &text, Preset::Kubernetes).unwrap()
}

fn simulate(example: &str, file: &str, seats: i64, borrowing: Borrowing) -> Report {
    let mut settings = ServerSettings::new(seats);
    settings.borrowing = borrowing;
    let scenario = Scenario { settings, objects: objects(example, file), applied: Vec::new() };
    run(&workload(example), &scenario, 1, &mut |_| {}).report
}

fn periodic(example: &str, file: &str, seats: i64) -> Report {
    simulate(example, file, seats, Borrowing::Periodic)
}

fn flow<'a>(report: &'a Report, name: &str) -> &'a FlowReport {
    report.flows.iter().find(|flow| flow.name == name).unwrap()
}

#[test]
fn noisy_neighbour() {
    let [before, after] = ["before.yaml", "after.yaml"].map(|file| periodic("noisy-neighbour", file, 26));
    let p99 = |report| flow(report, "mice").figures.total.p99;
    assert!(p99(&before) > 200.0, "{}", p99(&before));
    assert!(p99(&after) < 40.0, "{}", p99(&after));
    assert!(after.jain.overall.unwrap() > 0.999, "{:?}", after.jain);
    let worst = flow(&after, "mice").worst.as_ref().unwrap();
    assert!(worst.user.starts_with("mice-") && worst.figures.total.p99 >= p99(&after));
}

/// AL-1: nobody tells the server that its service has 20 slots, and then 10.
#[test]
fn unknown_capacity() {
    let mut settings = ServerSettings::new(0).concurrency(&"auto".parse().unwrap());
    settings.preset = Preset::Plain;
    let objects = Objects::from(Preset::Plain);
    let scenario = Scenario { settings, objects, applied: Vec::new() };
    let report = run(&workload("unknown-capacity"), &scenario, 1, &mut |_| {}).report;
    let limit = report.limit.as_ref().unwrap();
    assert!(limit.is_known && (8.0..=12.5).contains(&limit.limit), "{limit:?}");
    // At best, 2,000 a second for half a minute and then 1,000.
    let completed = flow(&report, "clients").figures.completed;
    assert!(completed > 81_000, "{completed}");
}

/// FL-4: a tenant gets what others get, wherever they are.
#[test]
fn shared_seats() {
    let text = fs::read(folder("shared-seats").join("workload.yaml")).unwrap();
    let workload = Workload::parse("workload.yaml", &text, Preset::Plain).unwrap();
    let report = crate::fleet::simulate(&workload, 60, 1);
    let fleet = report.fleet.as_ref().unwrap();
    assert!(fleet.in_use.max <= 60.0 && fleet.in_use.mean > 57.0, "{:?}", fleet.in_use);
    assert!(fleet.jain.unwrap() > 0.99, "{:?}", fleet.jain);
    // With 20 seats each, one tenant has a third of the seats.
    assert!(fleet.apart.jain.unwrap() < 0.6, "{:?}", fleet.apart.jain);
    let mean = |instance: usize| fleet.instances[instance].in_use.mean;
    assert!(mean(0) < 6.0 && mean(1) > 20.0 && mean(2) > 20.0, "{:?}", fleet.instances);
}

#[test]
fn cold_burst() {
    let before = periodic("cold-burst", "before.yaml", 100);
    let after = periodic("cold-burst", "after.yaml", 100);
    let immediate = simulate("cold-burst", "before.yaml", 100, Borrowing::Immediate);
    let wait = |report| flow(report, "people").figures.wait.p99;
    assert!(wait(&before) > 1.5 * wait(&after), "{} {}", wait(&before), wait(&after));
    assert!(wait(&before) > 3.0 * wait(&immediate), "{} {}", wait(&before), wait(&immediate));
}

#[test]
fn retry_storm() {
    let [before, after] = ["before.yaml", "after.yaml"].map(|file| periodic("retry-storm", file, 40));
    let retries = |report: &Report| report.flows.iter().map(|flow| flow.figures.retries).sum::<u64>();
    assert!(retries(&before) > 10 * retries(&after).max(1), "{} {}", retries(&before), retries(&after));
    let completed = |report| flow(report, "patient").figures.completed;
    assert!(completed(&after) > completed(&before), "{} {}", completed(&before), completed(&after));
}

#[test]
fn unknown_costs() {
    let [before, after] = ["before.yaml", "after.yaml"].map(|file| periodic("unknown-costs", file, 26));
    let index = |report: &Report| report.jain.overall.unwrap();
    assert!(index(&after) > 0.99, "{:?}", after.jain);
    assert!(index(&before) < index(&after), "{:?}", before.jain);
}

/// CO-3, CO-6: a tenant whose requests cost forty times as much gets no more of the service than the others, once that is known.
#[test]
fn reported_costs() {
    let [before, after] = ["before.yaml", "after.yaml"].map(|file| {
        let mut settings = ServerSettings::new(100);
        settings.preset = Preset::Plain;
        let text = fs::read(folder("reported-costs").join("workload.yaml")).unwrap();
        let workload = Workload::parse("workload.yaml", &text, Preset::Plain).unwrap();
        let scenario = Scenario { settings, objects: objects("reported-costs", file), applied: Vec::new() };
        run(&workload, &scenario, 1, &mut |_| {}).report
    });
    let cost = |report, name| {
        let flow = flow(report, name);
        flow.figures.cost.unwrap_or_default() / f64::from(flow.count)
    };
    let times = |report| cost(report, "reports") / cost(report, "rows");
    assert!(times(&before) > 20.0, "{}", times(&before));
    assert!((0.8..1.3).contains(&times(&after)), "{}", times(&after));
}

#[test]
fn wide_requests() {
    let [before, after] = ["before.yaml", "after.yaml"].map(|file| periodic("wide-requests", file, 60));
    let p99 = |report| flow(report, "readers").figures.total.p99;
    assert!(p99(&before) > p99(&after), "{} {}", p99(&before), p99(&after));
    // Lists take more than one seat: seat-seconds exceed the time that they ran.
    let lister = &flow(&after, "lister").figures;
    assert!(lister.seat_seconds > 5.0 * lister.completed as f64 * 0.8, "{lister:?}");
}

#[test]
fn priority_inversion() {
    let [before, after] = ["before.yaml", "after.yaml"].map(|file| periodic("priority-inversion", file, 50));
    let [old, new] = [&before, &after].map(|report| &flow(report, "heartbeats").figures);
    assert!(old.total.p99 > 1_000.0 || old.timed_out > 0, "{old:?}");
    assert!(new.total.p99 < 15.0 && new.timed_out == 0, "{new:?}");
}

/// Debug and release builds, and every machine, compare with the same bytes (TL-25).
#[test]
fn reports_have_the_same_bytes_everywhere() {
    let file = [env!("CARGO_MANIFEST_DIR"), "tests/all/reports.json"].iter().collect::<PathBuf>();
    let mut reports = Vec::new();
    for (example, seats) in [("noisy-neighbour", 26), ("retry-storm", 40), ("unknown-costs", 26), ("wide-requests", 60)]
    {
        for borrowing in [Borrowing::Periodic, Borrowing::Immediate] {
            let report = simulate(example, "after.yaml", seats, borrowing);
            assert_conserved(example, &report);
            reports.push(report);
        }
    }
    let found = serde_json::to_string_pretty(&reports).unwrap() + "\n";
    if std::env::var_os("EVENKEEL_UPDATE").is_some() {
        fs::write(&file, &found).unwrap();
    }
    let expected = fs::read_to_string(&file).unwrap();
    assert!(found == expected, "reports differ from {}; EVENKEEL_UPDATE=1 writes it", file.display());
}

/// Seats and requests are neither lost nor made.
fn assert_conserved(example: &str, report: &Report) {
    let workload = workload(example);
    let counted = (workload.span - workload.warmup) as f64 / 1e9;
    let by_flow: f64 = report.flows.iter().map(|flow| flow.figures.seat_seconds).sum();
    let by_level: f64 = report.levels.iter().map(|level| level.seats.mean * counted).sum();
    assert!((by_flow - by_level).abs() <= 0.001 * by_level, "{example}: {by_flow} {by_level}");
    assert!(report.levels.iter().all(|level| level.seats.max <= level.max as f64), "{example}");
    for FlowReport { name, figures, .. } in &report.flows {
        let ended = figures.completed + figures.timed_out + figures.rejected_sum();
        // Some are under way at the end.
        assert!(ended <= figures.requests && figures.requests - ended <= 640, "{example}: {name} {figures:?}");
    }
}

/// TL-26
#[test]
fn adding_a_flow_does_not_shift_the_others() {
    let full = workload("retry-storm");
    let mut alone = full.clone();
    alone.flows.retain(|flow| flow.name == "patient");
    // Seats for everybody: what is left of differences would be those of arrivals and service times.
    let report = |workload: &Workload| {
        let mut workload = workload.clone();
        (workload.service.slots, workload.events) = (None, Vec::new());
        let objects = objects("retry-storm", "after.yaml");
        let scenario = Scenario { settings: ServerSettings::new(4000), objects, applied: Vec::new() };
        flow(&run(&workload, &scenario, 1, &mut |_| {}).report, "patient").clone()
    };
    assert_eq!(report(&full), report(&alone));
}
