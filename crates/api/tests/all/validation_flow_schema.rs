//! The specification of a flow schema, without what its rules match (API-37 to API-41).

use crate::validated;

use evenkeel_api::v1::FlowDistinguisherMethod;
use serde_json::{Value, json};
use validated::{LABEL, SUBDOMAIN, problems_of, schema, schema_with};

#[test]
fn api_37_precedence_is_from_1_to_10000_and_1_is_kept_for_exempt() {
    let found_at = |precedence| {
        let mut schema = schema();
        schema.spec.matching_precedence = precedence;
        problems_of(&schema)
    };
    for precedence in [2, 10_000] {
        assert_eq!(found_at(precedence), [""; 0]);
    }
    let table = [
        (-1, "must be a positive value"),
        (0, "must be a positive value"),
        (1, "only the schema named 'exempt' may have matchingPrecedence 1"),
        (10_001, "must not be greater than 10000"),
    ];
    for (precedence, detail) in table {
        let expected = format!("spec.matchingPrecedence: Invalid value: {precedence}: {detail}");
        assert_eq!(found_at(precedence), [expected]);
    }
}

#[test]
fn api_38_the_distinguisher_is_one_of_two() {
    let found_with = |method: &str| {
        let mut schema = schema();
        schema.spec.distinguisher_method = Some(FlowDistinguisherMethod { method: method.into() });
        problems_of(&schema)
    };
    for method in ["ByUser", "ByNamespace"] {
        assert_eq!(found_with(method), [""; 0]);
    }
    for method in ["", "byuser", "Foo"] {
        let expected = format!(
            r#"spec.distinguisherMethod.type: Unsupported value: {{"Type":"{method}"}}: supported values: "ByNamespace", "ByUser""#
        );
        assert_eq!(found_with(method), [expected]);
    }
}

#[test]
fn api_39_the_level_has_a_name() {
    let found_with = |name: &str| {
        let mut schema = schema();
        schema.spec.priority_level_configuration.name = name.into();
        problems_of(&schema)
    };
    assert_eq!(found_with("no-such.level"), [""; 0]);
    let path = "spec.priorityLevelConfiguration.name";
    assert_eq!(found_with(""), [format!("{path}: Required value: must reference a priority level")]);
    assert_eq!(found_with("Bad_Name"), [format!("{path}: Invalid value: \"Bad_Name\": {SUBDOMAIN}")]);
    let long = "a".repeat(254);
    assert_eq!(found_with(&long), [format!("{path}: Invalid value: {long:?}: must be no more than 253 characters")]);
}

#[test]
fn api_40_a_rule_has_subjects_and_something_to_match() {
    assert_eq!(problems_of(&schema_with(json!([]))), [""; 0]);
    let user = json!({"kind": "User", "user": {"name": "alice"}});
    let url = json!({"verbs": ["get"], "nonResourceURLs": ["/a"]});
    assert_eq!(problems_of(&schema_with(json!([{"subjects": [user], "nonResourceRules": [url]}]))), [""; 0]);
    let rules = json!([
        {"subjects": [user], "nonResourceRules": [url]},
        {},
        {"subjects": [{}], "resourceRules": [{"clusterScope": true}], "nonResourceRules": [{}]},
    ]);
    assert_eq!(
        problems_of(&schema_with(rules)),
        [
            "spec.rules[1].subjects: Required value: subjects must contain at least one value",
            "spec.rules[1]: Required value: at least one of resourceRules and nonResourceRules has to be non-empty",
            r#"spec.rules[2].subjects[0].kind: Unsupported value: "": supported values: "Group", "ServiceAccount", "User""#,
            "spec.rules[2].resourceRules[0].verbs: Required value: verbs must contain at least one value",
            "spec.rules[2].resourceRules[0].apiGroups: Required value: resource rules must supply at least one api group",
            "spec.rules[2].resourceRules[0].resources: Required value: resource rules must supply at least one resource",
            "spec.rules[2].nonResourceRules[0].verbs: Required value: verbs must contain at least one value",
            "spec.rules[2].nonResourceRules[0].nonResourceURLs: Required value: nonResourceURLs must contain at least one value",
        ]
    );
}

/// What is found in one subject, each error without the path of the subject.
#[allow(clippy::needless_pass_by_value, reason = "called with literals")]
fn problems_of_subject(subject: Value) -> Vec<String> {
    let rule = json!({"verbs": ["get"], "nonResourceURLs": ["/a"]});
    let schema = schema_with(json!([{"subjects": [subject], "nonResourceRules": [rule]}]));
    let found = problems_of(&schema);
    found.iter().map(|error| error.strip_prefix("spec.rules[0].subjects[0].").expect("the path").to_owned()).collect()
}

#[test]
fn api_41_a_subject_is_of_a_known_kind() {
    let found = problems_of_subject(json!({"kind": "user", "user": {}, "group": {}}));
    assert_eq!(found, [r#"kind: Unsupported value: "user": supported values: "Group", "ServiceAccount", "User""#]);
}

#[test]
fn api_41_a_subject_has_the_member_of_its_kind() {
    let table = [("User", "user"), ("Group", "group"), ("ServiceAccount", "serviceAccount")];
    for (kind, member) in table {
        let expected = format!("{member}: Required value: {member} is required when subject kind is '{kind}'");
        assert_eq!(problems_of_subject(json!({ "kind": kind })), [expected]);
    }
    for (kind, member) in &table[..2] {
        assert_eq!(problems_of_subject(json!({"kind": kind, *member: {"name": "*"}})), [""; 0]);
        let expected = format!("{member}.name: Required value");
        assert_eq!(problems_of_subject(json!({"kind": kind, *member: {}})), [expected]);
    }
}

#[test]
fn api_41_a_subject_has_no_other_member() {
    let name = json!({"name": "a"});
    let account = json!({"name": "*", "namespace": "a"});
    let all = |kind: &str| json!({"kind": kind, "user": name, "group": name, "serviceAccount": account});
    let account = "serviceAccount: Forbidden: serviceAccount is forbidden when subject kind is not 'ServiceAccount'";
    let user = "user: Forbidden: user is forbidden when subject kind is not 'User'";
    let group = "group: Forbidden: group is forbidden when subject kind is not 'Group'";
    assert_eq!(problems_of_subject(all("User")), [account, group]);
    assert_eq!(problems_of_subject(all("Group")), [account, user]);
    assert_eq!(problems_of_subject(all("ServiceAccount")), [user, group]);
    assert_eq!(
        problems_of_subject(json!({"kind": "Group", "group": {}, "user": name})),
        ["group.name: Required value", user]
    );
}

#[test]
fn api_41_service_accounts_have_a_name_and_a_namespace() {
    let found_in = |namespace: &str, name: &str| {
        let account = json!({"namespace": namespace, "name": name});
        problems_of_subject(json!({"kind": "ServiceAccount", "serviceAccount": account}))
    };
    for (namespace, name) in [("default", "*"), (&*"n".repeat(63), "a.b-c")] {
        assert_eq!(found_in(namespace, name), [""; 0]);
    }
    assert_eq!(
        found_in("", ""),
        [
            "serviceAccount.name: Required value",
            "serviceAccount.namespace: Required value: must specify namespace for service account"
        ]
    );
    assert_eq!(found_in("a", "Bad"), [format!("serviceAccount.name: Invalid value: \"Bad\": {SUBDOMAIN}")]);
    let long = "n".repeat(64);
    let table = [
        ("*", LABEL),
        ("a_b", LABEL),
        ("a.b", "must not contain dots"),
        (&*long, "must be no more than 63 characters"),
    ];
    for (namespace, detail) in table {
        let expected = format!("serviceAccount.namespace: Invalid value: {namespace:?}: {detail}");
        assert_eq!(found_in(namespace, "*"), [expected]);
    }
}
