//! Random short forms, with headers and exact paths, against every request that they can tell apart (SF-2, SF-3).

use std::collections::BTreeSet;

use evenkeel_api::Preset;
use evenkeel_api::short::{ShortForm, ShortLevel, ShortLevels, ShortRule};
use evenkeel_check::{Assumptions, Located, Rule, check};
use evenkeel_engine::classify::{Classifier, match_order};
use evenkeel_engine::{Attributes, KnownHead, RequestHead, RequestInfo, User};
use fastrand::Rng;

const FORMS: u64 = 200;
const PATHS: [&str; 6] = ["/", "/a", "/a/", "/a/*", "/a/b", "/*"];
const ASKED: [&str; 6] = ["/", "/a", "/a/", "/a/b", "/a/c", "/d"];
const PLAN: [Option<&str>; 4] = [None, Some("gold"), Some("silver"), Some("other")];
const REGION: [Option<&str>; 3] = [None, Some("eu"), Some("us")];

fn rule(rng: &mut Rng) -> ShortRule {
    let mut rule = ShortRule::default().level("a");
    rule = match rng.u8(..5) {
        0 => rule.user("alice"),
        1 => rule.group("dev"),
        _ => rule,
    };
    if rng.u8(..3) == 0 {
        rule = rule.method(["GET", "POST"][rng.usize(..2)]);
    }
    if rng.bool() {
        rule = rule.path(PATHS[rng.usize(..PATHS.len())]);
    }
    match rng.u8(..4) {
        0 => rule = rule.header("X-Plan", ["gold", "silver", "*"][rng.usize(..3)]),
        1 => rule = rule.header_one_of("X-Plan", ["gold", "silver"]).header("X-Region", "eu"),
        _ => {}
    }
    rule
}

fn callers() -> Vec<User> {
    let mut callers = Vec::new();
    for name in ["alice", "somebody"] {
        for groups in [&[][..], &["dev"]] {
            callers.push(User::new(name, groups.iter().copied()).with_implied_groups());
        }
    }
    callers.push(User::new("system:anonymous", [""; 0]).with_implied_groups());
    callers
}

fn requests() -> Vec<RequestInfo<'static>> {
    let mut requests = Vec::new();
    for method in ["get", "head", "post", "put"] {
        for path in ASKED {
            for (plan, region) in PLAN.iter().flat_map(|plan| REGION.iter().map(move |region| (plan, region))) {
                let mut head = KnownHead::default();
                for (name, value) in [("x-plan", plan), ("x-region", region)] {
                    head = value.iter().fold(head, |head, value| head.header(name, *value));
                }
                let request = RequestInfo { head: RequestHead::from(head), ..RequestInfo::for_path(method, path) };
                // A match without method and path fits requests for resources too, which routes may make.
                requests.push(RequestInfo { is_resource_request: true, resource: "widgets".into(), ..request.clone() });
                requests.push(request);
            }
        }
    }
    requests
}

#[test]
fn sf_3_what_no_request_reaches_is_found_and_nothing_else() {
    let (callers, requests) = (callers(), requests());
    let (mut unreachable_schemas, mut without_last) = (0, 0);
    for seed in 0..FORMS {
        let mut rng = Rng::with_seed(seed);
        let rules: Vec<ShortRule> = (0..=rng.usize(..5)).map(|_| rule(&mut rng)).collect();
        let form = ShortForm::new(ShortLevels(vec![("a".to_owned(), ShortLevel::default())]), rules);
        let objects = form.to_objects().unwrap();
        let mut ordered: Vec<_> = objects.flow_schemas.iter().collect();
        ordered.sort_by(|one, other| match_order(one, other));
        let classifier = Classifier::compile(ordered.iter().copied());
        let (mut reached, mut is_left) = (BTreeSet::new(), false);
        for user in &callers {
            for request in &requests {
                match classifier.classify(Attributes { user, request }) {
                    Some(index) => drop(reached.insert(ordered[index.get()].name().to_owned())),
                    None => is_left |= !request.is_resource_request,
                }
            }
        }
        let located: Vec<Located<'_>> = objects.to_objects().map(Located::without_place).collect();
        let report = check(&located, &Assumptions { preset: Preset::Plain, ..Assumptions::default() });
        let found = |rule: Rule| -> BTreeSet<String> {
            let findings = report.findings.iter().filter(|finding| finding.rule == rule);
            findings.map(|finding| finding.object.name.clone()).collect()
        };
        let all: BTreeSet<String> = ordered.iter().map(|schema| schema.name().to_owned()).collect();
        let unreachable: BTreeSet<String> = all.difference(&reached).cloned().collect();
        assert_eq!(found(Rule::UnreachableSchema), unreachable, "seed {seed}\n{form}");
        assert_eq!(!found(Rule::NoCatchAll).is_empty(), is_left, "seed {seed}\n{form}");
        assert!(report.undecided.is_empty(), "seed {seed}: {:?}", report.undecided);
        unreachable_schemas += unreachable.len();
        without_last += usize::from(is_left);
    }
    assert!(unreachable_schemas > 10 && without_last > 50, "{unreachable_schemas} {without_last}");
}
