//! Objects that are too large only because of their `managedFields`.

use http::Method;
use serde_json::{Map, Value, json};

use crate::ask::{JSON, MERGE_PATCH, Response, SCHEMAS, ask, create, get, schema, server};

/// 12,000 labels, which make an object of 840 KB.
fn metadata() -> Value {
    let labels: Map<_, _> = (0..12_000).map(|n| (format!("example.com/{n:040}"), "x".repeat(12).into())).collect();
    json!({"name": "large", "labels": labels})
}

fn managers(answer: &Response) -> usize {
    answer.body()["metadata"]["managedFields"].as_array().map_or(0, Vec::len)
}

#[tokio::test]
async fn objects_are_stored_without_managed_fields_that_make_them_too_large() {
    let server = server().await;
    let object = format!("{SCHEMAS}/large");
    let body = schema(&metadata()).to_string();
    assert!((800_000..1_000_000).contains(&body.len()), "{}", body.len());
    let created = create(&server, &metadata()).await;
    assert_eq!((created.status, managers(&created)), (201, 0), "{}", created.message());
    assert_eq!(get(&server, &object).await.body()["metadata"]["labels"].as_object().unwrap().len(), 12_000);

    let replaced = ask(&server, Method::PUT, &object, JSON, body).await;
    assert_eq!((replaced.status, managers(&replaced)), (200, 0));
    let version = |answer: &Response| answer.body()["metadata"]["resourceVersion"].clone();
    assert_eq!(version(&replaced), version(&created), "nothing has changed");

    let patched = ask(&server, Method::PATCH, &object, MERGE_PATCH, r#"{"spec":{"matchingPrecedence":7}}"#).await;
    assert_eq!((patched.status, managers(&patched)), (200, 0));
    assert_eq!(patched.body()["spec"]["matchingPrecedence"], 7);
}

#[tokio::test]
async fn what_is_too_large_by_itself_is_refused_and_so_is_an_apply() {
    let server = server().await;
    let mut large = metadata();
    large["annotations"] = json!({"a": "x".repeat(250_000)});
    assert_eq!(create(&server, &large).await.status, 400);
    // What an apply owns is in the managed fields.
    let (target, apply) = (format!("{SCHEMAS}/large?fieldManager=me"), "application/apply-patch+yaml");
    let applied = ask(&server, Method::PATCH, &target, apply, schema(&metadata()).to_string()).await;
    assert_eq!(applied.status, 400, "{applied:?}");
}
