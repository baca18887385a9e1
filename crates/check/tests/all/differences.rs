//! Differences between two configurations against every request that there can be.

use std::collections::BTreeSet;

use evenkeel_api::Preset;
use evenkeel_api::v1::FlowSchema;
use evenkeel_check::{Assumptions, Located, Outcome, Side, diff};
use fastrand::Rng;

use crate::oracle::{Server, callers, requests, schema, schemas};

fn outcome(old: &[FlowSchema], new: &[FlowSchema]) -> Outcome {
    outcome_for(Preset::Kubernetes, old, new)
}

fn outcome_for(preset: Preset, old: &[FlowSchema], new: &[FlowSchema]) -> Outcome {
    let located = |schemas: &[FlowSchema]| -> Vec<Located<'static>> {
        schemas.iter().cloned().map(Located::without_place).collect()
    };
    diff(&located(old), &located(new), &Assumptions { preset, ..Assumptions::default() })
}

fn side(schema: &FlowSchema) -> Side {
    let priority_level = schema.spec.priority_level_configuration.name.clone();
    Side { flow_schema: schema.name().to_owned(), priority_level }
}

/// One schema changed, added, removed or moved; sometimes something that no request notices.
fn changed(rng: &mut Rng, old: &[FlowSchema]) -> Vec<FlowSchema> {
    let mut new = old.to_vec();
    let index = rng.usize(..new.len());
    match rng.u8(..6) {
        0 => drop(new.remove(index)),
        1 => new.push(schema(rng, "new")),
        2 => new[index].spec.matching_precedence = rng.i32(2..9),
        3 => "exempt".clone_into(&mut new[index].spec.priority_level_configuration.name),
        4 => new[index] = schema(rng, new[index].name()),
        _ => {
            let rule = new[index].spec.rules[0].clone();
            new[index].spec.rules.push(rule);
        }
    }
    new
}

/// TL-16
#[test]
fn differences_are_those_that_trying_every_request_finds() {
    let (callers, requests) = (callers(), requests());
    let (mut with, mut without) = (0, 0);
    for seed in 1000..1030 {
        let rng = &mut Rng::with_seed(seed);
        let old = schemas(rng);
        let new = changed(rng, &old);
        let outcome = outcome(&old, &new);
        assert_eq!(outcome.undecided, [], "seed {seed}");
        let (old, new) = (Server::new(old), Server::new(new));
        let mut expected = BTreeSet::new();
        for user in &callers {
            for request in &requests {
                let from = side(&old.schemas[old.classify(user, request)]);
                let to = side(&new.schemas[new.classify(user, request)]);
                if from != to {
                    expected.insert((from, to));
                }
            }
        }
        let found: BTreeSet<_> =
            outcome.differences.iter().map(|difference| (difference.old.clone(), difference.new.clone())).collect();
        assert_eq!(found, expected, "seed {seed}");
        for difference in &outcome.differences {
            let (user, info) = (difference.witness.user(), difference.witness.info(Preset::Kubernetes).unwrap());
            assert_eq!(side(&old.schemas[old.classify(&user, &info)]), difference.old, "seed {seed}");
            assert_eq!(side(&new.schemas[new.classify(&user, &info)]), difference.new, "seed {seed}");
            assert!(!difference.requests.is_empty(), "seed {seed}");
        }
        if found.is_empty() { without += 1 } else { with += 1 }
    }
    assert!(with > 8 && without > 3, "{with} with differences, {without} without");
}

/// A built-in `catch-all` is the last schema; a stored one is tried in its order (FM-1). Kubernetes always stores it.
#[test]
fn a_stored_catch_all_takes_requests_from_schemas_behind_it() {
    let last = FlowSchema::builder("zzz").priority_level("exempt").matching_precedence(10_000);
    let last = last.rule(|r| r.group("dev").everything()).build();
    let catch_all = evenkeel_api::bootstrap::mandatory_flow_schema("catch-all").unwrap().clone();
    for (preset, expected) in [(Preset::Plain, &[("zzz", "catch-all")][..]), (Preset::Kubernetes, &[])] {
        let outcome = outcome_for(preset, std::slice::from_ref(&last), &[last.clone(), catch_all.clone()]);
        let moved = outcome.differences.iter().map(|moved| (&*moved.old.flow_schema, &*moved.new.flow_schema));
        assert_eq!(moved.collect::<Vec<_>>(), expected, "{preset}");
        let located = [Located::without_place(last.clone())];
        let report = evenkeel_check::check(&located, &Assumptions { preset, ..Assumptions::default() });
        let is_unreachable =
            report.findings.iter().any(|finding| finding.rule == evenkeel_check::Rule::UnreachableSchema);
        assert_eq!(is_unreachable, preset == Preset::Kubernetes);
    }
}

/// TL-16
#[test]
fn equal_configurations_do_not_differ() {
    let schemas = schemas(&mut Rng::with_seed(7));
    assert_eq!(outcome(&schemas, &schemas), Outcome::default());
}
