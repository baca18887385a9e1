//! Classification as the rules say it, one flow schema after the other: what the index is held against.

use evenkeel_api::v1::{
    FlowSchema, NonResourcePolicyRule, PolicyRulesWithSubjects, ResourcePolicyRule, Subject, SubjectKind,
};
use evenkeel_engine::{Attributes, RequestInfo, User};

/// The index of the first schema that matches (FM-1).
pub(crate) fn classify(ordered: &[&FlowSchema], attributes: Attributes<'_>) -> Option<usize> {
    // FM-2
    ordered.iter().position(|schema| schema.spec.rules.iter().any(|rule| rule_matches(rule, attributes)))
}

/// FM-3
fn rule_matches(rule: &PolicyRulesWithSubjects, Attributes { user, request }: Attributes<'_>) -> bool {
    rule.subjects.iter().any(|subject| subject_matches(subject, user))
        && if request.is_resource_request {
            rule.resource_rules.iter().any(|rule| resource_rule_matches(rule, request))
        } else {
            rule.non_resource_rules.iter().any(|rule| non_resource_rule_matches(rule, request))
        }
}

/// FM-5 to FM-9
fn subject_matches(subject: &Subject, user: &User) -> bool {
    match subject.kind {
        SubjectKind::User => subject.user.as_ref().is_some_and(|named| named.name == "*" || *named.name == *user.name),
        SubjectKind::Group => subject
            .group
            .as_ref()
            .is_some_and(|named| named.name == "*" || user.groups.iter().any(|group| **group == *named.name)),
        SubjectKind::ServiceAccount => subject.service_account.as_ref().is_some_and(|account| {
            let prefix = format!("system:serviceaccount:{}:", account.namespace);
            if account.name == "*" { user.name.starts_with(&prefix) } else { *user.name == *(prefix + &account.name) }
        }),
        SubjectKind::Other(_) => false,
    }
}

/// FM-10
fn in_list(text: &str, list: &[String]) -> bool {
    (list.len() == 1 && list[0] == "*") || list.iter().any(|entry| entry == text)
}

/// FM-11
fn resource_rule_matches(rule: &ResourcePolicyRule, request: &RequestInfo<'_>) -> bool {
    let resource = match &*request.subresource {
        "" => request.resource.to_string(),
        subresource => format!("{}/{subresource}", request.resource),
    };
    in_list(&request.verb, &rule.verbs)
        && in_list(&resource, &rule.resources)
        && in_list(&request.api_group, &rule.api_groups)
        && if request.namespace.is_empty() { rule.cluster_scope } else { in_list(&request.namespace, &rule.namespaces) }
}

/// FM-12
fn non_resource_rule_matches(rule: &NonResourcePolicyRule, request: &RequestInfo<'_>) -> bool {
    in_list(&request.verb, &rule.verbs) && rule.non_resource_urls.iter().any(|entry| covers(entry, &request.path))
}

/// FM-13
fn covers(entry: &str, path: &str) -> bool {
    let mut prefix = entry.strip_suffix('*').unwrap_or(entry).to_owned();
    if !prefix.ends_with('/') {
        prefix.push('/');
    }
    entry == "*" || entry == path || path.starts_with(&prefix)
}
