//! What is told of fields that are unknown or sent twice (API-81, API-82, API-97).

use http::Method;
use serde_json::json;

use crate::ask::{JSON, SCHEMAS, ask, create, server};

/// A flow schema with problems, as in the tests of Kubernetes.
const BODY: &str = r#"{
    "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema", "metadata": {"name": "a"},
    "spec": {
        "unknown1": "x",
        "unknownDupe": "x", "unknownDupe": "y",
        "matchingPrecedence": 5, "matchingPrecedence": 6,
        "priorityLevelConfiguration": {"unknownNested": {"b": 1, "b": 2}, "name": "exempt", "name": "exempt"}
    }
}"#;
const PROBLEMS: [&str; 5] = [
    r#"unknown field "spec.unknown1""#,
    r#"unknown field "spec.unknownDupe""#,
    r#"duplicate field "spec.matchingPrecedence""#,
    r#"unknown field "spec.priorityLevelConfiguration.unknownNested""#,
    r#"duplicate field "spec.priorityLevelConfiguration.name""#,
];

#[tokio::test]
async fn api_82_problems_come_in_the_order_of_the_document_and_once() {
    let server = server().await;
    assert_eq!(create(&server, &json!({"name": "a"})).await.status, 201);
    let object = format!("{SCHEMAS}/a");
    for (method, path) in [(Method::POST, SCHEMAS), (Method::PUT, object.as_str())] {
        let strict = ask(&server, method, &format!("{path}?fieldValidation=Strict"), JSON, BODY).await;
        let message = format!(
            "FlowSchema in version \"v1\" cannot be handled as a FlowSchema: strict decoding error: {}",
            PROBLEMS.join(", ")
        );
        assert_eq!((strict.status, strict.message()), (400, message));
    }
    let warned = ask(&server, Method::PUT, &object, JSON, BODY).await;
    let warnings = PROBLEMS.map(|problem| format!("299 - \"{}\"", problem.replace('"', "\\\"")));
    assert_eq!((warned.status, warned.warnings()), (200, warnings.to_vec()));
}

#[tokio::test]
async fn bm_2_an_annotation_that_is_not_understood_is_stored_with_a_warning() {
    const LEVELS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations";
    const ANNOTATION: &str = "evenkeel.dev/max-long-running";
    let server = server().await;
    let level = |value: &str| {
        let level = json!({
            "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
            "kind": "PriorityLevelConfiguration",
            "metadata": {"name": "a", "annotations": {ANNOTATION: value}},
            "spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}},
        });
        level.to_string()
    };
    let warning = |value: &str| {
        format!(
            "299 - \"annotation {ANNOTATION}: invalid value \\\"{value}\\\": must be an integer from 0 to 4294967295; there is \
             no limit\""
        )
    };
    let object = format!("{LEVELS}/a");
    let patch = |value: &str| json!({"metadata": {"annotations": {ANNOTATION: value}}}).to_string();
    let created = ask(&server, Method::POST, LEVELS, JSON, level("many")).await;
    assert_eq!((created.status, created.warnings()), (201, vec![warning("many")]));
    assert_eq!(created.body()["metadata"]["annotations"][ANNOTATION], "many");
    let replaced = ask(&server, Method::PUT, &object, JSON, level("-1")).await;
    assert_eq!((replaced.status, replaced.warnings()), (200, vec![warning("-1")]));
    let patched = ask(&server, Method::PATCH, &object, "application/merge-patch+json", patch("1.5")).await;
    assert_eq!((patched.status, patched.warnings()), (200, vec![warning("1.5")]));
    let applied = format!("{object}?fieldManager=a&force=true");
    let applied = ask(&server, Method::PATCH, &applied, "application/apply-patch+yaml", level("no")).await;
    assert_eq!((applied.status, applied.warnings()), (200, vec![warning("no")]));
    let patched = ask(&server, Method::PATCH, &object, "application/merge-patch+json", patch("20")).await;
    assert_eq!((patched.status, patched.warnings()), (200, vec![]));
}
