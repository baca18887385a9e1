//! What the rules of a flow schema match (API-42 to API-45).

use crate::validated;

use evenkeel_api::v1::FlowSchema;
use evenkeel_api::validate::{self, Context};
use evenkeel_api::{Preset, Version};
use serde_json::{Value, json};
use validated::{LABEL, problems_of, schema_with};

/// What is found when one member of a valid rule is replaced, each error without the path of the rule.
fn problems_with(list: &str, rule: &Value, member: &str, value: &Value) -> Vec<String> {
    let mut rule = rule.clone();
    rule[member] = value.clone();
    let subject = json!({"kind": "User", "user": {"name": "alice"}});
    let found = problems_of(&schema_with(json!([{"subjects": [subject], list: [rule]}])));
    let path = format!("spec.rules[0].{list}[0].");
    found.iter().map(|error| error.strip_prefix(&path).expect("the path").to_owned()).collect()
}

#[allow(clippy::needless_pass_by_value, reason = "called with literals")]
fn problems_of_resource_rule(member: &str, value: Value) -> Vec<String> {
    let rule = json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"]});
    problems_with("resourceRules", &rule, member, &value)
}

#[allow(clippy::needless_pass_by_value, reason = "called with literals")]
fn problems_of_non_resource_rule(member: &str, value: Value) -> Vec<String> {
    let rule = json!({"verbs": ["*"], "nonResourceURLs": ["*"]});
    problems_with("nonResourceRules", &rule, member, &value)
}

#[test]
fn api_42_verbs_are_known_or_all() {
    let every = json!(["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"]);
    let supported = r#"supported values: "create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch""#;
    let table = [
        (every, None),
        (json!(["*"]), None),
        (json!([]), Some("verbs: Required value: verbs must contain at least one value".to_owned())),
        (
            json!(["get", "*"]),
            Some(r#"verbs: Invalid value: ["get","*"]: if '*' is present, must not specify other verbs"#.to_owned()),
        ),
        (
            json!(["*", "fly"]),
            Some(r#"verbs: Invalid value: ["*","fly"]: if '*' is present, must not specify other verbs"#.to_owned()),
        ),
        (json!(["get", "fly"]), Some(format!(r#"verbs: Unsupported value: ["get","fly"]: {supported}"#))),
        (json!(["GET", "<"]), Some(format!(r#"verbs: Unsupported value: ["GET","\u003c"]: {supported}"#))),
    ];
    for (verbs, expected) in table {
        let expected: Vec<_> = expected.into_iter().collect();
        assert_eq!(problems_of_resource_rule("verbs", verbs.clone()), expected);
        assert_eq!(problems_of_non_resource_rule("verbs", verbs), expected);
    }
}

#[test]
fn api_43_groups_and_resources_are_listed_or_all() {
    let table = [("apiGroups", "api group", "api groups"), ("resources", "resource", "resources")];
    for (member, one, many) in table {
        for fine in [json!(["*"]), json!(["", "any thing", "!"])] {
            assert_eq!(problems_of_resource_rule(member, fine), [""; 0]);
        }
        assert_eq!(
            problems_of_resource_rule(member, json!([])),
            [format!("{member}: Required value: resource rules must supply at least one {one}")]
        );
        assert_eq!(
            problems_of_resource_rule(member, json!(["a", "*"])),
            [format!(r#"{member}: Invalid value: ["a","*"]: if '*' is present, must not specify other {many}"#)]
        );
    }
}

#[test]
fn api_44_namespaces_are_labels_or_all() {
    for fine in [json!(["*"]), json!(["default", "kube-system"])] {
        assert_eq!(problems_of_resource_rule("namespaces", fine), [""; 0]);
    }
    assert_eq!(
        problems_of_resource_rule("namespaces", json!([])),
        ["namespaces: Required value: resource rules that are not cluster scoped must supply at least one namespace"]
    );
    assert_eq!(
        problems_of_resource_rule("namespaces", json!(["*", "B_d"])),
        [r#"namespaces: Invalid value: ["*","B_d"]: if '*' is present, must not specify other namespaces"#]
    );
    let each = "each member of this list must be '*' or a DNS-1123 label; ";
    let long = "n".repeat(64);
    assert_eq!(
        problems_of_resource_rule("namespaces", json!(["Bad_NS", "fine", "x.y", "", long, "B.d"])),
        [
            format!("namespaces[0]: Invalid value: \"Bad_NS\": {each}{LABEL}"),
            format!("namespaces[2]: Invalid value: \"x.y\": {each}must not contain dots"),
            format!("namespaces[3]: Invalid value: \"\": {each}{LABEL}"),
            format!("namespaces[4]: Invalid value: {long:?}: {each}must be no more than 63 characters"),
            format!("namespaces[5]: Invalid value: \"B.d\": {each}{LABEL}"),
        ]
    );
}

#[test]
fn api_44_cluster_scope_needs_no_namespaces_but_checks_those_there_are() {
    let rule = json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": true});
    let found_in = |namespaces: Value| problems_with("resourceRules", &rule, "namespaces", &namespaces);
    assert_eq!(found_in(json!([])), [""; 0]);
    assert_eq!(
        found_in(json!(["a.b"])),
        [
            "namespaces[0]: Invalid value: \"a.b\": each member of this list must be '*' or a DNS-1123 label; must not contain dots"
        ]
    );
}

#[test]
fn api_45_urls_are_paths_and_wildcards_are_suffixes() {
    assert_eq!(problems_of_non_resource_rule("nonResourceURLs", json!(["*"])), [""; 0]);
    assert_eq!(
        problems_of_non_resource_rule("nonResourceURLs", json!([])),
        ["nonResourceURLs: Required value: nonResourceURLs must contain at least one value"]
    );
    assert_eq!(
        problems_of_non_resource_rule("nonResourceURLs", json!(["*", "bad"])),
        [r#"nonResourceURLs: Invalid value: ["*","bad"]: if '*' is present, must not specify other non-resource URLs"#]
    );
    let wildcard = Some("wildcard can only do suffix matching");
    let table = [
        ("/", None),
        ("/*", None),
        ("/a/b/*", None),
        ("/a\tb", None),
        ("", Some("must not be empty")),
        ("a b", Some("must start with slash")),
        ("/a b//", Some("must not contain white-space")),
        ("//", Some("must not contain double slash")),
        ("/a//*/*", Some("must not contain double slash")),
        ("/a*", wildcard),
        ("/*a", wildcard),
        ("/*/*", wildcard),
        ("/*/a", wildcard),
        ("/**", wildcard),
    ];
    for (url, detail) in table {
        let expected: Vec<_> = detail
            .map(|detail| format!("nonResourceURLs[1]: Invalid value: \"{url}\": {detail}"))
            .into_iter()
            .collect();
        assert_eq!(problems_of_non_resource_rule("nonResourceURLs", json!(["/fine", url])), expected, "{url}");
    }
}

#[test]
fn the_objects_of_a_preset_are_valid_under_it() {
    for preset in Preset::ALL {
        let context = Context { preset, ..Context::from(Version::V1) };
        let objects = preset.objects();
        for level in &objects.priority_levels {
            assert_eq!(validate::create(level, context), Ok(()), "{}", level.name());
        }
        for schema in &objects.flow_schemas {
            assert_eq!(validate::create(schema, context), Ok(()), "{}", schema.name());
        }
    }
}

#[test]
fn verbs_of_paths_are_methods_in_the_plain_preset() {
    let errors = |verb: &str, preset| {
        let schema = FlowSchema::builder("some").priority_level("some");
        let schema = schema.rule(|r| r.user("*").non_resource_urls(["/a"]).verbs([verb])).build();
        validate::create(&schema, Context { preset, ..Context::from(Version::V1) })
            .err()
            .map(|errors| errors.to_string())
    };
    for method in ["*", "get", "head", "post", "put", "patch", "delete", "options", "connect", "trace"] {
        assert_eq!(errors(method, Preset::Plain), None, "{method}");
    }
    let supported = r#""connect", "delete", "get", "head", "options", "patch", "post", "put", "trace""#;
    for verb in ["list", "POST", "proxy", ""] {
        let error = format!(
            "spec.rules[0].nonResourceRules[0].verbs: Unsupported value: [{verb:?}]: supported values: {supported}"
        );
        assert_eq!(errors(verb, Preset::Plain), Some(error), "{verb}");
    }
    assert!(errors("post", Preset::Kubernetes).is_some() && errors("list", Preset::Kubernetes).is_none());
    // Verbs of resources are what they are in Kubernetes.
    let schema = FlowSchema::builder("some").priority_level("some");
    let schema = schema.rule(|r| r.user("*").resources(["a"]).verbs(["post"])).build();
    assert!(validate::create(&schema, Context { preset: Preset::Plain, ..Context::from(Version::V1) }).is_err());
}
