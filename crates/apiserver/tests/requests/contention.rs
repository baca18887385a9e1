//! Many writers of one object: all of them succeed, and none waits for ever.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use evenkeel_api::Kind;
use evenkeel_api::decode::{Manifest, Strictness};
use evenkeel_apiserver::ApiServer;
use evenkeel_store::{
    At, Error, Freshness, HistoryLimits, List, ListOptions, Location, Object, Store, StoreFuture, Watch, WatchOptions,
};
use http::Method;
use serde_json::json;
use tokio::task::JoinSet;

use crate::ask::{MERGE_PATCH, SCHEMAS, ask, create, get, memory, schema, server_over};
use crate::etcd_server::EtcdServer;
use crate::folder::folder;

const WRITERS: usize = 100;
const APPLY: &str = "application/apply-patch+yaml";

/// Patches one object through these servers at the same time, each patch with a label of its own. All must succeed.
async fn patch_at_once(servers: &[Arc<ApiServer>]) {
    assert_eq!(create(&servers[0], &json!({"name": "busy"})).await.status, 201);
    let mut patches = JoinSet::new();
    for writer in 0..WRITERS {
        let server = Arc::clone(&servers[writer % servers.len()]);
        patches.spawn(async move {
            let body = json!({"metadata": {"labels": {format!("writer-{writer}"): "x"}}}).to_string();
            ask(&server, Method::PATCH, &format!("{SCHEMAS}/busy"), MERGE_PATCH, body).await.status
        });
    }
    let statuses = patches.join_all().await;
    let failed: Vec<_> = statuses.iter().filter(|status| **status != 200).collect();
    assert!(failed.is_empty(), "{failed:?}");
    let labels = get(&servers[0], &format!("{SCHEMAS}/busy")).await.body()["metadata"]["labels"].clone();
    assert_eq!(labels.as_object().unwrap().len(), WRITERS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_hundred_patches_at_once_all_succeed_in_a_file() {
    let folder = folder();
    let store = Location::File(folder.path().join("store.redb")).open(HistoryLimits::default()).await.unwrap();
    patch_at_once(&[Arc::new(server_over(store).await)]).await;
}

/// Two instances, whose write locks are separate.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_hundred_patches_at_once_all_succeed_on_etcd() {
    if Command::new("etcd").arg("--version").output().is_err() {
        return evenkeel_missing_tool::skip("etcd is not installed");
    }
    let etcd = EtcdServer::start().await;
    let mut servers = Vec::new();
    for _ in 0..2 {
        let location: Location = format!("etcd://{}", etcd.endpoint()).parse().unwrap();
        servers.push(Arc::new(server_over(location.open(HistoryLimits::default()).await.unwrap()).await));
    }
    patch_at_once(&servers).await;
}

/// A store that counts reads, and in which another writer is always faster to create one object and to delete it again.
#[derive(Debug)]
struct Contended {
    store: Arc<dyn Store>,
    reads: AtomicUsize,
}

/// The name of the object that is created and deleted all the time.
const FLICKERING: &str = "flickering";

impl Store for Contended {
    fn get<'a>(&'a self, kind: Kind, name: &'a str, at: At) -> StoreFuture<'a, Option<Arc<Object>>> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.store.get(kind, name, at)
    }

    fn list(&self, kind: Kind, options: ListOptions) -> StoreFuture<'_, List> {
        self.store.list(kind, options)
    }

    fn create<'a>(&'a self, kind: Kind, name: &'a str, payload: Bytes) -> StoreFuture<'a, Arc<Object>> {
        if name == FLICKERING {
            let current = Arc::new(Object { kind, name: name.into(), revision: 1, create_revision: 1, payload });
            return Box::pin(async { Err(Error::AlreadyExists { current }) });
        }
        self.store.create(kind, name, payload)
    }

    fn update<'a>(&'a self, kind: Kind, name: &'a str, expected: u64, payload: Bytes) -> StoreFuture<'a, Arc<Object>> {
        self.store.update(kind, name, expected, payload)
    }

    fn delete<'a>(&'a self, kind: Kind, name: &'a str, expected: u64) -> StoreFuture<'a, u64> {
        self.store.delete(kind, name, expected)
    }

    fn watch(&self, options: WatchOptions) -> StoreFuture<'_, Watch> {
        self.store.watch(options)
    }

    fn compact(&self, revision: u64) -> StoreFuture<'_, ()> {
        self.store.compact(revision)
    }

    fn revision(&self) -> StoreFuture<'_, u64> {
        self.store.revision()
    }

    fn freshness(&self) -> Freshness {
        self.store.freshness()
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        self.store.close()
    }
}

#[tokio::test]
async fn an_apply_reads_the_object_once() {
    let store = Arc::new(Contended { store: memory(), reads: AtomicUsize::new(0) });
    let server = server_over(Arc::clone(&store) as _).await;
    for status in [201, 200] {
        store.reads.store(0, Ordering::Relaxed);
        let body = schema(&json!({"name": "once", "labels": {"status": status.to_string()}})).to_string();
        let applied = ask(&server, Method::PATCH, &format!("{SCHEMAS}/once?fieldManager=me"), APPLY, body).await;
        assert_eq!((applied.status, store.reads.load(Ordering::Relaxed)), (status, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn an_apply_that_never_gets_through_ends_with_the_time_of_its_request() {
    let store = Arc::new(Contended { store: memory(), reads: AtomicUsize::new(0) });
    let server = server_over(Arc::clone(&store) as _).await;
    let started_at = tokio::time::Instant::now();
    let body = schema(&json!({"name": FLICKERING})).to_string();
    let target = format!("{SCHEMAS}/{FLICKERING}?fieldManager=me&timeout=5s");
    let applied = ask(&server, Method::PATCH, &target, APPLY, body).await;
    assert_eq!((applied.status, started_at.elapsed().as_secs()), (504, 5), "{applied:?}");
    // The server itself gives up after a minute.
    let manifest = schema(&json!({"name": FLICKERING})).to_string();
    let manifest = Manifest::read("manifest", manifest.as_bytes(), Strictness::Strict).unwrap();
    let failure = server.apply(&manifest.entries[0], "me").await.unwrap_err();
    assert_eq!(failure.status, 409);
}
