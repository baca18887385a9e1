//! Whether the check is right about what is reachable: many random configurations, each with many random requests.

#[path = "../tests/oracle/mod.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod oracle;

use std::collections::HashSet;
use std::time::Instant;

use evenkeel_bars::{Bar, Bars};
use evenkeel_check::{Assumptions, Located, Rule, check};
use fastrand::Rng;
use oracle::{Server, callers, requests, schema};

const CONFIGURATIONS: u64 = 200;
const REQUESTS: u64 = 1_000_000;

fn main() {
    let mut bars = Bars::filtered(std::env::args().skip(1));
    reachability(&mut bars);
    bars.print("The check");
    assert_eq!(bars.missed(), 0, "bars are missed");
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
