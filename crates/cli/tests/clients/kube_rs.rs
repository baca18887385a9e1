//! kube-rs with the types of k8s-openapi.

use std::pin::pin;

use k8s_openapi::api::flowcontrol::v1::{FlowSchema, PriorityLevelConfiguration};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;
use tokio_stream::StreamExt;

use super::folder::folder;
use super::served::Served;

/// A flow schema as its JSON.
pub(super) fn schema(name: &str, precedence: u32) -> FlowSchema {
    let rule = json!({
        "subjects": [{"kind": "User", "user": {"name": "alice"}}],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["/reports/*"]}],
    });
    let level = json!({"name": "workload-low"});
    let spec = json!({"priorityLevelConfiguration": level, "matchingPrecedence": precedence, "rules": [rule]});
    serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap()
}

fn precedence(schema: &FlowSchema) -> Option<i32> {
    schema.spec.as_ref().and_then(|spec| spec.matching_precedence)
}

#[tokio::test]
async fn the_typed_api_reads_and_writes() {
    let folder = folder();
    let server = Served::api(folder.path(), &[]);
    let client = server.admin().await;
    assert!(client.apiserver_version().await.unwrap().git_version.starts_with('v'));
    let levels: Api<PriorityLevelConfiguration> = Api::all(client.clone());
    assert_eq!(levels.list(&ListParams::default()).await.unwrap().items.len(), 8);
    let api: Api<FlowSchema> = Api::all(client);
    let created = api.create(&PostParams::default(), &schema("typed", 600)).await.unwrap();
    assert!(created.uid().is_some() && created.creation_timestamp().is_some());
    let merge = Patch::Merge(json!({"metadata": {"labels": {"team": "reports"}}, "spec": {"matchingPrecedence": 601}}));
    let patched = api.patch("typed", &PatchParams::default(), &merge).await.unwrap();
    assert_eq!(precedence(&patched), Some(601));
    let listed = api.list(&ListParams::default().labels("team=reports").limit(1)).await.unwrap();
    assert_eq!(listed.items.len(), 1);
    let stale = api.replace("typed", &PostParams::default(), &created).await.unwrap_err();
    assert!(matches!(&stale, kube::Error::Api(status) if status.code == 409), "{stale}");
    api.delete("typed", &DeleteParams::default()).await.unwrap();
    assert!(api.get_opt("typed").await.unwrap().is_none());
}

#[tokio::test]
async fn server_side_apply_owns_what_it_says() {
    let folder = folder();
    let server = Served::api(folder.path(), &[]);
    let api: Api<FlowSchema> = Api::all(server.admin().await);
    let apply = |precedence: u32| {
        let mut object = serde_json::to_value(schema("applied", precedence)).unwrap();
        object["apiVersion"] = json!("flowcontrol.apiserver.k8s.io/v1");
        object["kind"] = json!("FlowSchema");
        Patch::Apply(object)
    };
    let one = PatchParams::apply("one");
    let first = api.patch("applied", &one, &apply(600)).await.unwrap();
    assert_eq!(first.managed_fields()[0].manager.as_deref(), Some("one"));
    let again = api.patch("applied", &one, &apply(600)).await.unwrap();
    assert_eq!(first.metadata.generation, again.metadata.generation);
    let other = PatchParams::apply("other");
    let conflict = api.patch("applied", &other, &apply(601)).await.unwrap_err();
    assert!(matches!(&conflict, kube::Error::Api(status) if status.code == 409), "{conflict}");
    let forced = api.patch("applied", &other.force(), &apply(601)).await.unwrap();
    assert_eq!(precedence(&forced), Some(601));
}

#[tokio::test]
async fn a_watch_tells_of_a_change_after_the_version_it_starts_from() {
    let folder = folder();
    let server = Served::api(folder.path(), &["--no-status-controller"]);
    let api: Api<FlowSchema> = Api::all(server.admin().await);
    let version = api.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    api.create(&PostParams::default(), &schema("watched", 600)).await.unwrap();
    api.delete("watched", &DeleteParams::default()).await.unwrap();
    let only = WatchParams::default().fields("metadata.name=watched");
    let mut watch = pin!(api.watch(&only, &version).await.unwrap());
    let added = watch.next().await.unwrap().unwrap();
    assert!(matches!(&added, WatchEvent::Added(object) if object.name_any() == "watched"), "{added:?}");
    let deleted = watch.next().await.unwrap().unwrap();
    assert!(matches!(&deleted, WatchEvent::Deleted(object) if object.name_any() == "watched"), "{deleted:?}");
}
