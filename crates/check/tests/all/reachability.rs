//! Reachability, ties and catches against every request that there can be.

use std::collections::{BTreeSet, HashMap};

use evenkeel_api::Preset;
use evenkeel_api::v1::FlowSchema;
use evenkeel_check::{Assumptions, Finding, Located, Report, Rule, check};
use evenkeel_engine::{RequestInfo, User};
use fastrand::Rng;

use crate::oracle::{Server, callers, path_rule_matches, requests, resource_rule_matches, rule_matches, schemas};

const CONFIGURATIONS: u64 = 30;

fn report(schemas: &[FlowSchema]) -> Report {
    report_with(schemas, Assumptions::default().work_max)
}

fn report_with(schemas: &[FlowSchema], work_max: u64) -> Report {
    let located: Vec<_> = schemas.iter().cloned().map(Located::without_place).collect();
    check(&located, &Assumptions { work_max, ..Assumptions::default() })
}

fn named(report: &Report, rule: Rule) -> BTreeSet<String> {
    let findings = report.findings.iter().filter(|finding| finding.rule == rule);
    findings.map(|finding| finding.object.name.clone()).collect()
}

/// What every request comes to: the schemas that are reached, and by which rules and clauses.
struct Reached {
    schemas: BTreeSet<String>,
    rules: BTreeSet<(String, usize)>,
    clauses: BTreeSet<(String, usize, char, usize)>,
    /// The last schema that somebody without further groups gets to.
    last: usize,
    /// Schemas of equal precedence that match a request which goes to the first of them.
    ties: BTreeSet<String>,
}

fn reached(server: &Server, callers: &[User], requests: &[RequestInfo<'_>]) -> Reached {
    let mut reached = Reached {
        schemas: BTreeSet::new(),
        rules: BTreeSet::new(),
        clauses: BTreeSet::new(),
        last: 0,
        ties: BTreeSet::new(),
    };
    for user in callers {
        for request in requests {
            let index = server.classify(user, request);
            let schema = &server.schemas[index];
            let name = || schema.name().to_owned();
            reached.schemas.insert(name());
            if user.groups.len() == 1 && &*user.name == "carol" {
                reached.last = reached.last.max(index);
            }
            for (number, rule) in schema.spec.rules.iter().enumerate() {
                if !rule_matches(rule, user, request) {
                    continue;
                }
                reached.rules.insert((name(), number));
                for (index, clause) in rule.resource_rules.iter().enumerate() {
                    if resource_rule_matches(clause, request) {
                        reached.clauses.insert((name(), number, 'r', index));
                    }
                }
                for (index, clause) in rule.non_resource_rules.iter().enumerate() {
                    if path_rule_matches(clause, request) {
                        reached.clauses.insert((name(), number, 'p', index));
                    }
                }
            }
            for other in &server.schemas[index + 1..] {
                if other.spec.matching_precedence != schema.spec.matching_precedence {
                    break;
                }
                if other.spec.rules.iter().any(|rule| rule_matches(rule, user, request)) {
                    reached.ties.insert(other.name().to_owned());
                }
            }
        }
    }
    reached
}

/// TL-14
#[test]
fn what_is_found_is_what_trying_every_request_finds() {
    let (callers, requests) = (callers(), requests());
    let mut found: HashMap<Rule, usize> = HashMap::new();
    for seed in 0..CONFIGURATIONS {
        let schemas = schemas(&mut Rng::with_seed(seed));
        let report = report(&schemas);
        assert_eq!(report.undecided, [], "seed {seed}");
        assert_eq!(named(&report, Rule::InvalidObject), BTreeSet::new(), "seed {seed}: {report:#?}");
        let server = Server::new(schemas.clone());
        let reached = reached(&server, &callers, &requests);
        for finding in &report.findings {
            *found.entry(finding.rule).or_default() += 1;
        }

        let all: BTreeSet<String> = schemas.iter().map(|schema| schema.name().to_owned()).collect();
        let unreachable: BTreeSet<String> = all.difference(&reached.schemas).cloned().collect();
        assert_eq!(named(&report, Rule::UnreachableSchema), unreachable, "seed {seed}");

        let expected = schemas.iter().filter(|schema| reached.schemas.contains(schema.name())).map(|schema| {
            let name = schema.name().to_owned();
            let count = |(number, rule): (usize, &evenkeel_api::v1::PolicyRulesWithSubjects)| {
                if !reached.rules.contains(&(name.clone(), number)) {
                    return 1;
                }
                let is_missed = |sort, index| !reached.clauses.contains(&(name.clone(), number, sort, index));
                let resources = (0..rule.resource_rules.len()).filter(|index| is_missed('r', *index)).count();
                resources + (0..rule.non_resource_rules.len()).filter(|index| is_missed('p', *index)).count()
            };
            schema.spec.rules.iter().enumerate().map(count).sum::<usize>()
        });
        let rules = report.findings.iter().filter(|finding| finding.rule == Rule::UnreachableRule).count();
        assert_eq!(rules, expected.sum::<usize>(), "seed {seed}");

        assert_eq!(named(&report, Rule::PrecedenceTie), reached.ties, "seed {seed}");

        let last = server.schemas[reached.last].name();
        let catches: BTreeSet<String> = all.iter().filter(|name| *name == last).cloned().collect();
        assert_eq!(named(&report, Rule::CatchesEverything), catches, "seed {seed}");
    }
    for rule in [Rule::UnreachableSchema, Rule::UnreachableRule, Rule::PrecedenceTie, Rule::CatchesEverything] {
        assert!(found.get(&rule).is_some_and(|count| *count > 2), "{rule}: {found:?}");
    }
}

/// TL-14
#[test]
fn witnesses_are_classified_as_they_say() {
    let mut compared = 0;
    for seed in 0..500 {
        let schemas = schemas(&mut Rng::with_seed(seed));
        let server = Server::new(schemas.clone());
        for Finding { witness, rule, .. } in report(&schemas).findings {
            let Some(witness) = witness else { continue };
            let info = witness.request.info(Preset::Kubernetes).unwrap();
            let index = server.classify(&witness.request.user(), &info);
            assert_eq!(server.schemas[index].name(), witness.flow_schema, "seed {seed}: {rule}");
            compared += 1;
        }
    }
    assert!(compared > 1000, "{compared} witnesses");
}

/// TL-14: with too little work, what is not found is undecided, and nothing is guessed.
#[test]
fn what_takes_too_much_work_is_undecided() {
    let rules = [Rule::UnreachableSchema, Rule::UnreachableRule, Rule::PrecedenceTie, Rule::CatchesEverything];
    let about = |report: &Report| -> BTreeSet<(Rule, String)> {
        let findings = report.findings.iter().filter(|finding| rules.contains(&finding.rule));
        findings.map(|finding| (finding.rule, finding.object.name.clone())).collect()
    };
    let (mut decided, mut undecided) = (0, 0);
    for seed in 0..CONFIGURATIONS {
        let schemas = schemas(&mut Rng::with_seed(seed));
        let whole = about(&report(&schemas));
        for work_max in [0, 1, 10, 100, 1000] {
            let report = report_with(&schemas, work_max);
            let found = about(&report);
            let case = format!("seed {seed}, {work_max} requests");
            for (rule, name) in found.difference(&whole) {
                // No rule of a schema that is unreachable as a whole can be reached.
                let is_known = whole.contains(&(Rule::UnreachableSchema, name.clone()));
                assert!(*rule == Rule::UnreachableRule && is_known, "{case}: {rule} of {name} is a guess");
            }
            let left_open: BTreeSet<&str> = report.undecided.iter().map(|open| open.object.name.as_str()).collect();
            for (rule, name) in whole.difference(&found) {
                // Which schema would catch everything is not known either.
                let of_any = *rule == Rule::CatchesEverything && report.undecided.iter().any(|open| open.rule == *rule);
                let is_open = of_any || left_open.contains(name.as_str());
                assert!(is_open, "{case}: {rule} of {name} is neither found nor undecided");
            }
            decided += found.len();
            undecided += left_open.len();
        }
    }
    assert!(decided > 100 && undecided > 100, "{decided} decided, {undecided} undecided");
}

/// Blockers cover what they are said to cover, and no smaller set does.
#[test]
fn blockers_are_the_smallest_set_that_covers_a_schema() {
    let (callers, requests) = (callers(), requests());
    let (mut compared, mut of_several) = (0, 0);
    for seed in 0..3 * CONFIGURATIONS {
        let schemas = schemas(&mut Rng::with_seed(seed));
        let server = Server::new(schemas.clone());
        for finding in report(&schemas).findings.iter().filter(|finding| finding.rule == Rule::UnreachableSchema) {
            let place = server.schemas.iter().position(|schema| schema.name() == finding.object.name).unwrap();
            let matches = |schema: usize, user: &User, request: &RequestInfo<'_>| {
                server.schemas[schema].spec.rules.iter().any(|rule| rule_matches(rule, user, request))
            };
            // For each request of the schema, the earlier schemas that match it, as bits.
            let mut needed = BTreeSet::new();
            for user in &callers {
                for request in requests.iter().filter(|request| matches(place, user, request)) {
                    let earlier = (0..place).filter(|index| matches(*index, user, request));
                    needed.insert(earlier.fold(0_u32, |bits, index| bits | 1 << index));
                }
            }
            let covers = |set: u32| needed.iter().all(|bits| bits & set != 0);
            let smallest = (0_u32..1 << place).filter(|set| covers(*set)).map(u32::count_ones).min().unwrap();
            let index_of = |name: &String| server.schemas.iter().position(|schema| schema.name() == name).unwrap();
            let blockers = finding.blockers.iter().map(index_of).fold(0_u32, |bits, index| bits | 1 << index);
            assert!(covers(blockers), "seed {seed}: {finding:?}");
            assert_eq!(blockers.count_ones(), smallest, "seed {seed}: {finding:?}");
            compared += 1;
            of_several += usize::from(smallest > 1);
        }
    }
    assert!(compared > 20 && of_several > 3, "{compared} schemas, {of_several} with several blockers");
}
