//! Classifications that Kubernetes made, by the controller's configuration and by the plain walk (FM-1 to FM-16, CC-9 to
//! CC-12).

use crate::level_table;
use crate::linear;

use std::sync::Arc;

use evenkeel_api::bootstrap;
use evenkeel_api::v1::{FlowSchema, PriorityLevelConfiguration};
use evenkeel_engine::classify::distinguisher;
use evenkeel_engine::controller::{Applied, Controller, Objects};
use evenkeel_engine::time::Instant;
use evenkeel_engine::{Attributes, RequestInfo, User, flow_hash};
use evenkeel_recorded::{Golden, SideBySide, compared, golden_rows};
use level_table::LevelTable;
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

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Outcome {
    flow_schema: String,
    priority_level: String,
    distinguisher: String,
    effective_distinguisher: String,
    hash: String,
}

/// How many seats the server has: nothing that is recorded here depends on it.
const SERVER_LIMIT: i64 = 600;

#[test]
fn flow_schemas_and_flows() {
    let recorded = golden_rows::<Row>(Golden::Classify);
    let mut requests = 0;
    for (file, rows) in &recorded {
        for (row, recorded) in rows.iter().enumerate() {
            let place = format!("{}, row {} ({})", file.display(), row + 1, recorded.name);
            let applied = recorded.apply();
            let mut comparison = SideBySide::default();
            let names: Vec<_> = applied.configuration.schemas().iter().map(|schema| &*schema.name).collect();
            comparison.same("match order", &recorded.match_order.iter().map(|name| &**name).collect(), &names);
            comparison.same("requests and results", &recorded.requests.len(), &recorded.results.len());
            comparison.assert(&place);
            let objects: Vec<_> = names.iter().map(|name| recorded.schema_in_use(name, &applied)).collect();
            for (number, (asked, expected)) in recorded.requests.iter().zip(&recorded.results).enumerate() {
                let comparison = expected.compare(asked, &applied, &objects);
                comparison.assert(format_args!("{place}, request {number}, {asked:?}"));
                requests += 1;
            }
        }
    }
    compared("classified requests", requests);
}

// === impl Row ===

impl Row {
    fn apply(&self) -> Applied {
        let mut table = LevelTable::default();
        let (mut controller, _) = Controller::new(SERVER_LIMIT, &mut table, Instant::default());
        let objects = Objects {
            priority_levels: self.priority_levels.iter().cloned().map(Arc::new).collect(),
            flow_schemas: self.flow_schemas.iter().cloned().map(Arc::new).collect(),
        };
        controller.apply(objects, &mut table, Instant::default())
    }

    /// The schema of that name: the one that was given, or the built-in one if that cannot be used.
    fn schema_in_use(&self, name: &str, applied: &Applied) -> &FlowSchema {
        let is_used = |schema: &&FlowSchema| {
            let is_dangling = applied.dangling.iter().any(|told| told.schema == name && told.is_dangling);
            schema.name() == name && !is_dangling
        };
        let given = self.flow_schemas.iter().find(is_used);
        given.or_else(|| bootstrap::mandatory_flow_schema(name)).expect("a schema that is given or built in")
    }
}

// === impl Outcome ===

impl Outcome {
    /// Compares with what the configuration says, and with the plain walk through the schemas in use.
    fn compare(&self, asked: &Asked, applied: &Applied, schemas: &[&FlowSchema]) -> SideBySide {
        let user = User::new(&*asked.user, asked.groups.iter().map(|group| &**group));
        let info = asked.info();
        let attributes = Attributes { user: &user, request: &info };
        let mut comparison = SideBySide::default();

        let class = applied.configuration.classify(attributes);
        let level = &class.schema.level;
        comparison.same("flow schema", &*self.flow_schema, &*class.schema.name);
        comparison.same("priority level", &*self.priority_level, &*level.name);
        comparison.same("effective distinguisher", &*self.effective_distinguisher, class.distinguisher);
        let hash_in_use = if level.has_flows { &*self.hash } else { "0" };
        comparison.same("hash in use", hash_in_use, &*class.flow_hash.to_string());

        let walked = linear::classify(schemas, attributes).map(|index| schemas[index].name());
        comparison.same("flow schema by the plain walk", &*self.flow_schema, walked.unwrap_or(bootstrap::CATCH_ALL));

        let schema = schemas.iter().find(|schema| schema.name() == self.flow_schema).expect("a schema in use");
        let distinguisher = distinguisher(schema.spec.distinguisher_method.as_ref(), attributes);
        comparison.same("distinguisher", &*self.distinguisher, distinguisher);
        comparison.same("hash", &*self.hash, &*flow_hash(&self.flow_schema, distinguisher).to_string());
        comparison
    }
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
            ..RequestInfo::default()
        }
    }
}
