//! etcd is compacted while it cannot be reached: what happened in the meantime can no longer be told one by one.

use std::sync::Arc;

use evenkeel_store::{At, Change, Error, EtcdStore, ListOptions, Object, Store, Watch, WatchOptions};

use crate::etcd_server::EtcdServer;
use crate::patient::patient;
use crate::proxy::Proxy;
use crate::samples::{LEVEL, SCHEMA, names, text};
use crate::until::{soon, until};

/// One store that can be cut off, and one that cannot.
struct Two {
    _server: EtcdServer,
    proxy: Proxy,
    near: EtcdStore,
    far: EtcdStore,
}

async fn two() -> Two {
    let server = EtcdServer::start().await;
    let proxy = Proxy::start(server.endpoint()).await;
    let near = EtcdStore::open(&patient([server.endpoint()])).await.unwrap();
    let far = EtcdStore::open(&patient([proxy.endpoint()])).await.unwrap();
    Two { _server: server, proxy, near, far }
}

async fn create(store: &EtcdStore, name: &str) -> Arc<Object> {
    store.create(SCHEMA, name, text(name)).await.unwrap()
}

/// Waits until a store knows a revision, by its cache.
async fn reached(store: &EtcdStore, revision: u64) {
    until("the cache", || async { (store.freshness().revision >= revision).then_some(()) }).await;
}

async fn next(watch: &mut Watch) -> Arc<evenkeel_store::Event> {
    soon("an event", watch.next()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_goes_on_after_a_cut() {
    let Two { proxy, near, far, _server } = two().await;
    let first = create(&near, "a").await;
    reached(&far, first.revision).await;
    let mut watch = far.watch(WatchOptions::after(first.revision)).await.unwrap();
    proxy.cut();
    until("the cut", || async { far.freshness().disconnected_since }).await;
    let mut written = Vec::new();
    for number in 0..50 {
        written.push(create(&near, &format!("b{number}")).await);
    }
    // What is at hand is still served, and says how old it is.
    let list = far.list(SCHEMA, ListOptions::default()).await.unwrap();
    assert_eq!((list.revision, names(&list.items)), (first.revision, vec!["a"]));
    proxy.heal();
    for object in written {
        let event = next(&mut watch).await;
        assert_eq!((event.revision, event.object()), (object.revision, Some(&object)));
    }
    until("the connection", || async { far.freshness().disconnected_since.is_none().then_some(()) }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_happened_in_a_gap_is_told_by_what_it_came_to() {
    let Two { proxy, near, far, _server } = two().await;
    let kept = create(&near, "kept").await;
    let changed = create(&near, "changed").await;
    let removed = create(&near, "removed").await;
    let renewed = create(&near, "renewed").await;
    let level = near.create(LEVEL, "level", text("one")).await.unwrap();
    let known = level.revision;
    reached(&far, known).await;
    let mut watch = far.watch(WatchOptions::after(known)).await.unwrap();
    let mut levels = far.watch(WatchOptions::of(LEVEL, known)).await.unwrap();
    proxy.cut();
    until("the cut", || async { far.freshness().disconnected_since }).await;

    let once = near.update(SCHEMA, "changed", changed.revision, text("once")).await.unwrap();
    let twice = near.update(SCHEMA, "changed", once.revision, text("twice")).await.unwrap();
    near.delete(SCHEMA, "removed", removed.revision).await.unwrap();
    near.delete(SCHEMA, "renewed", renewed.revision).await.unwrap();
    let new = create(&near, "renewed").await;
    let gone = create(&near, "came and went").await;
    near.delete(SCHEMA, "came and went", gone.revision).await.unwrap();
    let level_changed = near.update(LEVEL, "level", level.revision, text("two")).await.unwrap();
    let newest = create(&near, "new").await;
    near.compact(newest.revision).await.unwrap();
    proxy.heal();

    let updated = next(&mut watch).await;
    assert_eq!(updated.change, Change::Updated { object: twice.clone(), previous: changed.clone() });
    assert_eq!(updated.revision, twice.revision);
    let deleted = next(&mut watch).await;
    assert_eq!((&deleted.change, deleted.revision), (&Change::Deleted { previous: renewed }, new.revision - 1));
    assert_eq!(next(&mut watch).await.change, Change::Created { object: new.clone() });
    let other = next(&mut watch).await;
    assert_eq!(other.change, Change::Updated { object: level_changed.clone(), previous: level });
    assert_eq!(next(&mut levels).await, other);
    let mut last = [next(&mut watch).await, next(&mut watch).await];
    last.sort_by_key(|event| event.name().to_owned());
    assert_eq!(last[0].change, Change::Created { object: newest.clone() });
    assert_eq!((&last[1].change, last[1].revision), (&Change::Deleted { previous: removed }, newest.revision));
    assert_eq!(watch.try_next().unwrap(), None);
    assert_eq!(watch.progress().unwrap(), newest.revision);

    let at = |at| far.list(SCHEMA, ListOptions { at, ..ListOptions::default() });
    let now = at(At::Cached).await.unwrap();
    assert_eq!(now, near.list(SCHEMA, ListOptions::default()).await.unwrap());
    assert_eq!(names(&now.items), ["changed", "kept", "new", "renewed"]);
    // What was known before the gap is still known, and what was in it is not.
    let before = at(At::Exactly(known)).await.unwrap();
    assert_eq!(names(&before.items), ["changed", "kept", "removed", "renewed"]);
    assert_eq!(before.items[1], kept);
    for inside in [known + 1, newest.revision - 1] {
        assert!(matches!(at(At::Exactly(inside)).await, Err(Error::TooOld { .. })), "{inside}");
        assert!(matches!(far.watch(WatchOptions::after(inside)).await, Err(Error::TooOld { .. })), "{inside}");
    }
    let mut again = far.watch(WatchOptions::after(known)).await.unwrap();
    assert_eq!(next(&mut again).await, updated);
    let after = create(&near, "after").await;
    assert_eq!(next(&mut watch).await.object(), Some(&after));
}
