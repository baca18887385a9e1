//! Which part of a flow schema does not match a request.
//!
//! Every part is tried by the real classifier, in a flow schema whose other parts match everything. So there is no second
//! implementation of what matches.

use evenkeel_api::annotations::{MATCH_HEADERS, MATCH_PATHS};
use evenkeel_api::v1::{
    FlowSchema, NonResourcePolicyRule, PolicyRulesWithSubjects, ResourcePolicyRule, Subject, SubjectKind, UserSubject,
};
use evenkeel_engine::Attributes;
use evenkeel_engine::classify::Classifier;

/// The outcome of trying a flow schema, with the path of the rule that matched or of the part that did not.
pub(super) enum Outcome {
    Matched(String),
    Failed(String),
}

/// The request and the conditions that parts are tried with.
#[derive(Clone, Copy)]
struct Tried<'a> {
    attributes: Attributes<'a>,
    /// The annotation of the flow schema on how paths match.
    exact: Option<&'a str>,
}

/// How far a rule got.
struct Attempt {
    /// How many of its parts match.
    matching: usize,
    /// The path of the first part that does not; `None` if the rule matches.
    failed: Option<String>,
    rule: String,
}

/// Tries a flow schema.
pub(super) fn outcome(schema: &FlowSchema, attributes: Attributes<'_>) -> Outcome {
    if !has_headers(schema, attributes) {
        return Outcome::Failed(format!("metadata.annotations[{MATCH_HEADERS}]"));
    }
    let exact = schema.metadata.annotations.get(MATCH_PATHS).cloned();
    let tried = Tried { attributes, exact: exact.as_deref() };
    let rules = schema.spec.rules.iter().enumerate();
    let attempts = rules.flat_map(|(number, rule)| attempts(&format!("spec.rules[{number}]"), rule, tried));
    let mut best: Option<Attempt> = None;
    for attempt in attempts {
        if attempt.failed.is_none() {
            return Outcome::Matched(attempt.rule);
        }
        if best.as_ref().is_none_or(|best| attempt.matching > best.matching) {
            best = Some(attempt);
        }
    }
    Outcome::Failed(best.and_then(|best| best.failed).unwrap_or_else(|| "spec.rules".to_owned()))
}

/// Tries everything that one rule lists for requests of this kind.
fn attempts(path: &str, rule: &PolicyRulesWithSubjects, tried: Tried<'_>) -> Vec<Attempt> {
    let has_subject = matches(tried, rule.subjects.clone(), [every_resource()], [every_path()]);
    if !has_subject {
        return vec![Attempt { matching: 0, failed: Some(format!("{path}.subjects")), rule: path.to_owned() }];
    }
    let (list, attempts): (_, Vec<Attempt>) = if tried.attributes.request.is_resource_request {
        let tried = |(number, rule)| try_resource_rule(format!("{path}.resourceRules[{number}]"), rule, tried);
        ("resourceRules", rule.resource_rules.iter().enumerate().map(tried).collect())
    } else {
        let tried = |(number, rule)| try_path_rule(format!("{path}.nonResourceRules[{number}]"), rule, tried);
        ("nonResourceRules", rule.non_resource_rules.iter().enumerate().map(tried).collect())
    };
    if attempts.is_empty() {
        return vec![Attempt { matching: 1, failed: Some(format!("{path}.{list}")), rule: path.to_owned() }];
    }
    attempts
}

fn try_resource_rule(path: String, rule: &ResourcePolicyRule, tried: Tried<'_>) -> Attempt {
    let rule = rule.clone();
    let parts = [
        ("verbs", ResourcePolicyRule { verbs: rule.verbs, ..every_resource() }),
        ("apiGroups", ResourcePolicyRule { api_groups: rule.api_groups, ..every_resource() }),
        ("resources", ResourcePolicyRule { resources: rule.resources, ..every_resource() }),
        (
            if tried.attributes.request.namespace.is_empty() { "clusterScope" } else { "namespaces" },
            ResourcePolicyRule { namespaces: rule.namespaces, cluster_scope: rule.cluster_scope, ..every_resource() },
        ),
    ];
    Attempt::new(path, parts, |part| matches(tried, vec![everybody()], [part], []))
}

fn try_path_rule(path: String, rule: &NonResourcePolicyRule, tried: Tried<'_>) -> Attempt {
    let rule = rule.clone();
    let parts = [
        ("verbs", NonResourcePolicyRule { verbs: rule.verbs, ..every_path() }),
        ("nonResourceURLs", NonResourcePolicyRule { non_resource_urls: rule.non_resource_urls, ..every_path() }),
    ];
    Attempt::new(path, parts, |part| matches(tried, vec![everybody()], [], [part]))
}

/// Whether the classifier finds that one rule of these parts matches.
fn matches<const R: usize, const P: usize>(
    tried: Tried<'_>,
    subjects: Vec<Subject>,
    resource_rules: [ResourcePolicyRule; R],
    non_resource_rules: [NonResourcePolicyRule; P],
) -> bool {
    let (resource_rules, non_resource_rules) = (resource_rules.into(), non_resource_rules.into());
    let mut schema = FlowSchema::builder("one").priority_level("one").build();
    schema.spec.rules = vec![PolicyRulesWithSubjects { subjects, resource_rules, non_resource_rules }];
    if let Some(exact) = tried.exact {
        schema.metadata.annotations.insert(MATCH_PATHS.to_owned(), exact.to_owned());
    }
    Classifier::compile([&schema]).classify(tried.attributes).is_some()
}

/// Whether a request has the headers that a flow schema asks for.
fn has_headers(schema: &FlowSchema, attributes: Attributes<'_>) -> bool {
    let Some(asked) = schema.metadata.annotations.get(MATCH_HEADERS) else { return true };
    let everything = FlowSchema::builder("one").priority_level("one").rule(|r| r.user("*").everything());
    let schema = everything.annotation(MATCH_HEADERS, asked).build();
    Classifier::compile([&schema]).classify(attributes).is_some()
}

fn every() -> Vec<String> {
    vec!["*".to_owned()]
}

fn every_resource() -> ResourcePolicyRule {
    let (verbs, api_groups, resources, namespaces) = (every(), every(), every(), every());
    ResourcePolicyRule { verbs, api_groups, resources, cluster_scope: true, namespaces }
}

fn every_path() -> NonResourcePolicyRule {
    NonResourcePolicyRule { verbs: every(), non_resource_urls: every() }
}

fn everybody() -> Subject {
    let user = Some(UserSubject { name: "*".to_owned() });
    Subject { kind: SubjectKind::User, user, group: None, service_account: None }
}

// === impl Attempt ===

impl Attempt {
    fn new<T, const N: usize>(rule: String, parts: [(&str, T); N], matches: impl Fn(T) -> bool) -> Self {
        // The subjects match already.
        let mut matching = 1;
        for (name, part) in parts {
            if !matches(part) {
                return Self { matching, failed: Some(format!("{rule}.{name}")), rule };
            }
            matching += 1;
        }
        Self { matching, failed: None, rule }
    }
}
