//! A reflector of kube-rs follows random changes through restarts of the server and cut connections, and ends equal to a
//! list.

use std::collections::BTreeMap;

use k8s_openapi::api::flowcontrol::v1::FlowSchema;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::reflector::{self, Store};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_stream::StreamExt;

use super::child::PATIENCE;
use super::cut::Cuttable;
use super::folder::folder;
use super::kube_rs::schema;
use super::served::Served;

/// Objects that are changed; the bootstrap objects are there too.
const NAMES: usize = 30;
const ORDINARY: usize = 600;
const LONG: usize = 10_000;
/// The reflector's connections are cut after one in so many changes.
const CHANGES_PER_CUT: usize = 100;

#[tokio::test]
async fn a_reflector_that_lists_follows_through_restarts_and_cuts() {
    follow(watcher::Config::default(), ORDINARY).await;
}

#[tokio::test]
async fn a_reflector_that_streams_its_list_follows_through_restarts_and_cuts() {
    follow(watcher::Config::default().streaming_lists(), ORDINARY).await;
}

#[tokio::test]
#[ignore = "takes about a minute; run it with --ignored"]
async fn a_reflector_follows_ten_thousand_changes_through_restarts_and_cuts() {
    follow(watcher::Config::default(), LONG).await;
}

async fn follow(config: watcher::Config, changes: usize) {
    let folder = folder();
    let mut server = Served::api_apart(folder.path());
    let way = Cuttable::start(server.address).await;
    let (store, mut events) = reflect(Api::all(server.admin_by(way.address).await), config);
    let mut random = fastrand::Rng::with_seed(7);
    for part in 0..3 {
        if part > 0 {
            server = server.restart();
        }
        // Connections do not outlive a restart; what reflects must cope by itself.
        let api = Api::all(server.admin().await);
        for _ in 0..changes / 3 {
            change(&api, &mut random).await;
            if random.usize(..CHANGES_PER_CUT) == 0 {
                way.cut();
            }
        }
    }
    let api = Api::all(server.admin().await);
    // An object's status may still be on its way, and is an event of its own then.
    while reflected(&store) != listed(&api).await {
        timeout(PATIENCE, events.changed()).await.expect("the reflector follows").unwrap();
    }
}

/// Keeps a store equal to what the server has, and counts what it is told.
fn reflect(api: Api<FlowSchema>, config: watcher::Config) -> (Store<FlowSchema>, watch::Receiver<u64>) {
    let (store, writer) = reflector::store();
    let (told, events) = watch::channel(0);
    tokio::spawn(async move {
        let stream = watcher(api, config).default_backoff().reflect(writer);
        let mut stream = std::pin::pin!(stream);
        while stream.next().await.is_some() {
            told.send_modify(|count| *count += 1);
        }
    });
    (store, events)
}

/// Creates, patches or deletes some object. That it is there already, or not there, is as good.
async fn change(api: &Api<FlowSchema>, random: &mut fastrand::Rng) {
    let name = format!("object-{}", random.usize(..NAMES));
    let precedence = random.u32(2..=9_000);
    let outcome = match random.u8(..4) {
        0 => api.create(&PostParams::default(), &schema(&name, precedence)).await.map(drop),
        1 => api.delete(&name, &DeleteParams::default()).await.map(drop),
        _ => {
            let merge = Patch::Merge(json!({"spec": {"matchingPrecedence": precedence}}));
            api.patch(&name, &PatchParams::default(), &merge).await.map(drop)
        }
    };
    match outcome {
        Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => {}
        other => other.unwrap(),
    }
}

fn reflected(store: &Store<FlowSchema>) -> BTreeMap<String, Value> {
    store.state().iter().map(|object| (object.name_any(), serde_json::to_value(&**object).unwrap())).collect()
}

async fn listed(api: &Api<FlowSchema>) -> BTreeMap<String, Value> {
    let list = api.list(&ListParams::default()).await.unwrap();
    list.items.iter().map(|object| (object.name_any(), serde_json::to_value(object).unwrap())).collect()
}
