//! Warnings about what `evenkeel check` finds in the objects after a write.
//!
//! A kube-apiserver has no such warnings, so they are sent only where the objects are those of an ordinary service.

use std::sync::Arc;

use evenkeel_api::{AnyObject, HubSpec, Kind};
use evenkeel_check::{Assumptions, Finding, Located, Rule, Severity, check};
use evenkeel_engine::controller::Objects;
use http::StatusCode;

use super::ApiState;
use crate::offload::Offload;
use crate::options::Moment;
use crate::seats::with;
use crate::verbs::Written;

/// With more objects than this, checking all of them would take too long for a write.
const OBJECTS_MAX: usize = 1000;
/// How many requests are classified at most.
const WORK_MAX: u64 = 100_000;
/// The work for each object, as the bytes of an object that takes as long to decode.
const BYTES_OF_EACH: usize = 2048;

/// The findings in the written object, and in others because of it.
pub(super) async fn warnings<S: HubSpec>(shared: &ApiState, written: &Written<S>) -> Vec<String> {
    if shared.schemas.preset().is_kubernetes() {
        return Vec::new();
    }
    let (Ok(schemas), Ok(levels)) =
        (shared.schemas.snapshot(Moment::Any).await, shared.levels.snapshot(Moment::Any).await)
    else {
        return Vec::new();
    };
    let (schemas, levels) = (schemas.objects, levels.objects);
    let count = schemas.len() + levels.len();
    if count > OBJECTS_MAX {
        return Vec::new();
    }
    let assumptions = Assumptions { work_max: WORK_MAX, ..shared.governed.assumptions() };
    Offload::of(count * BYTES_OF_EACH).await.run(|| {
        let object = &*written.record.object;
        let Objects { flow_schemas, priority_levels } =
            with(Objects { flow_schemas: schemas, priority_levels: levels }, object);
        let schemas = flow_schemas.into_iter().map(|schema| AnyObject::from(Arc::unwrap_or_clone(schema)));
        let levels = priority_levels.into_iter().map(|level| AnyObject::from(Arc::unwrap_or_clone(level)));
        let objects: Vec<Located<'_>> = schemas.chain(levels).map(Located::without_place).collect();
        let found = check(&objects, &assumptions).findings.into_iter();
        let concerned =
            found.filter(|finding| is_about(finding, S::KIND, object.name()) && is_news(finding, written.status));
        concerned.map(|finding| sentence(&finding)).collect()
    })
}

/// Whether a finding has to do with that object: it is about it, or about a schema whose requests it takes.
fn is_about(finding: &Finding, kind: Kind, name: &str) -> bool {
    let is_it = finding.object.kind == kind.name() && finding.object.name == name;
    is_it || kind == Kind::FlowSchema && finding.blockers.iter().any(|blocker| blocker == name)
}

/// Whether a finding is worth a warning.
fn is_news(finding: &Finding, status: StatusCode) -> bool {
    finding.severity >= Severity::Warning
        && match finding.rule {
            // The API tells these itself, and for the last one nobody has said how long requests run.
            Rule::InvalidObject
            | Rule::UnknownAnnotation
            | Rule::DeprecatedVersion
            | Rule::ZeroSharesLost
            | Rule::Bufferbloat => false,
            // A level is created before the schemas that lead to it.
            Rule::UnusedLevel => status != StatusCode::CREATED,
            _ => true,
        }
}

fn sentence(finding: &Finding) -> String {
    let kind = if finding.object.kind == Kind::FlowSchema.name() { "flow schema" } else { "priority level" };
    format!("{kind} {:?}: {} ({})", finding.object.name, finding.message, finding.rule.name())
}
