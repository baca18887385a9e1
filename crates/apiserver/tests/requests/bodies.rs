//! Bodies that are refused, and how, beside what was recorded.

use http::Method;
use serde_json::json;

use crate::ask::{JSON, SCHEMAS, ask, create, schema, server};

const JSON_PATCH: &str = "application/json-patch+json";

#[tokio::test]
async fn api_88_the_parameters_of_a_media_type_must_be_well_formed() {
    let server = server().await;
    for (content_type, status) in [
        ("application/json", 201),
        ("application/json;", 201),
        ("application/json; charset=utf-8", 201),
        ("application/json; charset=\"utf-8\" ; a=b", 201),
        ("application/json;bad", 415),
        ("application/json;a=", 415),
        ("application/json;=b", 415),
        ("application/json;a=b;a=c", 415),
        ("application/json;a=\"b", 415),
        ("application/json;a=b c", 415),
        (";", 415),
    ] {
        let body = schema(&json!({"generateName": "a-"})).to_string();
        let answer = ask(&server, Method::POST, SCHEMAS, content_type, body).await;
        assert_eq!(answer.status, status, "{content_type}: {}", answer.message());
    }
}

#[tokio::test]
async fn api_105_an_object_that_a_patch_empties_has_no_name() {
    let server = server().await;
    assert_eq!(create(&server, &json!({"name": "a"})).await.status, 201);
    let patch = json!([{"op": "replace", "path": "", "value": {}}]).to_string();
    let answer = ask(&server, Method::PATCH, &format!("{SCHEMAS}/a"), JSON_PATCH, patch).await;
    let message = "the name of the object (a based on URL) was undeterminable: name must be provided";
    assert_eq!((answer.status, answer.message().as_str()), (400, message));
}

#[tokio::test]
async fn api_52_empty_rules_are_shown_as_they_were_sent() {
    let server = server().await;
    let path = format!("{SCHEMAS}/exempt");
    let mut exempt = json!({
        "metadata": {"name": "exempt"},
        "spec": {"priorityLevelConfiguration": {"name": "exempt"}, "matchingPrecedence": 1},
    });
    let absent = ask(&server, Method::PUT, &path, JSON, exempt.to_string()).await;
    assert!(absent.status == 422 && absent.message().contains("\"Rules\":null}"), "{}", absent.message());
    exempt["spec"]["rules"] = json!([]);
    let empty = ask(&server, Method::PUT, &path, JSON, exempt.to_string()).await;
    assert!(empty.status == 422 && empty.message().contains("\"Rules\":[]}"), "{}", empty.message());
    let merge = |value: &str| format!(r#"{{"spec":{{"rules":{value}}}}}"#);
    for (rules, shown) in [("null", "\"Rules\":null}"), ("[]", "\"Rules\":[]}")] {
        let answer = ask(&server, Method::PATCH, &path, crate::ask::MERGE_PATCH, merge(rules)).await;
        assert!(answer.status == 422 && answer.message().contains(shown), "{}", answer.message());
    }
}

#[tokio::test]
async fn api_33_causes_about_finalizers_come_in_the_order_of_the_reference() {
    let server = server().await;
    let answer =
        create(&server, &json!({"name": "a", "finalizers": ["a b", "plain", "orphan", "foregroundDeletion"]})).await;
    let causes = answer.body()["details"]["causes"].as_array().unwrap().clone();
    let fields: Vec<_> = causes.iter().map(|cause| cause["field"].as_str().unwrap()).collect();
    let expected = ["metadata.finalizers", "metadata.finalizers", "metadata.finalizers[0]", "metadata.finalizers[1]"];
    assert_eq!(fields, expected);
}
