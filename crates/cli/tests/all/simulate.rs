//! `evenkeel simulate`: the same figures every time, tables, JSON and a page, and errors that name the place.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::child::{run, text};

const WORKLOAD: &str = "\
apiVersion: evenkeel.dev/v1
kind: Workload
metadata: {name: small}
spec:
  seconds: 20
  warmup: 2
  flows:
  - {name: elephants, count: 2, groups: [tenants], arrivals: {closed: {clients: 20}}, service: {uniform: [8ms, 12ms]}}
  - {name: mice, count: 5, groups: [tenants], arrivals: {poisson: {rate: 5}}, service: {exponential: 10ms},
     onRejection: {backoff: {base: 100ms, max: 5s}}}
  events:
  - {at: 10s, apply: later.yaml}
";

const OBJECTS: &str = include_str!("../../../../examples/tenants.yaml");

/// A folder with a workload and two configurations.
struct Files(TempDir);

impl Files {
    fn new() -> Self {
        let files = Self(TempDir::new().unwrap());
        files.write("workload.yaml", WORKLOAD);
        files.write("objects.yaml", OBJECTS);
        files.write("later.yaml", &OBJECTS.replace("queueLengthLimit: 50", "queueLengthLimit: 2"));
        let per_flow = "metadata:\n  name: tenants\n  annotations: {evenkeel.dev/queuing: per-flow}\nspec:\n  type";
        files.write("per-flow.yaml", &OBJECTS.replace("metadata:\n  name: tenants\nspec:\n  type", per_flow));
        files
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    /// What the command prints, with more arguments.
    fn simulate(&self, arguments: &[&str]) -> String {
        let (workload, objects) = (self.path("workload.yaml"), self.path("objects.yaml"));
        let own = ["simulate", &workload, "--preset", "kubernetes", "--objects", &objects, "--concurrency", "10"];
        let output = run(&[&own, arguments].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert_eq!(text(&output.stderr), "");
        text(&output.stdout)
    }
}

#[test]
fn tables_compare_two_configurations() {
    let files = Files::new();
    insta::assert_snapshot!(files.simulate(&["--against", &files.path("per-flow.yaml")]));
}

/// A service account has its groups, as in a server, and the table says where each flow went.
#[test]
fn flows_have_the_groups_that_every_server_adds() {
    let files = Files::new();
    let flow = "  - {name: robot, user: 'system:serviceaccount:shop:worker', request: {verb: get, resource: pods, namespace: shop},\n     \
                arrivals: {poisson: {rate: 5}}, service: {fixed: 10ms}}\n";
    let (head, _) = WORKLOAD.split_once("  - {name: elephants").unwrap();
    files.write("robot.yaml", &format!("{head}{flow}"));
    let output = run(&["simulate", &files.path("robot.yaml"), "--preset", "kubernetes", "--concurrency", "100"]);
    let printed = text(&output.stdout);
    let row = printed.lines().find(|line| line.starts_with("robot")).unwrap_or_else(|| panic!("{printed}"));
    let cells: Vec<&str> = row.split_whitespace().take(3).collect();
    assert_eq!(cells, ["robot", "service-accounts", "workload-low"], "{printed}");
}

/// TL-28
#[test]
fn json_has_the_fields_of_the_specification() {
    let files = Files::new();
    let arguments = ["-o", "json", "--seed", "7"];
    let printed = files.simulate(&arguments);
    assert_eq!(printed, files.simulate(&arguments), "the same input gives the same bytes");
    assert_ne!(printed, files.simulate(&["-o", "json", "--seed", "8"]));
    let report: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!((&report["seed"], &report["simulatedSeconds"]), (&7.into(), &20.0.into()));
    assert!(report["events"].as_u64().unwrap() > 10_000);
    let flow = &report["flows"][0];
    for name in ["requests", "completed", "timedOut", "seatSeconds"] {
        assert!(flow[name].is_number(), "{name}: {flow}");
    }
    assert!(flow["rejected"]["queue-full"].as_u64().unwrap() > 0, "{flow}");
    for (times, name) in
        ["wait", "total"].iter().flat_map(|times| ["p50", "p90", "p99", "p999", "max"].map(|name| (times, name)))
    {
        assert!(flow[times][name].is_number() && flow["worst"][times][name].is_number(), "{times}.{name}: {flow}");
    }
    let levels = report["levels"].as_array().unwrap();
    let level = levels.iter().find(|level| level["name"] == "tenants").unwrap();
    for (parent, name) in [("seats", "mean"), ("seats", "max"), ("waiting", "mean"), ("waiting", "max")] {
        assert!(level[parent][name].is_number(), "{parent}.{name}: {level}");
    }
    assert!(level["nominal"].is_i64() && level["utilisation"].is_f64(), "{level}");
    for name in ["overall", "perSecondMean", "perSecondMin"] {
        assert!((0.0..=1.0).contains(&report["jain"][name].as_f64().unwrap()), "{}", report["jain"]);
    }
}

#[test]
fn several_runs_have_medians_and_ranges() {
    let files = Files::new();
    let report: Value = serde_json::from_str(&files.simulate(&["-o", "json", "--runs", "3"])).unwrap();
    assert_eq!((&report["runs"], &report["seed"]), (&3.into(), &1.into()));
    let p99 = |value: &Value| value["flows"][1]["total"]["p99"].as_f64().unwrap();
    let (min, median, max) = (p99(&report["range"]["min"]), p99(&report), p99(&report["range"]["max"]));
    assert!(min <= median && median <= max && min < max, "{min} {median} {max}");
    let single: Vec<f64> = ["1", "2", "3"]
        .iter()
        .map(|seed| p99(&serde_json::from_str(&files.simulate(&["-o", "json", "--seed", seed])).unwrap()))
        .collect();
    assert!(single.contains(&median), "{single:?} {median}");
    let table = files.simulate(&["--runs", "3"]);
    assert!(table.contains("medians and ranges of 3 runs from seed 1") && table.contains(" to "), "{table}");
}

/// TL-29
#[test]
fn the_page_needs_nothing_else() {
    let files = Files::new();
    let page = files.path("report.html");
    files.simulate(&["--report", &page, "--against", &files.path("per-flow.yaml")]);
    let page = fs::read_to_string(page).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    assert!(page.matches("<svg ").count() >= 6, "pictures");
    assert!(page.contains("prefers-color-scheme: dark"));
    // The name of the namespace is no address that anybody goes to.
    let elsewhere = page.replace("http://www.w3.org/2000/svg", "");
    for word in ["http", "src=", "<script", "<link", "@import", "url("] {
        assert!(!elsewhere.contains(word), "{word}");
    }
}

/// TL-4
#[test]
fn errors_name_file_line_and_field() {
    let files = Files::new();
    let complaint = |workload: &str, objects: &str| {
        let output = run(&["simulate", &files.path(workload), "--objects", &files.path(objects)]);
        assert_eq!((output.status.code(), &*text(&output.stdout)), (Some(2), ""));
        text(&output.stderr).replace(Path::new(&files.path("")).to_str().unwrap(), "").trim_end().to_owned()
    };
    files.write("wrong.yaml", &WORKLOAD.replace("rate: 5", "rate: many").replace("count: 2", "count: two"));
    assert_eq!(
        complaint("wrong.yaml", "objects.yaml"),
        "evenkeel: wrong.yaml:8:23: spec.flows[0].count: is \"two\", but must be a whole number from 1 to 1000000\n\
         wrong.yaml:9:68: spec.flows[1].arrivals.poisson.rate: is \"many\", but must be a number from 0.000001 to 1000000"
    );
    files.write("apply.yaml", &WORKLOAD.replace("later.yaml", "never.yaml"));
    assert!(complaint("apply.yaml", "objects.yaml").starts_with("evenkeel: cannot read never.yaml: "));
    assert!(complaint("absent.yaml", "objects.yaml").starts_with("evenkeel: cannot read absent.yaml: "));
    files.write("bad.yaml", &OBJECTS.replace("handSize: 6", "handSize: 600"));
    let said = complaint("workload.yaml", "bad.yaml");
    assert!(
        said.starts_with("evenkeel: bad.yaml:15:9: PriorityLevelConfiguration \"tenants\": spec.limited"),
        "{said}"
    );
    assert!(complaint("", "objects.yaml").contains("is a directory; name a file"));
}

/// The pictures of docs/simulate.md are those that the command draws.
#[test]
fn the_pictures_of_the_documentation_are_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (example, seats, title) in [
        ("noisy-neighbour", "26", "Total time by flow (wait and service)"),
        ("cold-burst", "100", "Seats of people"),
        ("retry-storm", "40", "Rejected requests a second"),
    ] {
        let folder = root.join("examples/workloads").join(example);
        let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
        let (workload, before, after) = (path("workload.yaml"), path("before.yaml"), path("after.yaml"));
        let temporary = TempDir::new().unwrap();
        let page = temporary.path().join("report.html");
        let mut arguments = vec!["simulate", &workload, "--preset", "kubernetes", "--concurrency", seats];
        arguments.extend(["--objects", &before]);
        if example == "noisy-neighbour" {
            arguments.extend(["--against", &after]);
        }
        arguments.extend(["--report", page.to_str().unwrap()]);
        let output = run(&arguments);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let page = fs::read_to_string(page).unwrap();
        let picture = page.split("<figure>\n").find(|part| part.contains(&format!("<title>{title}</title>"))).unwrap();
        let picture = picture.split("</figure>").next().unwrap();
        let file = root.join("docs/images").join(format!("simulate-{example}.svg"));
        if std::env::var_os("EVENKEEL_UPDATE").is_some() {
            fs::write(&file, picture).unwrap();
        }
        assert!(
            fs::read_to_string(&file).is_ok_and(|committed| committed == picture),
            "{} is out of date",
            file.display()
        );
    }
}
