//! The mandatory objects and their fixed specifications (API-52, API-53).

use crate::validated;

use evenkeel_api::Defaulted;
use evenkeel_api::meta::ObjectMeta;
use evenkeel_api::v1::FlowSchema;
use serde_json::{Value, json};
use validated::{level_with, problems_of};

#[allow(clippy::needless_pass_by_value, reason = "called with literals")]
fn schema_of(name: &str, spec: Value) -> FlowSchema {
    let mut schema = FlowSchema::new(ObjectMeta::named(name), serde_json::from_value(spec).expect("a specification"));
    schema.apply_defaults();
    schema
}

fn everything_of(groups: &[&str]) -> Value {
    let subjects: Vec<_> = groups.iter().map(|group| json!({"kind": "Group", "group": {"name": group}})).collect();
    let all = json!(["*"]);
    json!([{
        "subjects": subjects,
        "resourceRules": [{"verbs": all, "apiGroups": all, "resources": all, "clusterScope": true, "namespaces": all}],
        "nonResourceRules": [{"verbs": all, "nonResourceURLs": all}],
    }])
}

fn exempt_schema() -> FlowSchema {
    let level = json!({"name": "exempt"});
    let rules = everything_of(&["system:masters"]);
    schema_of("exempt", json!({"priorityLevelConfiguration": level, "matchingPrecedence": 1, "rules": rules}))
}

fn catch_all_schema(groups: &[&str]) -> FlowSchema {
    let (level, method) = (json!({"name": "catch-all"}), json!({"type": "ByUser"}));
    let rules = everything_of(groups);
    let spec = json!({
        "priorityLevelConfiguration": level, "matchingPrecedence": 10000, "distinguisherMethod": method, "rules": rules,
    });
    schema_of("catch-all", spec)
}

#[test]
fn api_52_the_fixed_values_are_fine() {
    assert_eq!(problems_of(&exempt_schema()), [""; 0]);
    assert_eq!(problems_of(&catch_all_schema(&["system:unauthenticated", "system:authenticated"])), [""; 0]);
    let limited = json!({"nominalConcurrencyShares": 5, "limitResponse": {"type": "Reject"}});
    assert_eq!(problems_of(&level_with("catch-all", json!({"type": "Limited", "limited": limited}))), [""; 0]);
    assert_eq!(problems_of(&level_with("exempt", json!({"type": "Exempt"}))), [""; 0]);
    let exempt = json!({"nominalConcurrencyShares": 9, "lendablePercent": 50});
    assert_eq!(problems_of(&level_with("exempt", json!({"type": "Exempt", "exempt": exempt}))), [""; 0]);
}

#[test]
fn api_52_mandatory_schemas_are_shown_whole_when_they_differ() {
    let spec = json!({
        "priorityLevelConfiguration": {"name": "exempt"}, "matchingPrecedence": 1,
        "distinguisherMethod": {"type": "ByUser"}, "rules": [],
    });
    assert_eq!(
        problems_of(&schema_of("exempt", spec)),
        [
            r#"spec: Invalid value: {"PriorityLevelConfiguration":{"Name":"exempt"},"MatchingPrecedence":1,"DistinguisherMethod":{"Type":"ByUser"},"Rules":null}: spec of 'exempt' must equal the fixed value"#
        ]
    );

    // The order of the subjects counts as well.
    let schema = catch_all_schema(&["system:authenticated", "system:unauthenticated"]);
    assert_eq!(
        problems_of(&schema),
        [
            r#"spec: Invalid value: {"PriorityLevelConfiguration":{"Name":"catch-all"},"MatchingPrecedence":10000,"DistinguisherMethod":{"Type":"ByUser"},"Rules":[{"Subjects":[{"Kind":"Group","User":null,"Group":{"Name":"system:authenticated"},"ServiceAccount":null},{"Kind":"Group","User":null,"Group":{"Name":"system:unauthenticated"},"ServiceAccount":null}],"ResourceRules":[{"Verbs":["*"],"APIGroups":["*"],"Resources":["*"],"ClusterScope":true,"Namespaces":["*"]}],"NonResourceRules":[{"Verbs":["*"],"NonResourceURLs":["*"]}]}]}: spec of 'catch-all' must equal the fixed value"#
        ]
    );
}

#[test]
fn api_52_absent_members_are_null() {
    let mut schema = exempt_schema();
    schema.spec.rules = serde_json::from_value(json!([{
        "subjects": [
            {"kind": "User", "user": {"name": "<a>"}},
            {"kind": "ServiceAccount", "serviceAccount": {"namespace": "n", "name": "a"}},
        ],
        "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["n"]}],
    }]))
    .unwrap();
    assert_eq!(
        problems_of(&schema),
        [
            r#"spec: Invalid value: {"PriorityLevelConfiguration":{"Name":"exempt"},"MatchingPrecedence":1,"DistinguisherMethod":null,"Rules":[{"Subjects":[{"Kind":"User","User":{"Name":"\u003ca\u003e"},"Group":null,"ServiceAccount":null},{"Kind":"ServiceAccount","User":null,"Group":null,"ServiceAccount":{"Namespace":"n","Name":"a"}}],"ResourceRules":[{"Verbs":["*"],"APIGroups":["*"],"Resources":["*"],"ClusterScope":false,"Namespaces":["n"]}],"NonResourceRules":null}]}: spec of 'exempt' must equal the fixed value"#
        ]
    );
}

#[test]
fn api_52_mandatory_levels_are_shown_whole_when_they_differ() {
    let limited = json!({
        "nominalConcurrencyShares": 7, "lendablePercent": 10,
        "limitResponse": {"type": "Queue", "queuing": {"queues": 16, "handSize": 4, "queueLengthLimit": 20}},
    });
    let value = r#"{"Type":"Limited","Limited":{"NominalConcurrencyShares":7,"LimitResponse":{"Type":"Queue","Queuing":{"Queues":16,"HandSize":4,"QueueLengthLimit":20}},"LendablePercent":10,"BorrowingLimitPercent":null},"Exempt":null}"#;
    let spec = json!({"type": "Limited", "limited": limited});
    assert_eq!(
        problems_of(&level_with("catch-all", spec.clone())),
        [format!("spec: Invalid value: {value}: spec of 'catch-all' must equal the fixed value")]
    );
    assert_eq!(
        problems_of(&level_with("exempt", spec)),
        [
            "spec.type: Invalid value: \"Limited\": must be 'Exempt' if and only if `name` is 'exempt'".to_owned(),
            format!(
                "spec: Invalid value: {value}: spec of 'exempt' except the 'spec.exempt' field must equal the fixed value"
            ),
        ]
    );
}

#[test]
fn api_52_other_names_are_free() {
    let mut schema = exempt_schema();
    schema.metadata.name = "exempt-too".into();
    schema.spec.matching_precedence = 2;
    assert_eq!(problems_of(&schema), [""; 0]);
}

#[test]
fn api_53_metadata_of_mandatory_objects_is_free() {
    let mut schema = exempt_schema();
    schema.metadata.labels.insert("a".into(), "b".into());
    schema.metadata.annotations.insert("apf.kubernetes.io/autoupdate-spec".into(), "false".into());
    schema.metadata.finalizers.push("example.com/mine".into());
    assert_eq!(problems_of(&schema), [""; 0]);
}
