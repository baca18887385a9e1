//! Reading and writing single objects.

use std::sync::Arc;

use evenkeel_store::{At, Error, ListOptions, NAME_BYTES_MAX, PAYLOAD_BYTES_MAX, Store};

use crate::contract::cached;
use crate::samples::{LEVEL, SCHEMA, json, text};
use crate::until::until;

type Shared = Arc<dyn Store>;

pub(crate) async fn a_new_store_is_empty_and_has_a_revision(store: Shared) {
    let revision = store.revision().await.unwrap();
    assert!(revision > 0);
    assert!(store.freshness().revision <= revision);
    until("a connection", || async { store.freshness().disconnected_since.is_none().then_some(()) }).await;
    for at in [At::Cached, At::Latest, At::NotOlderThan(revision), At::Exactly(revision)] {
        assert_eq!(store.get(SCHEMA, "a", at).await.unwrap(), None);
        let list = store.list(LEVEL, ListOptions { at, ..ListOptions::default() }).await.unwrap();
        assert_eq!((list.revision, list.items.len(), list.remaining), (revision, 0, 0));
    }
}

pub(crate) async fn a_created_object_can_be_read(store: Shared) {
    let before = store.revision().await.unwrap();
    let created = store.create(SCHEMA, "a", text("one")).await.unwrap();
    assert_eq!((created.kind, &*created.name, &created.payload), (SCHEMA, "a", &text("one")));
    assert!(created.revision > before);
    assert_eq!(created.create_revision, created.revision);
    let revision = created.revision;
    for at in [At::Cached, At::Latest, At::NotOlderThan(revision), At::Exactly(revision)] {
        assert_eq!(store.get(SCHEMA, "a", at).await.unwrap().as_ref(), Some(&created), "{at:?}");
    }
    assert_eq!(store.revision().await.unwrap(), revision);
    cached(&*store, revision).await;
    assert_eq!(store.freshness().revision, revision);
}

pub(crate) async fn an_object_is_created_once(store: Shared) {
    let created = store.create(SCHEMA, "a", text("one")).await.unwrap();
    match store.create(SCHEMA, "a", text("two")).await {
        Err(Error::AlreadyExists { current }) => assert_eq!(current, created),
        other => panic!("{other:?}"),
    }
    assert_eq!(store.revision().await.unwrap(), created.revision);
}

pub(crate) async fn an_update_is_conditional(store: Shared) {
    match store.update(SCHEMA, "a", 5, text("one")).await {
        Err(Error::NotFound { kind: SCHEMA, name }) => assert_eq!(name, "a"),
        other => panic!("{other:?}"),
    }
    let created = store.create(SCHEMA, "a", text("one")).await.unwrap();
    let updated = store.update(SCHEMA, "a", created.revision, text("two")).await.unwrap();
    assert!(updated.revision > created.revision);
    assert_eq!(updated.create_revision, created.revision);
    match store.update(SCHEMA, "a", created.revision, text("three")).await {
        Err(Error::Conflict { expected, current }) => {
            assert_eq!((expected, current), (created.revision, updated.clone()));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(store.get(SCHEMA, "a", At::Latest).await.unwrap(), Some(updated));
}

pub(crate) async fn a_removal_is_conditional(store: Shared) {
    assert!(matches!(store.delete(LEVEL, "a", 5).await, Err(Error::NotFound { kind: LEVEL, .. })));
    let created = store.create(LEVEL, "a", text("one")).await.unwrap();
    match store.delete(LEVEL, "a", created.revision + 1).await {
        Err(Error::Conflict { expected, current }) => {
            assert_eq!((expected, &current), (created.revision + 1, &created));
        }
        other => panic!("{other:?}"),
    }
    let removed = store.delete(LEVEL, "a", created.revision).await.unwrap();
    assert!(removed > created.revision);
    for at in [At::Cached, At::Latest] {
        assert_eq!(store.get(LEVEL, "a", at).await.unwrap(), None);
    }
    assert_eq!(store.get(LEVEL, "a", At::Exactly(created.revision)).await.unwrap(), Some(created));
}

pub(crate) async fn an_object_can_be_created_again(store: Shared) {
    let first = store.create(LEVEL, "a", text("one")).await.unwrap();
    let removed = store.delete(LEVEL, "a", first.revision).await.unwrap();
    let second = store.create(LEVEL, "a", text("one")).await.unwrap();
    assert!(second.revision > removed);
    assert_eq!(second.create_revision, second.revision);
    assert!(matches!(store.delete(LEVEL, "a", first.revision).await, Err(Error::Conflict { .. })));
}

pub(crate) async fn kinds_do_not_mix(store: Shared) {
    let schema = store.create(SCHEMA, "a", text("schema")).await.unwrap();
    let level = store.create(LEVEL, "a", text("level")).await.unwrap();
    store.delete(SCHEMA, "a", schema.revision).await.unwrap();
    assert_eq!(store.get(SCHEMA, "a", At::Cached).await.unwrap(), None);
    assert_eq!(store.get(LEVEL, "a", At::Cached).await.unwrap(), Some(level));
}

pub(crate) async fn revisions_are_one_sequence_across_kinds(store: Shared) {
    let mut last = store.revision().await.unwrap();
    for number in 0..10 {
        for kind in [SCHEMA, LEVEL] {
            let created = store.create(kind, &format!("a{number}"), text("one")).await.unwrap();
            assert!(created.revision > last);
            let updated = store.update(kind, &created.name, created.revision, text("two")).await.unwrap();
            assert!(updated.revision > created.revision);
            last = updated.revision;
        }
    }
}

pub(crate) async fn a_read_can_ask_for_a_revision(store: Shared) {
    let first = store.create(SCHEMA, "a", text("one")).await.unwrap();
    let second = store.update(SCHEMA, "a", first.revision, text("two")).await.unwrap();
    let at_least = |revision| store.get(SCHEMA, "a", At::NotOlderThan(revision));
    assert_eq!(at_least(first.revision).await.unwrap(), Some(second.clone()));
    assert_eq!(at_least(second.revision).await.unwrap(), Some(second.clone()));
    let future = second.revision + 1;
    cached(&*store, second.revision).await;
    for at in [At::NotOlderThan(future), At::Exactly(future)] {
        match store.get(SCHEMA, "a", at).await {
            Err(Error::FutureRevision { asked, current }) => assert_eq!((asked, current), (future, second.revision)),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(store.get(SCHEMA, "a", At::Exactly(first.revision)).await.unwrap(), Some(first));
}

pub(crate) async fn names_and_payloads_have_limits(store: Shared) {
    let long = "a".repeat(NAME_BYTES_MAX + 1);
    for name in ["", "a/b", "a\0b", &long] {
        assert!(matches!(store.create(SCHEMA, name, text("one")).await, Err(Error::Invalid(_))), "{name:?}");
        assert!(matches!(store.delete(SCHEMA, name, 1).await, Err(Error::Invalid(_))), "{name:?}");
    }
    let large = text("x".repeat(PAYLOAD_BYTES_MAX + 1));
    let problem = store.create(SCHEMA, "a", large).await.unwrap_err().to_string();
    assert_eq!(problem, "an object has at most 1048576 bytes, and this one has 1048577");
    let largest = store.create(SCHEMA, &long[1..], text("x".repeat(PAYLOAD_BYTES_MAX))).await.unwrap();
    assert_eq!(store.get(SCHEMA, &long[1..], At::Latest).await.unwrap(), Some(largest));
}

pub(crate) async fn a_closed_store_takes_no_writes(store: Shared) {
    let created = store.create(SCHEMA, "a", text("one")).await.unwrap();
    store.close().await.unwrap();
    store.close().await.unwrap();
    assert!(matches!(store.create(SCHEMA, "b", text("one")).await, Err(Error::Closed)));
    assert!(matches!(store.update(SCHEMA, "a", created.revision, text("two")).await, Err(Error::Closed)));
    assert!(matches!(store.delete(SCHEMA, "a", created.revision).await, Err(Error::Closed)));
    assert!(matches!(store.compact(created.revision).await, Err(Error::Closed)));
}

pub(crate) async fn objects_are_kept_byte_by_byte(store: Shared) {
    for kind in [SCHEMA, LEVEL] {
        for name in ["a", "system-leader-election", "a.b-c.9"] {
            let payload = json(kind, name);
            let created = store.create(kind, name, payload.clone()).await.unwrap();
            assert_eq!(created.payload, payload);
            assert_eq!(store.get(kind, name, At::Latest).await.unwrap().unwrap().payload, payload);
        }
    }
    let all_bytes: Vec<u8> = (0..=255).collect();
    store.create(SCHEMA, "bytes", all_bytes.clone().into()).await.unwrap();
    assert_eq!(store.get(SCHEMA, "bytes", At::Latest).await.unwrap().unwrap().payload, all_bytes);
}
