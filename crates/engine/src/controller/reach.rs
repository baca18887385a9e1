//! Whether any request can get to the level `catch-all`.

use std::sync::Arc;

use evenkeel_api::bootstrap::CATCH_ALL;
use evenkeel_api::v1::{
    FlowSchema, NonResourcePolicyRule, PolicyRulesWithSubjects, ResourcePolicyRule, Subject, SubjectKind,
};

use crate::classify::match_order;

/// Stands for everything, alone in its list.
const EVERY: &str = "*";

/// Whether no request gets to the level `catch-all`: another schema matches every request before the schema `catch-all` is
/// tried, and no other leads to that level.
pub(super) fn is_catch_all_unreachable(usable: &[Arc<FlowSchema>]) -> bool {
    let stored = usable.iter().find(|schema| schema.name() == CATCH_ALL);
    let mut others = usable.iter().filter(|schema| schema.name() != CATCH_ALL);
    let is_named = others.clone().any(|schema| schema.spec.priority_level_configuration.name == CATCH_ALL);
    // A schema `catch-all` that is not among the objects is built in, and the last one.
    let is_before = |schema: &FlowSchema| stored.is_none_or(|stored| match_order(schema, stored).is_lt());
    !is_named && others.any(|schema| is_before(schema) && schema.spec.rules.iter().any(matches_everything))
}

/// Whether one rule is enough to match every request of everybody. Several that do so together are not looked for.
fn matches_everything(rule: &PolicyRulesWithSubjects) -> bool {
    rule.subjects.iter().any(is_everybody)
        && rule.resource_rules.iter().any(is_every_resource)
        && rule.non_resource_rules.iter().any(is_every_path)
}

fn is_everybody(subject: &Subject) -> bool {
    match subject.kind {
        SubjectKind::User => subject.user.as_ref().is_some_and(|user| user.name == EVERY),
        SubjectKind::Group => subject.group.as_ref().is_some_and(|group| group.name == EVERY),
        _ => false,
    }
}

fn is_every_resource(rule: &ResourcePolicyRule) -> bool {
    rule.cluster_scope && [&rule.verbs, &rule.api_groups, &rule.resources, &rule.namespaces].into_iter().all(is_every)
}

fn is_every_path(rule: &NonResourcePolicyRule) -> bool {
    is_every(&rule.verbs) && rule.non_resource_urls.iter().any(|url| url == EVERY)
}

#[expect(clippy::ptr_arg, reason = "it is called with references to the fields")]
fn is_every(list: &Vec<String>) -> bool {
    matches!(&list[..], [only] if only == EVERY)
}
