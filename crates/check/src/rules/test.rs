//! `classification-test`: the tests that files carry.

use evenkeel_api::v1::PriorityLevelConfiguration;
use evenkeel_engine::classify::distinguisher;
use evenkeel_engine::digest::Query;
use evenkeel_engine::time::Instant;
use evenkeel_engine::work::{Circumstances, Estimator, ObjectCounts, WatchCounts};
use evenkeel_engine::{Attributes, RequestInfo, WorkEstimate};

use crate::analysis::{Analysis, Output};
use crate::classification_test::ClassificationTest;
use crate::finding::{Finding, ObjectName, Witness};
use crate::rule::Rule;
use crate::rules::flows::{is_per_flow, queues};

pub(crate) fn run(analysis: &Analysis<'_>, output: &mut Output) {
    for test in analysis.checked.tests {
        output.report.findings.extend(failure(analysis, test));
    }
}

fn failure(analysis: &Analysis<'_>, test: &ClassificationTest) -> Option<Finding> {
    let finding = |message: String, help: &str, witness| Finding {
        rule: Rule::ClassificationTest,
        severity: Rule::ClassificationTest.severity(),
        object: ObjectName { kind: "ClassificationTest".to_owned(), name: test.name.clone() },
        place: test.place.clone(),
        message,
        help: help.to_owned(),
        witness,
        blockers: Vec::new(),
    };
    let info = match test.request.info(analysis.assumptions.preset) {
        Ok(info) => info,
        Err(problem) => {
            return Some(finding(format!("the request {problem}"), "correct the request of the test", None));
        }
    };
    let user = test.request.user();
    let attributes = Attributes { user: &user, request: &info };
    let schema = analysis.view.configuration.schema_of(attributes)?;
    let level_name = &schema.spec.priority_level_configuration.name;
    let mandatory = evenkeel_api::bootstrap::mandatory_priority_level(level_name);
    let level = analysis.levels.iter().map(|(_, level)| *level).find(|level| level.name() == level_name).or(mandatory);
    let has_flows =
        level.is_some_and(|level| queues(level).is_some_and(|queues| queues.queues > 1 || is_per_flow(level)));
    let flow = if has_flows { distinguisher(schema.spec.distinguisher_method.as_ref(), attributes) } else { "" };
    let expect = &test.expect;
    let mut wrong = Vec::new();
    let mut compare = |what: &str, expected: Option<&str>, found: &str| {
        if let Some(expected) = expected.filter(|expected| *expected != found) {
            wrong.push(format!("{what} {found:?} instead of {expected:?}"));
        }
    };
    compare("schema", expect.schema.as_deref(), schema.name());
    compare("level", expect.level.as_deref(), level_name);
    compare("flow", expect.flow.as_deref(), flow);
    if let (Some(expected), Some(level)) = (expect.seats, level) {
        let target = test.request.path.as_deref().unwrap_or_default();
        compare("seats", Some(&expected.to_string()), &seats(analysis, &info, target, level).to_string());
    }
    if wrong.is_empty() {
        return None;
    }
    let witness = Witness { request: test.request.clone(), flow_schema: schema.name().to_owned() };
    let help = "correct the objects, or what the test expects";
    Some(finding(format!("the request gets {}", wrong.join(", ")), help, Some(witness)))
}

/// The seats of a request on a server of which no object counts and no watches are known, as `evenkeel explain` has them. Requests of
/// ordinary services take one seat; what a route of the gateway costs is in its settings.
fn seats(analysis: &Analysis<'_>, info: &RequestInfo<'_>, target: &str, level: &PriorityLevelConfiguration) -> u32 {
    if !analysis.assumptions.preset.is_kubernetes() {
        return WorkEstimate::ONE_SEAT.max_seats();
    }
    let hand = queues(level).map(|queues| queues.hand_size);
    let nominal = super::seats::nominal(analysis, level.name());
    let level_cap = hand.zip(nominal).map(|(hand, nominal)| evenkeel_engine::work::level_cap(nominal, hand));
    let circumstances = Circumstances {
        now: Instant::from_nanos(0),
        level_cap,
        objects: &ObjectCounts::default(),
        watches: &WatchCounts::default(),
        consistent_reads_from_cache: false,
    };
    Estimator::default().estimate(Some(info), Query::of_target(target), &circumstances).max_seats()
}
