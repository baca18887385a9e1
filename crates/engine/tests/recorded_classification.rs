//! Classifications that Kubernetes made, by the index and by the plain walk.

mod linear;

use evenkeel_api::bootstrap::{self, CATCH_ALL, EXEMPT};
use evenkeel_api::v1::{
    FlowSchema, LimitResponseType, PriorityLevelConfiguration, PriorityLevelEnablement, QueuingConfiguration,
};
use evenkeel_engine::classify::{Classifier, distinguisher, match_order};
use evenkeel_engine::{Attributes, RequestInfo, User, flow_hash};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    name: String,
    priority_levels: Vec<PriorityLevelConfiguration>,
    flow_schemas: Vec<FlowSchema>,
    match_order: Vec<String>,
    requests: Vec<Asked>,
    results: Vec<Outcome>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Asked {
    user: String,
    groups: Vec<String>,
    is_resource_request: bool,
    verb: String,
    api_group: String,
    api_version: String,
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
    path: String,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Outcome {
    flow_schema: String,
    priority_level: String,
    distinguisher: String,
    effective_distinguisher: String,
    hash: String,
}

#[test]
fn flow_schemas_and_flows() {
    let Some(golden) = evenkeel_recorded::golden() else { return };
    let rows: Vec<Row> = evenkeel_recorded::rows(&golden.join("engine/classify.jsonl.gz"));
    let mut requests = 0;
    for row in &rows {
        let ordered = ordered(row);
        let names: Vec<_> = ordered.iter().map(|schema| schema.name()).collect();
        assert_eq!(names, row.match_order, "the match order of row {}", row.name);
        let classifier = Classifier::compile(ordered.iter().copied());
        assert_eq!(row.requests.len(), row.results.len());
        for (request, expected) in row.requests.iter().zip(&row.results) {
            let user = User::new(&*request.user, request.groups.iter().map(|group| &**group));
            let info = request.info();
            let attributes = Attributes { user: &user, request: &info };
            let index = classifier.classify(attributes).map(usize::from);
            assert_eq!(
                outcome(row, &ordered, index, attributes),
                *expected,
                "row {}, request {request:?}, by the index (left: actual, right: recorded)",
                row.name
            );
            assert_eq!(
                outcome(row, &ordered, linear::classify(&ordered, attributes), attributes),
                *expected,
                "row {}, request {request:?}, by the plain walk (left: actual, right: recorded)",
                row.name
            );
            requests += 1;
        }
    }
    println!("{} rows, {requests} requests", rows.len());
}

fn outcome(row: &Row, ordered: &[&FlowSchema], index: Option<usize>, attributes: Attributes<'_>) -> Outcome {
    let is_catch_all = |schema: &&&FlowSchema| schema.name() == CATCH_ALL;
    let schema =
        index.map_or_else(|| *ordered.iter().find(is_catch_all).expect("there always is one"), |index| ordered[index]);
    let level = &schema.spec.priority_level_configuration.name;
    let distinguisher = distinguisher(schema.spec.distinguisher_method.as_ref(), attributes);
    Outcome {
        flow_schema: schema.name().to_owned(),
        priority_level: level.clone(),
        distinguisher: distinguisher.to_owned(),
        effective_distinguisher: if has_queues(row, level) { distinguisher.to_owned() } else { String::new() },
        hash: flow_hash(schema.name(), distinguisher).to_string(),
    }
}

/// The usable schemas in match order, with the built-in ones where these are missing (CC-9 to CC-12).
fn ordered(row: &Row) -> Vec<&FlowSchema> {
    let levels: Vec<_> =
        row.priority_levels.iter().filter(|level| is_usable(level)).map(PriorityLevelConfiguration::name).collect();
    let is_usable = |schema: &&FlowSchema| levels.contains(&&*schema.spec.priority_level_configuration.name);
    let mut ordered: Vec<_> = row.flow_schemas.iter().filter(is_usable).collect();
    ordered.sort_by(|a, b| match_order(a, b));
    if !ordered.iter().any(|schema| schema.name() == EXEMPT) {
        ordered.insert(0, bootstrap::mandatory_flow_schema(EXEMPT).expect("it is built in"));
    }
    if !ordered.iter().any(|schema| schema.name() == CATCH_ALL) {
        ordered.push(bootstrap::mandatory_flow_schema(CATCH_ALL).expect("it is built in"));
    }
    ordered
}

/// CC-8
fn is_usable(level: &PriorityLevelConfiguration) -> bool {
    let spec = &level.spec;
    let is_exempt = spec.enablement == PriorityLevelEnablement::Exempt;
    let limits_fit = spec.limited.as_ref().is_none_or(|limited| {
        let queuing = limited.limit_response.queuing.as_ref();
        (limited.limit_response.response == LimitResponseType::Reject) == queuing.is_none()
            && queuing.is_none_or(|queuing| queuing.queues <= 0 || can_be_dealt(queuing.queues, queuing.hand_size))
    });
    spec.limited.is_some() == (spec.enablement == PriorityLevelEnablement::Limited)
        && spec.exempt.is_some() == is_exempt
        && is_exempt == (level.name() == EXEMPT)
        && limits_fit
}

/// SS-1
fn can_be_dealt(queues: i32, hand_size: i32) -> bool {
    let entropy_bits = (f64::from(queues).log2() * f64::from(hand_size)).ceil();
    hand_size > 0 && hand_size <= queues && queues <= 1 << 26 && entropy_bits <= 60.0
}

/// Whether a level has more than one queue to choose from (FM-14).
fn has_queues(row: &Row, level: &str) -> bool {
    let level = row.priority_levels.iter().find(|given| given.name() == level && is_usable(given));
    let limited = level.and_then(|level| level.spec.limited.as_ref());
    let queuing: Option<&QueuingConfiguration> = limited.and_then(|limited| limited.limit_response.queuing.as_ref());
    queuing.is_some_and(|queuing| queuing.queues > 1)
}

// === impl Asked ===

impl Asked {
    fn info(&self) -> RequestInfo<'_> {
        RequestInfo {
            is_resource_request: self.is_resource_request,
            path: (&*self.path).into(),
            verb: (&*self.verb).into(),
            api_prefix: "".into(),
            api_group: (&*self.api_group).into(),
            api_version: (&*self.api_version).into(),
            namespace: (&*self.namespace).into(),
            resource: (&*self.resource).into(),
            subresource: (&*self.subresource).into(),
            name: (&*self.name).into(),
        }
    }
}
