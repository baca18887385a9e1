//! What lists and watches may ask for, beside what was recorded.

use evenkeel::identify::authenticated;
use http::Method;
use http::header::{ACCEPT, HeaderMap, HeaderValue};
use serde_json::{Value, json};

use crate::ask::{SCHEMAS, ask_as, create, get, server};

/// The events of a watch that ends by itself after a second.
async fn events(server: &evenkeel_apiserver::ApiServer, query: &str) -> Vec<Value> {
    let watch =
        get(server, &format!("{SCHEMAS}?watch=1&timeoutSeconds=1&fieldSelector=metadata.name=exempt{query}")).await;
    let text = String::from_utf8(watch.bytes.to_vec()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn api_164_a_watch_from_now_that_wants_bookmarks_is_told_when_the_present_objects_end() {
    let server = server().await;
    for query in ["&allowWatchBookmarks=true", "&allowWatchBookmarks=true&resourceVersion=0"] {
        let events = events(&server, query).await;
        let kinds: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["ADDED", "BOOKMARK"], "{query}");
        let annotations = &events[1]["object"]["metadata"]["annotations"];
        assert_eq!(annotations, &json!({"k8s.io/initial-events-end": "true"}));
    }
    for query in ["", "&resourceVersion=0", "&allowWatchBookmarks=false"] {
        assert_eq!(events(&server, query).await.len(), 1, "{query}");
    }
}

#[tokio::test]
async fn api_165_a_watch_does_not_continue_a_list() {
    let server = server().await;
    let page = get(&server, &format!("{SCHEMAS}?limit=1")).await.body();
    let token = page["metadata"]["continue"].as_str().unwrap();
    for query in ["", "&resourceVersion=0", "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"] {
        let answer = get(&server, &format!("{SCHEMAS}?watch=1&continue={token}{query}")).await;
        let message = "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is \
                       forbidden when continue is provided";
        assert_eq!((answer.status, answer.message().as_str()), (422, message), "{query}");
    }
}

#[tokio::test]
async fn api_152_a_padded_token_is_not_valid() {
    let server = server().await;
    let page = get(&server, &format!("{SCHEMAS}?limit=1")).await.body();
    let token = page["metadata"]["continue"].as_str().unwrap();
    assert_eq!(get(&server, &format!("{SCHEMAS}?continue={token}")).await.status, 200);
    let padded = get(&server, &format!("{SCHEMAS}?continue={token}%3D")).await;
    assert_eq!(padded.status, 400);
    assert!(padded.message().starts_with("invalid continue token: continue key is not valid: "));
}

#[tokio::test]
async fn api_148_a_term_that_compares_nothing_with_nothing_selects_everything() {
    let server = server().await;
    let all = get(&server, SCHEMAS).await.body()["items"].as_array().unwrap().len();
    for selector in ["%3D", "%3D%3D", "!%3D", "%3D,metadata.namespace%3D"] {
        let answer = get(&server, &format!("{SCHEMAS}?fieldSelector={selector}")).await;
        assert_eq!((answer.status, answer.body()["items"].as_array().map(Vec::len)), (200, Some(all)), "{selector}");
    }
    let page = get(&server, &format!("{SCHEMAS}?fieldSelector==&limit=1")).await.body();
    assert!(page["metadata"]["remainingItemCount"].is_number(), "it is no selector: {page}");
    assert_eq!(get(&server, &format!("{SCHEMAS}?fieldSelector=%3Dx")).await.status, 400);
}

#[tokio::test]
async fn api_177_rows_are_of_the_version_of_their_table() {
    let server = server().await;
    assert_eq!(create(&server, &json!({"name": "a"})).await.status, 201);
    for version in ["v1", "v1beta1"] {
        let accept = format!("application/json;as=Table;v={version};g=meta.k8s.io");
        let headers: HeaderMap = [(ACCEPT, HeaderValue::from_str(&accept).unwrap())].into_iter().collect();
        let admin = authenticated("admin", ["system:masters"]);
        let table = ask_as(&server, admin, Method::GET, &format!("{SCHEMAS}/a"), headers, "").await.body();
        let expected = format!("meta.k8s.io/{version}");
        assert_eq!(
            (&table["apiVersion"], &table["rows"][0]["object"]["apiVersion"]),
            (&json!(expected), &json!(expected))
        );
    }
}

/// A server that does not divide lists into shards ignores the parameter; a client sees that by the missing `shardInfo`.
#[tokio::test]
async fn a_shard_selector_is_accepted_and_changes_nothing() {
    let server = server().await;
    let all = get(&server, SCHEMAS).await;
    let selector = "shardSelector=shardRange(object.metadata.uid,%270%27,%278%27)";
    for target in [format!("{SCHEMAS}?{selector}"), format!("{SCHEMAS}?shardSelector=nonsense")] {
        let sharded = get(&server, &target).await;
        assert_eq!((sharded.status, sharded.warnings()), (200, Vec::new()), "{target}");
        assert_eq!(sharded.body(), all.body(), "{target}");
        assert!(sharded.body()["metadata"].get("shardInfo").is_none());
    }
}
