//! Manifests: every problem at once, each with its file, line and column.

use evenkeel_api::decode::{Manifest, Strictness};
use evenkeel_api::{AnyObject, Kind, Version};

const LEVEL: &str = "\
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: tenants}
spec: {type: Limited, limited: {limitResponse: {type: Reject}}}
";

/// The problems of a text that is read strictly.
fn problems(text: &str) -> Vec<String> {
    let problems = Manifest::read("f.yaml", text.as_bytes(), Strictness::Strict).expect_err("problems");
    problems.to_string().lines().map(str::to_owned).collect()
}

fn read(text: &str) -> Manifest {
    Manifest::read("f.yaml", text.as_bytes(), Strictness::Strict).expect("a manifest")
}

#[test]
fn objects_come_in_the_order_of_the_file_with_their_defaults_in_the_hub_version() {
    let manifest = read(&format!(
        "{LEVEL}---\napiVersion: flowcontrol.apiserver.k8s.io/v1beta2\nkind: FlowSchema\nmetadata: {{name: s}}\n\
         spec: {{priorityLevelConfiguration: {{name: tenants}}}}\n"
    ));
    let found: Vec<_> =
        manifest.entries.iter().map(|entry| (entry.object.kind(), entry.version, entry.at.line)).collect();
    assert_eq!(found, [(Kind::PriorityLevelConfiguration, Version::V1, 1), (Kind::FlowSchema, Version::V1beta2, 6)]);
    let AnyObject::FlowSchema(schema) = &manifest.entries[1].object else { panic!("{manifest:?}") };
    assert_eq!(schema.spec.matching_precedence, 1000);
}

#[test]
fn problems_of_all_sorts_are_told_at_once_and_in_order() {
    let found = problems(
        "\
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata:
  name: batch
  labels: {enabled: yes}
spec:
  priority: 5
  matchingPrecedence: 500
  matchingPrecedence: 600
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: batch}
spec:
  type: Limited
  limited:
    lendablePercent: 150
    limitResponse: {type: Reject}
---
kind: FlowSchema
",
    );
    assert_eq!(
        found,
        [
            "f.yaml:5:21: FlowSchema \"batch\": metadata.labels.enabled: expected a text, found true (put it in quotes)",
            "f.yaml:7:3: FlowSchema \"batch\": spec.priority: unknown field",
            "f.yaml:9:3: spec.matchingPrecedence: the name \"matchingPrecedence\" occurs twice",
            "f.yaml:17:5: PriorityLevelConfiguration \"batch\": spec.limited.lendablePercent: Invalid value: 150: \
             must be between 0 and 100, inclusive",
            "f.yaml:20:1: apiVersion is missing: use flowcontrol.apiserver.k8s.io/v1",
        ]
    );
}

#[test]
fn what_is_dropped_leniently_is_told_as_a_warning() {
    let text = LEVEL.replace("limitResponse", "lendable: 5, limitResponse");
    assert_eq!(problems(&text).len(), 1);
    let manifest = Manifest::read("f.yaml", text.as_bytes(), Strictness::Lenient).expect("a manifest");
    assert_eq!(manifest.entries.len(), 1);
    let warnings: Vec<_> = manifest.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(warnings, ["f.yaml:4:33: PriorityLevelConfiguration \"tenants\": spec.limited.lendable: unknown field"]);
}

#[test]
fn lists_hold_objects_that_need_not_say_what_they_are() {
    let manifest = read(
        "\
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchemaList
items:
- metadata: {name: a}
  spec: {priorityLevelConfiguration: {name: l}}
- {metadata: {name: b}, spec: {priorityLevelConfiguration: {name: l}}}
",
    );
    assert_eq!(manifest.entries.iter().map(|entry| entry.object.name()).collect::<Vec<_>>(), ["a", "b"]);
    let found = problems("apiVersion: v1\nkind: List\nitems:\n- {metadata: {name: a}}\n- 5\n");
    assert_eq!(
        found,
        [
            "f.yaml:4:3: apiVersion is missing: use flowcontrol.apiserver.k8s.io/v1",
            "f.yaml:5:3: expected an object with apiVersion and kind",
        ]
    );
}

#[test]
fn json_is_read_as_json() {
    let manifest = read(
        r#"{"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema", "metadata": {"name": "a"},
            "spec": {"priorityLevelConfiguration": {"name": "l"}}}"#,
    );
    assert_eq!(manifest.entries[0].object.name(), "a");
    // In YAML this is five; JSON keeps numbers as they are written (API-18).
    let found = problems(
        r#"{"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema", "spec": {"matchingPrecedence": 5.0}}"#,
    );
    assert_eq!(
        found,
        ["f.yaml:1:104: FlowSchema \"\": spec.matchingPrecedence: expected a whole number of 32 bits, found 5.0"]
    );
}

#[test]
fn an_object_that_is_there_twice_is_a_problem() {
    assert_eq!(
        problems(&format!("{LEVEL}---\n{LEVEL}")),
        ["f.yaml:6:1: PriorityLevelConfiguration \"tenants\": is in this file twice, first in line 1"]
    );
}

#[test]
fn files_that_hold_something_else_are_refused_with_advice() {
    assert_eq!(
        problems("apiVersion: apps/v1\nkind: Deployment\n"),
        ["f.yaml:1:1: apiVersion \"apps/v1\" is none of flowcontrol.apiserver.k8s.io/v1 and its older versions \
          (v1, v1beta3, v1beta2, v1beta1)"]
    );
    assert_eq!(
        problems("apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: flowschema\n"),
        ["f.yaml:2:1: unknown kind \"flowschema\" of flowcontrol.apiserver.k8s.io: use FlowSchema or \
          PriorityLevelConfiguration"]
    );
    assert_eq!(problems("- a\n"), ["f.yaml:1:1: expected an object with apiVersion and kind"]);
    assert!(problems("a: b: c\n")[0].starts_with("f.yaml:1:5: "), "{:?}", problems("a: b: c\n"));
    assert!(read("").entries.is_empty());
}

#[test]
fn a_list_is_read_strictly_too() {
    let list = "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchemaList\n";
    assert_eq!(problems(&format!("{list}itmes: []\n")), ["f.yaml:3:1: itmes: unknown field of a list"]);
    let item = LEVEL.trim_end().replace('\n', "\n  ");
    assert_eq!(
        problems(&format!("{list}items:\n- {item}\n")),
        ["f.yaml:5:3: a PriorityLevelConfiguration in a list of another kind"]
    );
    assert_eq!(
        problems(&format!("{list}items:\n- {{metadata: {{name: a}}}}\n")),
        [
            "f.yaml:4:3: FlowSchema \"a\": items[0].spec.priorityLevelConfiguration.name: Required value: must reference \
          a priority level"
        ]
    );
}

#[test]
fn names_of_the_wrong_type_are_told_where_they_stand() {
    assert_eq!(problems("apiVersion: 1\nkind: FlowSchema\n"), ["f.yaml:1:13: apiVersion: expected a text"]);
}

#[test]
fn a_file_with_very_many_problems_is_read_in_time() {
    let mut text = "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchema\nmetadata: {name: a}\n".to_owned();
    text += "spec: {priorityLevelConfiguration: {name: l}, rules: [";
    text += &"{}, ".repeat(30_000);
    text += "]}\n";
    assert_eq!(problems(&text).len(), 1000);
}
