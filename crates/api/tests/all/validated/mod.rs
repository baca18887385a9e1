//! Valid objects for validation tests to spoil, the long texts, and what is found in a spoilt object.

#![allow(dead_code, reason = "each test file uses a part of it")]

use evenkeel_api::v1::{FlowSchema, PriorityLevelConfiguration, V1};
use evenkeel_api::validate::{self, FieldErrors, ValidSpec};
use evenkeel_api::{Defaulted, Object, Version};
use serde_json::{Value, json};

pub(crate) const SUBDOMAIN: &str = r"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
pub(crate) const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

/// A flow schema without problems.
pub(crate) fn schema() -> FlowSchema {
    schema_with(json!([{
        "subjects": [{"kind": "User", "user": {"name": "alice"}}],
        "resourceRules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "namespaces": ["default"]}],
    }]))
}

/// A flow schema without problems, unless there are some in its rules.
#[allow(clippy::needless_pass_by_value, reason = "called with literals")]
pub(crate) fn schema_with(rules: Value) -> FlowSchema {
    let spec = json!({"priorityLevelConfiguration": {"name": "workload-low"}, "rules": rules});
    let mut schema: FlowSchema =
        serde_json::from_value(json!({"metadata": {"name": "batch"}, "spec": spec})).expect("an object");
    schema.apply_defaults();
    schema
}

/// A priority level without problems.
pub(crate) fn level() -> PriorityLevelConfiguration {
    level_with("batch", json!({"type": "Limited", "limited": {"limitResponse": {"type": "Queue", "queuing": {}}}}))
}

/// A priority level of that name and specification, with defaults.
#[allow(clippy::needless_pass_by_value, reason = "called with literals")]
pub(crate) fn level_with(name: &str, spec: Value) -> PriorityLevelConfiguration {
    let mut level: PriorityLevelConfiguration =
        serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).expect("an object");
    level.apply_defaults();
    level
}

/// Every problem, written out.
pub(crate) fn problems(found: Result<(), FieldErrors>) -> Vec<String> {
    found.err().into_iter().flatten().map(|error| error.to_string()).collect()
}

/// Every problem of an object that is to be created in v1.
pub(crate) fn problems_of<S: ValidSpec>(object: &Object<V1, S>) -> Vec<String> {
    problems(validate::create(object, Version::V1))
}
