//! Warnings about flow schemas that no request can reach after a write.
//!
//! A kube-apiserver has no such warnings, so they are sent only where the objects are those of an ordinary service.

use std::any::Any;

use evenkeel_api::v1::{FlowSchema, V1};
use evenkeel_api::{HubSpec, Object, Preset};
use evenkeel_check::{Assumptions, Located, Rule, check_reachability};

use super::ApiState;
use crate::offload::Offload;
use crate::options::Moment;

/// With more schemas than this, checking all of them would take too long for a write.
const SCHEMAS_MAX: usize = 1000;
/// How many requests are classified at most.
const WORK_MAX: u64 = 100_000;
/// The work for each schema, as the bytes of an object that takes as long to decode.
const BYTES_OF_EACH: usize = 2048;

/// The schemas that a write makes unreachable: the written schema itself, or others whose requests it takes.
pub(super) async fn warnings<S: HubSpec>(shared: &ApiState, written: &Object<V1, S>) -> Vec<String> {
    let Some(written) = (written as &dyn Any).downcast_ref::<FlowSchema>() else { return Vec::new() };
    if shared.schemas.preset() != Preset::Plain {
        return Vec::new();
    }
    let (Ok(schemas), Ok(levels)) =
        (shared.schemas.snapshot(Moment::Any).await, shared.levels.snapshot(Moment::Any).await)
    else {
        return Vec::new();
    };
    let (schemas, levels) = (schemas.objects, levels.objects);
    if schemas.len() > SCHEMAS_MAX {
        return Vec::new();
    }
    Offload::of(schemas.len() * BYTES_OF_EACH).await.run(|| {
        let others = schemas.iter().filter(|schema| schema.name() != written.name());
        let schemas = others.map(|schema| FlowSchema::clone(schema)).chain([written.clone()]);
        let mut objects: Vec<Located<'_>> = schemas.map(Located::without_place).collect();
        objects.extend(levels.iter().map(|level| Located::without_place((**level).clone())));
        let assumptions = Assumptions { preset: Preset::Plain, work_max: WORK_MAX, ..Assumptions::default() };
        let report = check_reachability(&objects, &assumptions);
        let concerned = report.findings.into_iter().filter(|finding| {
            let is_it = |name: &String| name == written.name();
            finding.rule == Rule::UnreachableSchema
                && (is_it(&finding.object.name) || finding.blockers.iter().any(is_it))
        });
        concerned.map(|finding| format!("flow schema {:?}: {}", finding.object.name, finding.message)).collect()
    })
}
