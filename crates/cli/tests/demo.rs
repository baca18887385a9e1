//! `evenkeel demo` makes its point, and cleans up after itself.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod child;

use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use child::{Running, evenkeel, run, text};
use serde_json::Value;
use tempfile::TempDir;

/// One at a time: a demo measures waiting times, and another one beside it would add to them.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A machine that stands still for half a second changes the waiting times of one run, and seldom those of three.
const RUNS: usize = 3;

#[test]
fn the_greedy_tenant_is_held_back_and_the_polite_ones_do_not_notice() {
    let _alone = alone();
    let mut too_slow = Vec::new();
    while let Err(figures) = polite_tenants_do_not_notice() {
        too_slow.push(figures);
        assert!(too_slow.len() < RUNS, "{}", too_slow.join("\n"));
    }
}

#[test]
fn the_seats_of_a_fleet_are_where_the_crowd_is() {
    if Command::new("etcd").arg("--version").output().is_err() {
        return evenkeel_missing_tool::skip("etcd is not installed");
    }
    let _alone = alone();
    // On a machine that stands still for seconds, seats come late.
    let follow = || {
        let output = run(&["demo", "--fleet", "-o", "json", "--seconds", "3"]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let report: Value = serde_json::from_str(&text(&output.stdout)).unwrap();
        let stops = report["stops"].as_array().unwrap().clone();
        assert_eq!((report["seats"].as_u64(), stops.len()), (Some(9), 3), "{report}");
        let has_seats = stops.iter().all(|stop| stop["fleetSeats"].as_u64().unwrap() >= 6);
        if has_seats { Ok(()) } else { Err(report.to_string()) }
    };
    let mut late = Vec::new();
    while let Err(report) = follow() {
        late.push(report);
        assert!(late.len() < RUNS, "{}", late.join("\n"));
    }
}

/// Runs the demo, whose outcome must be right each time. The error says which waiting times were not.
fn polite_tenants_do_not_notice() -> Result<(), String> {
    let output = run(&["demo", "--once", "-o", "json", "--seconds", "2"]);
    let (report, said) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("without Evenkeel") && said.contains("with Evenkeel"), "{said}");
    // No line of the log runs through the progress and the table.
    assert!(!said.contains("a request is rejected") && !said.contains("WARN"), "{said}");
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!((&report["formatVersion"], &report["secondsPerHalf"]), (&1.into(), &2.into()));

    let [without, with] = ["withoutEvenkeel", "withEvenkeel"].map(|part| &report[part]);
    let tenants = with["tenants"].as_array().unwrap();
    assert_eq!(tenants.len(), 6);
    let (greedy, polite): (Vec<_>, Vec<_>) = tenants.iter().partition(|tenant| tenant["greedy"] == true);
    assert_eq!(greedy.len(), 1);
    for tenant in &polite {
        assert_eq!((&tenant["rejected"], &tenant["failed"]), (&0.into(), &0.into()), "{tenant}");
    }
    assert!(greedy[0]["rejected"].as_u64().unwrap() > 0, "{}", greedy[0]);

    if let Some(tenant) = polite.iter().find(|tenant| tenant["served"].as_u64().unwrap() < 15) {
        return Err(format!("too few were served: {tenant}"));
    }
    let [shared, own] = ["asKubernetes", "withEvenkeel"].map(|part| &report["manyGreedy"][part]);
    for tenant in [shared, own].iter().flat_map(|part| part["tenants"].as_array().unwrap()) {
        assert_eq!((&tenant["rejected"], &tenant["failed"]), (&0.into(), &0.into()), "{tenant}");
    }
    let burst = &report["burst"];
    let [nominal, kubernetes, evenkeel] =
        ["nominalSeats", "asKubernetes", "withEvenkeel"].map(|figure| burst[figure].as_u64().unwrap());
    assert!(0 < kubernetes && 3 * kubernetes < nominal && nominal <= evenkeel, "{burst}");
    limit_finds_itself(&report["unknownCapacity"])?;
    // The median of a polite tenant that shares all its queues is some thirty times that of one with its own queue.
    let [shared, own] = [shared, own].map(highest_polite_p50);
    if own * 2.0 >= shared {
        return Err(format!(
            "highest p50 of a polite tenant: {shared} ms with Kubernetes' queues, {own} ms with Evenkeel"
        ));
    }
    // It is some forty times less on a quiet machine, and five times less on a very busy one.
    let [before, after] = [without, with].map(|part| part["politeP99Ms"].as_f64().unwrap());
    if after * 2.0 < before {
        return Ok(());
    }
    Err(format!("p99 of the polite tenants: {before} ms without, {after} ms with Evenkeel"))
}

/// In the second half of its part, the service with a limit does some four times what it does without one; half of that on a busy machine.
fn limit_finds_itself(report: &Value) -> Result<(), String> {
    let stretches = |part: &str| report[part]["stretches"].as_array().unwrap().clone();
    let (without, with) = (stretches("withoutLimit"), stretches("withAuto"));
    assert_eq!((without.len(), with.len()), (5, 5), "{report}");
    assert!(without.iter().all(|stretch| stretch["limit"].is_null()), "{report}");
    assert!(with.iter().all(|stretch| (1..=1000).contains(&stretch["limit"].as_u64().unwrap())), "{report}");
    // It starts at 20, and does not stay there.
    assert!(with.iter().any(|stretch| stretch["limit"] != 20), "{report}");
    let served = |part: &[Value]| part[2..].iter().map(|stretch| stretch["served"].as_u64().unwrap()).sum::<u64>();
    if served(&with) * 2 > served(&without) * 3 { Ok(()) } else { Err(report.to_string()) }
}

/// Of the part with 16 greedy tenants. Every tenant must have been served.
fn highest_polite_p50(part: &Value) -> f64 {
    let tenants = part["tenants"].as_array().unwrap();
    let (greedy, polite): (Vec<_>, Vec<_>) = tenants.iter().partition(|tenant| tenant["greedy"] == true);
    assert_eq!((greedy.len(), polite.len()), (16, 5));
    polite.iter().map(|tenant| tenant["p50Ms"].as_f64().unwrap()).fold(0.0, f64::max)
}

#[test]
fn it_stays_up_for_the_commands_that_it_prints_until_it_is_interrupted() {
    let _alone = alone();
    let folders = TempDir::new().unwrap();
    let mut demo = Running::spawn(evenkeel(&["demo", "--seconds", "1"]).env("TMPDIR", folders.path()));
    let output = demo.output_until("dump_requests");
    assert!(output.contains("With Evenkeel the polite tenants' p99"), "{output}");
    assert!(output.contains("with Kubernetes' queues  |") && output.contains("\n16 greedy "), "{output}");
    assert!(output.contains("with concurrency: auto\n") && output.contains("Nobody told Evenkeel"), "{output}");
    assert!(
        output.lines().take_while(|line| !line.contains("Ctrl-C")).all(|line| !line.contains('|') || line.len() <= 100)
    );
    let command = |part: &str| output.lines().map(str::trim).find(|line| line.contains(part)).unwrap().to_owned();

    assert!(shell(&command("curl -i")).contains("hello from the sample service"));
    assert!(shell(&command("/metrics")).contains("apiserver_flowcontrol_"));
    assert!(shell(&command("dump_requests")).contains("PriorityLevelName"));
    let greedy = command("sort | uniq -c");
    assert!(shell(&greedy).contains(" 200\n"));

    let edit = command("sed -i");
    let manifest = Path::new(edit.rsplit(' ').next().unwrap());
    assert!(manifest.starts_with(folders.path()));
    assert_private(manifest.parent().unwrap());
    shell(&edit);

    demo.signal("INT");
    assert_eq!(demo.end().0.code(), Some(0), "{}", demo.rest());
    assert_eq!(folders.path().read_dir().unwrap().count(), 0, "the folder of the demo is left behind");
}

#[test]
fn an_interrupt_in_the_middle_leaves_nothing_behind() {
    let _alone = alone();
    let folders = TempDir::new().unwrap();
    let mut demo = Running::spawn(evenkeel(&["demo", "--seconds", "600"]).env("TMPDIR", folders.path()));
    demo.line_with("without Evenkeel");
    demo.signal("TERM");
    assert_eq!(demo.end().0.code(), Some(3), "{}", demo.rest());
    assert_eq!(folders.path().read_dir().unwrap().count(), 0, "the folder of the demo is left behind");
}

/// LM-9: people do not wait behind a job at a language model, and the commands that are printed work.
#[test]
fn people_do_not_wait_behind_a_job_at_a_language_model() {
    let _alone = alone();
    let mut too_slow = Vec::new();
    while let Err(figures) = people_get_their_first_tokens() {
        too_slow.push(figures);
        assert!(too_slow.len() < RUNS, "{}", too_slow.join("\n"));
    }
    let mut demo = Running::spawn(&mut evenkeel(&["demo", "--llm", "--seconds", "1"]));
    let output = demo.output_until("dump_requests");
    assert!(output.contains("with Evenkeel") && output.contains("\nnightly "), "{output}");
    let command = |part: &str| output.lines().map(str::trim).find(|line| line.contains(part)).unwrap().to_owned();
    assert!(shell(&command("curl -sN")).contains("data: [DONE]"));
    assert!(shell(&command("^evenkeel_llm_tokens")).contains("user=\"ann\""));
    shell(&command("dump_requests"));
    demo.signal("INT");
    assert_eq!(demo.end().0.code(), Some(0), "{}", demo.rest());
}

/// The error says how long people waited.
fn people_get_their_first_tokens() -> Result<(), String> {
    let output = run(&["demo", "--llm", "--once", "-o", "json", "--seconds", "4"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let report: Value = serde_json::from_str(&text(&output.stdout)).unwrap();
    assert_eq!((&report["formatVersion"], &report["secondsPerPart"]), (&1.into(), &4.into()));
    let people = |part: &str| {
        let tenants = report[part]["tenants"].as_array().unwrap();
        assert_eq!((tenants.len(), &tenants[3]["name"]), (4, &"nightly".into()), "{report}");
        assert!(tenants[3]["tokens"].as_u64().unwrap() > 0, "{report}");
        tenants[..3].to_vec()
    };
    let waits =
        |part: &str| people(part).iter().map(|tenant| tenant["firstTokenP50Ms"].as_f64().unwrap()).fold(0.0, f64::max);
    let (without, with) = (waits("withoutEvenkeel"), waits("withEvenkeel"));
    let served =
        people("withEvenkeel").iter().all(|tenant| tenant["failed"] == 0 && tenant["tokens"].as_u64() > Some(0));
    // It is some twenty times less on a quiet machine.
    if served && with * 2.0 < without { Ok(()) } else { Err(report.to_string()) }
}

/// Runs a command as the reader would, in a shell, and returns what it printed.
fn shell(command: &str) -> String {
    let output = Command::new("bash").args(["-c", command]).output().unwrap();
    assert!(output.status.success(), "{command}: {}", text(&output.stderr));
    text(&output.stdout)
}

fn assert_private(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o777, 0o700);
}
