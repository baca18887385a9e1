//! How long a check takes, and whether it is right about what is reachable: many random configurations, each with many random
//! requests.

#[path = "../tests/oracle/mod.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod oracle;

mod many;

use std::collections::HashSet;
use std::time::Instant;

use evenkeel_api::decode::{Node, decode_part, parse_text};
use evenkeel_api::v1::{FlowSchemaSpec, PriorityLevelConfigurationSpec};
use evenkeel_api::{AnyObject, Version};
use evenkeel_bars::{Bar, Bars};
use evenkeel_check::{Assumptions, Located, Rule, check};
use fastrand::Rng;
use oracle::{Server, callers, requests, schema};

const RUNS: u32 = 15;
const CONFIGURATIONS: u64 = 200;
const REQUESTS: u64 = 1_000_000;

fn main() {
    let mut bars = Bars::filtered(std::env::args().skip(1));
    time(&mut bars);
    reachability(&mut bars);
    bars.print("The check");
    assert_eq!(bars.missed(), 0, "bars are missed");
}

/// The parts of what `evenkeel check` does with a file.
fn time(bars: &mut Bars) {
    const MEASURE: &str = "check 1,000 schemas with 5,000 rules";
    if !bars.wants(MEASURE) {
        return;
    }
    let text = many::objects();
    let (mut reading, mut checking) = (f64::MAX, f64::MAX);
    for _ in 0..RUNS {
        let start = Instant::now();
        let documents = parse_text(text.as_bytes()).expect("YAML");
        let located: Vec<Located<'_>> = documents.iter().map(|document| located(&document.root)).collect();
        reading = reading.min(start.elapsed().as_secs_f64() * 1e3);
        let start = Instant::now();
        let report = check(&located, &Assumptions::default());
        checking = checking.min(start.elapsed().as_secs_f64() * 1e3);
        assert_eq!(report.undecided, []);
    }
    bars.add(format!("{MEASURE}: reading"), reading, "ms", Bar::None);
    bars.add(format!("{MEASURE}: checking"), checking, "ms", Bar::None);
    bars.add(format!("{MEASURE}: both"), reading + checking, "ms", Bar::AtMost(150.0, "ms"));
}

fn located(node: &Node) -> Located<'_> {
    let object: AnyObject = match node.get("kind").and_then(Node::as_str) {
        Some("FlowSchema") => decode_part::<FlowSchemaSpec>(node, Version::V1).expect("a flow schema").0.into(),
        _ => decode_part::<PriorityLevelConfigurationSpec>(node, Version::V1).expect("a level").0.into(),
    };
    Located { object, version: Version::V1, file: "objects.yaml", tree: Some(node), faults: Vec::new() }
}

fn reachability(bars: &mut Bars) {
    const MEASURE: &str = "reachability: false `unreachable-schema` on 200 configurations x 10^6 requests";
    if !bars.wants(MEASURE) {
        return;
    }
    let (callers, requests) = (callers(), requests());
    let (mut wrong, mut claimed, mut longest) = (0_u32, 0_u32, 0.0_f64);
    for seed in 0..CONFIGURATIONS {
        let rng = &mut Rng::with_seed(seed);
        let schemas: Vec<_> = (0..rng.usize(1..40)).map(|number| schema(rng, &format!("s{number}"))).collect();
        let located: Vec<_> = schemas.iter().cloned().map(Located::without_place).collect();
        let start = Instant::now();
        let report = check(&located, &Assumptions::default());
        longest = longest.max(start.elapsed().as_secs_f64() * 1e3);
        assert_eq!(report.undecided, [], "seed {seed}");
        let unreachable = report.findings.iter().filter(|finding| finding.rule == Rule::UnreachableSchema);
        let unreachable: HashSet<&str> = unreachable.map(|finding| &*finding.object.name).collect();
        claimed += u32::try_from(unreachable.len()).unwrap_or(u32::MAX);
        let server = Server::new(schemas);
        let is_claimed: Vec<bool> = server.schemas.iter().map(|schema| unreachable.contains(schema.name())).collect();
        for _ in 0..REQUESTS {
            let (Some(user), Some(request)) = (rng.choice(&callers), rng.choice(&requests)) else { continue };
            wrong += u32::from(is_claimed[server.classify(user, request)]);
        }
    }
    bars.add(MEASURE, f64::from(wrong), "", Bar::AtMost(0.0, ""));
    bars.add("reachability: schemas that were called unreachable", f64::from(claimed), "", Bar::AtLeast(200.0, ""));
    bars.add("reachability: the slowest check of up to 40 schemas", longest, "ms", Bar::None);
}
