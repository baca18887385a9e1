//! What patches are refused for, where no recorded conversation shows it, and that none can ask for too much.

use evenkeel_api::meta::Time;
use evenkeel_api::v1::{FlowSchema, FlowSchemaSpec};
use evenkeel_api::{Kind, Version};
use evenkeel_apiserver::Failure;
use evenkeel_apiserver::managed_fields::{ApplyBody, ApplyRequest, OnConflict, WriteTarget, Writer, apply, differs};
use evenkeel_apiserver::patch::{FieldValidation, json_patch, merge_patch, strategic_merge_patch};
use serde_json::{Value, json};

fn document() -> Value {
    let mut schema = FlowSchema::default();
    "batch".clone_into(&mut schema.metadata.name);
    schema.metadata.labels.insert("a".to_owned(), "1".to_owned());
    schema.metadata.finalizers = vec!["example.com/a".to_owned(), "example.com/b".to_owned()];
    serde_json::to_value(schema).unwrap()
}

fn json_error(patch: &Value) -> Failure {
    json_patch(document(), patch.to_string().as_bytes()).unwrap_err()
}

fn strategic(patch: &Value) -> Result<Value, Failure> {
    strategic_merge_patch(Kind::FlowSchema, Version::V1, document(), patch.to_string().as_bytes())
        .map(|patched| patched.value)
}

#[test]
fn api_108_a_json_patch_has_at_most_10000_operations() {
    let test = json!({"op": "test", "path": "/metadata/name", "value": "batch"});
    assert!(json_patch(document(), Value::from(vec![test.clone(); 10_000]).to_string().as_bytes()).is_ok());
    let failure = json_error(&Value::from(vec![test; 10_001]));
    assert_eq!(failure.status, 413);
    let message = "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001";
    assert_eq!(failure.message, message);
}

#[test]
fn a_json_patch_cannot_grow_without_a_bound() {
    let mut doubling = vec![json!({"op": "add", "path": "/x", "value": {"text": "y".repeat(1000)}})];
    doubling.extend((0..40).map(|step| json!({"op": "copy", "from": "/x", "path": format!("/x/{step}")})));
    assert_eq!(json_error(&doubling.into()).status, 413);
    let mut nesting = vec![json!({"op": "add", "path": "/x", "value": {}})];
    nesting.extend((0..200).map(|_| json!({"op": "copy", "from": "/x", "path": "/x/x"})));
    assert_eq!(json_error(&nesting.into()).status, 413);
    let mut moving = vec![json!({"op": "add", "path": "/x", "value": vec![0; 5000]})];
    moving.extend((0..5000).map(|_| json!({"op": "add", "path": "/x/0", "value": 0})));
    assert_eq!(json_error(&moving.into()).status, 413);
}

/// How many values are in a document.
fn values(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(values).sum(),
        Value::Object(members) => members.values().map(values).sum(),
        _ => 0,
    }
}

#[test]
fn a_short_json_patch_makes_no_large_document() {
    // Each copy doubles the object. The last of these patches has 3 kB.
    for doublings in 0..40 {
        let mut patch = vec![json!({"op": "add", "path": "/x", "value": {}})];
        patch.extend((0..doublings).map(|step| json!({"op": "copy", "from": "/x", "path": format!("/x/{step}")})));
        match json_patch(document(), Value::from(patch).to_string().as_bytes()) {
            Ok(patched) => assert!(values(&patched.value) < 100_000, "{doublings} doublings"),
            Err(failure) => assert_eq!((failure.status.as_u16(), doublings > 10), (413, true)),
        }
    }
    // What is no more than a request may have can be copied.
    let text = json!({"op": "add", "path": "/x", "value": "y".repeat(1_500_000)});
    let copy = json!({"op": "copy", "from": "/x", "path": "/z"});
    assert!(json_patch(document(), json!([text, copy]).to_string().as_bytes()).is_ok());
    assert_eq!(json_error(&json!([text, copy, copy, copy])).status, 413);
}

#[test]
fn api_117_operations_of_the_wrong_type_and_unknown_members() {
    let failure = json_error(&json!([{"op": 1}]));
    let message =
        "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string";
    assert_eq!((failure.status.as_u16(), failure.message.as_str()), (400, message));
    let patch = br#"[{"op": "test", "path": "/metadata/name", "value": "batch", "note": 1}]"#;
    let patched = json_patch(document(), patch).unwrap();
    let warnings = patched.decode::<FlowSchemaSpec>(Version::V1, FieldValidation::Warn).unwrap().warnings;
    assert_eq!(warnings, [r#"json patch unknown field "[0].note""#]);
}

#[test]
fn api_116_another_kind_does_not_decode() {
    let patched = merge_patch(document(), br#"{"kind": "Pod"}"#).unwrap();
    let failure = patched.decode::<FlowSchemaSpec>(Version::V1, FieldValidation::Warn).unwrap_err();
    assert_eq!(failure.status, 422);
    let problem = "no kind \"Pod\" is registered for version \"flowcontrol.apiserver.k8s.io/v1\" in scheme ";
    assert!(failure.message.contains(problem), "{failure}");
}

#[test]
fn api_121_finalizers_are_deleted_and_ordered() {
    let finalizers = |patch: Value| strategic(&json!({"metadata": patch})).unwrap()["metadata"]["finalizers"].clone();
    let order = json!({"$setElementOrder/finalizers": ["example.com/b", "example.com/a"]});
    assert_eq!(finalizers(order), json!(["example.com/b", "example.com/a"]));
    let both = json!({"$deleteFromPrimitiveList/finalizers": ["example.com/a"], "finalizers": ["example.com/c"]});
    assert_eq!(finalizers(both), json!(["example.com/c", "example.com/b"]));
}

#[test]
fn api_121_malformed_directives_are_refused() {
    for (patch, status, message) in [
        (json!({"spec": {"$retainKeys": 1}}), 400, "invalid patch format of retainKeys"),
        (
            json!({"spec": {"$retainKeys": ["rules"], "matchingPrecedence": 1}}),
            400,
            "invalid patch format of retainKeys",
        ),
        (
            json!({"metadata": {"$deleteFromPrimitiveList/finalizers": "x"}}),
            400,
            "invalid patch format of primitive list",
        ),
        (
            json!({"metadata": {"$setElementOrder/finalizers": ["x"], "finalizers": ["y"]}}),
            400,
            "invalid patch format of setElementOrder list",
        ),
        (
            json!({"spec": {"$patch": "sneeze"}}),
            400,
            "unknown patch type \"sneeze\" in map map[]: use \"replace\" or \"delete\"",
        ),
    ] {
        let failure = strategic(&patch).unwrap_err();
        assert_eq!((failure.status.as_u16(), failure.message.as_str()), (status, message), "{patch}");
    }
}

#[test]
fn api_125_everything_that_does_not_fit_is_told() {
    let body = json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": "FlowSchema",
        "metadata": {"name": "batch", "finalizers": ["x", "x"], "ownerReferences": [{}]},
        "spec": {"matchingPrecedence": 1.5, "rules": [{"subjects": 1}]},
    });
    let failure = ApplyBody::parse(body.to_string().as_bytes(), Kind::FlowSchema, Version::V1).unwrap_err();
    let expected = "failed to create typed patch object (/batch; flowcontrol.apiserver.k8s.io/v1, Kind=FlowSchema): \
        errors:\n  \
        .metadata.finalizers: duplicate entries for key [=\"x\"]\n  \
        .metadata.ownerReferences: element 0: associative list with keys has an element that omits all key fields \
        [\"uid\"] (and doesn't have default values for any key fields)\n  \
        .spec.matchingPrecedence: expected numeric (int or float), got &{1.5}\n  \
        .spec.rules[0].subjects: expected list, got &{1}";
    assert_eq!(failure.message, expected);
}

#[test]
fn api_81_names_that_occur_twice_in_an_applied_object() {
    let text = "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchema\nmetadata:\n  name: a\n  name: b\n";
    let body = ApplyBody::parse(text.as_bytes(), Kind::FlowSchema, Version::V1).unwrap();
    let warning = "line 5: key \"name\" already set in map";
    assert_eq!(body.duplicates(FieldValidation::Warn).unwrap(), [warning]);
    assert!(body.duplicates(FieldValidation::Ignore).unwrap().is_empty());
    let failure = body.duplicates(FieldValidation::Strict).unwrap_err();
    let message = "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  ";
    assert_eq!(failure.message, format!("{message}{warning}"));
}

#[test]
fn long_lists_in_no_order_take_no_longer_than_sorting_them() {
    // Work that grows with the square of the length would show in the time that this takes.
    let names: Vec<String> = (0..20_000_u32).map(|number| format!("example.com/{}", number.reverse_bits())).collect();
    let body = json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": "FlowSchema",
        "metadata": {"name": "batch", "finalizers": names},
    });
    let body = ApplyBody::parse(body.to_string().as_bytes(), Kind::FlowSchema, Version::V1).unwrap();
    let writer = Writer { manager: "m", version: Version::V1, endpoint: WriteTarget::Object };
    let request = ApplyRequest { body: &body, name: "batch", on_conflict: OnConflict::Refuse, writer };
    let now = Time::from_unix_seconds(1_700_000_000);
    let schema = apply::<FlowSchemaSpec>(None, request, now).unwrap();
    let mut again = apply(Some(&schema), request, now).unwrap();
    assert!(!differs(&schema, &mut again));
    assert_eq!(again.metadata.finalizers.len(), names.len());

    let document = serde_json::to_value(&schema).unwrap();
    let patch = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": names}}).to_string();
    let patched = strategic_merge_patch(Kind::FlowSchema, Version::V1, document, patch.as_bytes()).unwrap();
    assert_eq!(patched.value["metadata"]["finalizers"], json!([]));
}
