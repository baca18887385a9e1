//! An etcd that is restored from a backup while the store is open: revisions are used a second time.

use evenkeel_store::{At, Error, EtcdConfig, EtcdStore, ListOptions, Store, WatchOptions};

use crate::etcd_server::EtcdServer;
use crate::samples::{SCHEMA, names, text};
use crate::until::{soon, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_written_after_the_backup_is_forgotten() {
    let mut server = EtcdServer::start().await;
    let store = EtcdStore::open(&EtcdConfig::new([server.endpoint()])).await.unwrap();
    let kept = store.create(SCHEMA, "kept", text("kept")).await.unwrap();
    let backup = server.back_up().await;
    let mut lost = Vec::new();
    for name in ["a", "b", "c"] {
        lost.push(store.create(SCHEMA, name, text(name)).await.unwrap());
    }
    let mut watch = store.watch(WatchOptions::after(kept.revision)).await.unwrap();
    server.restore(&backup).await;
    until("the state of the backup", || async { (store.freshness().revision == kept.revision).then_some(()) }).await;
    soon("the end of the watch", async { while watch.next().await.is_ok() {} }).await;
    assert!(matches!(watch.next().await, Err(Error::TooOld { .. })));

    let created = store.create(SCHEMA, "x", text("x")).await.unwrap();
    assert_eq!(created.revision, lost[0].revision, "revisions are used again");
    until("the write", || async { (store.freshness().revision >= created.revision).then_some(()) }).await;
    // Nothing waits for the writes that are gone: what is at hand is served, without asking an etcd that is not there.
    server.kill();
    assert_eq!(store.get(SCHEMA, "x", At::Cached).await.unwrap(), Some(created));
    let now = store.list(SCHEMA, ListOptions::default()).await.unwrap();
    assert_eq!(names(&now.items), ["kept", "x"]);
}
