//! Whether any request can get to the level `catch-all`.

use evenkeel_api::bootstrap::CATCH_ALL;
use evenkeel_api::v1::{
    FlowSchema, NonResourcePolicyRule, PolicyRulesWithSubjects, ResourcePolicyRule, Subject, SubjectKind,
};

use crate::classify::match_order;
use crate::implied_groups::{AUTHENTICATED, UNAUTHENTICATED};

/// Stands for everything, alone in its list.
const EVERY: &str = "*";

/// A part of all requests that a rule may match completely.
///
/// Every caller is in exactly one of two groups: a server puts those that it has authenticated into `system:authenticated`, and
/// all others into `system:unauthenticated` (DG-2). And every request is for a resource or for a path. Rules that take all of
/// each combination take everything together, even if they are in different schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Whole {
    authenticated: bool,
    resources: bool,
}

const EVERYTHING: [Whole; 4] = [
    Whole { authenticated: true, resources: true },
    Whole { authenticated: true, resources: false },
    Whole { authenticated: false, resources: true },
    Whole { authenticated: false, resources: false },
];

/// Whether no request gets to the level `catch-all`: other schemas match every request before the schema `catch-all` is
/// tried, and none leads to that level.
pub(super) fn is_catch_all_unreachable(usable: &[&FlowSchema]) -> bool {
    let stored = usable.iter().find(|schema| schema.name() == CATCH_ALL);
    let others = || usable.iter().filter(|schema| schema.name() != CATCH_ALL);
    if others().any(|schema| schema.spec.priority_level_configuration.name == CATCH_ALL) {
        return false;
    }
    // A schema `catch-all` that is not among the objects is built in, and the last one.
    let is_before = |schema: &&&FlowSchema| stored.is_none_or(|stored| match_order(schema, stored).is_lt());
    let rules = || others().filter(is_before).flat_map(|schema| &schema.spec.rules);
    EVERYTHING.into_iter().all(|whole| rules().any(|rule| whole.is_matched(rule)))
}

// === impl Whole ===

impl Whole {
    /// Whether the rule alone matches all of these requests. Rules that do so only together are not found.
    fn is_matched(self, rule: &PolicyRulesWithSubjects) -> bool {
        let callers = if self.authenticated { AUTHENTICATED } else { UNAUTHENTICATED };
        let are_requests_matched = if self.resources {
            rule.resource_rules.iter().any(is_every_resource)
        } else {
            rule.non_resource_rules.iter().any(is_every_path)
        };
        are_requests_matched && rule.subjects.iter().any(|subject| is_everybody(subject, callers))
    }
}

/// Whether the subject matches everybody in that group.
fn is_everybody(subject: &Subject, group: &str) -> bool {
    match subject.kind {
        SubjectKind::User => subject.user.as_ref().is_some_and(|user| user.name == EVERY),
        SubjectKind::Group => subject.group.as_ref().is_some_and(|named| named.name == EVERY || named.name == group),
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
