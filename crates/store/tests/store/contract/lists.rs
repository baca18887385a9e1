//! Lists: order, pages, and older revisions.

use std::sync::Arc;

use evenkeel_store::{At, Error, List, ListOptions, Store};

use crate::contract::cached;
use crate::samples::{LEVEL, SCHEMA, names, text};

type Shared = Arc<dyn Store>;

async fn create_all(store: &Shared, names: &[&str]) -> u64 {
    let mut revision = 0;
    for name in names {
        revision = store.create(SCHEMA, name, text(*name)).await.unwrap().revision;
    }
    revision
}

async fn page(store: &Shared, at: At, limit: usize, after: Option<&str>) -> List {
    let options = ListOptions { at, limit, after: after.map(ToOwned::to_owned) };
    store.list(SCHEMA, options).await.unwrap()
}

pub(crate) async fn a_list_is_in_the_order_of_names(store: Shared) {
    let revision = create_all(&store, &["b", "a-b", "a", "a.b", "ab", "a0", "B", "ä"]).await;
    store.create(LEVEL, "aa", text("another kind")).await.unwrap();
    for at in [At::Cached, At::Latest, At::NotOlderThan(revision), At::Exactly(revision)] {
        let list = page(&store, at, 0, None).await;
        assert_eq!(names(&list.items), ["B", "a", "a-b", "a.b", "a0", "ab", "b", "ä"], "{at:?}");
        assert!(list.items.iter().all(|object| object.payload == *object.name && object.kind == SCHEMA));
        assert!(list.revision >= revision);
        assert_eq!(list.remaining, 0);
    }
}

pub(crate) async fn a_list_has_a_limit_and_goes_on_after_a_name(store: Shared) {
    create_all(&store, &["a", "b", "c", "d", "e"]).await;
    for at in [At::Cached, At::Latest] {
        let first = page(&store, at, 2, None).await;
        assert_eq!((names(&first.items), first.remaining), (vec!["a", "b"], 3));
        let again = |limit, after| page(&store, At::Exactly(first.revision), limit, Some(after));
        let second = again(2, "b").await;
        assert_eq!((names(&second.items), second.remaining, second.revision), (vec!["c", "d"], 1, first.revision));
        let third = again(2, "d").await;
        assert_eq!((names(&third.items), third.remaining), (vec!["e"], 0));
        // After a name that is not there, and after the last.
        assert_eq!(names(&again(0, "bb").await.items), ["c", "d", "e"]);
        assert_eq!(again(1, "e").await.items, []);
        assert_eq!(page(&store, at, 5, None).await.remaining, 0);
    }
}

pub(crate) async fn pages_are_of_one_revision(store: Shared) {
    create_all(&store, &["a", "c", "e", "g"]).await;
    let first = page(&store, At::Latest, 1, None).await;
    let before = page(&store, At::Exactly(first.revision), 0, None).await;
    for name in ["a", "c", "e"] {
        let object = store.get(SCHEMA, name, At::Cached).await.unwrap().unwrap();
        if name == "e" {
            store.update(SCHEMA, name, object.revision, text("changed")).await.unwrap();
        } else {
            store.delete(SCHEMA, name, object.revision).await.unwrap();
        }
    }
    create_all(&store, &["b", "d", "h"]).await;
    let mut items = first.items.clone();
    let mut remaining = first.remaining;
    while remaining > 0 {
        let next = page(&store, At::Exactly(first.revision), 1, items.last().map(|last| &*last.name)).await;
        assert_eq!((next.revision, next.items.len(), next.remaining), (first.revision, 1, remaining - 1));
        items.extend(next.items);
        remaining = next.remaining;
    }
    assert_eq!(items, before.items);
    assert_eq!(names(&page(&store, At::Cached, 0, None).await.items), ["b", "d", "e", "g", "h"]);
}

pub(crate) async fn an_old_list_shows_what_was(store: Shared) {
    let mut past = vec![page(&store, At::Latest, 0, None).await];
    for name in ["c", "a", "b"] {
        create_all(&store, &[name]).await;
        past.push(page(&store, At::Latest, 0, None).await);
    }
    for (name, payload) in [("a", Some("new")), ("b", None), ("c", Some("newer")), ("a", None)] {
        let object = store.get(SCHEMA, name, At::Cached).await.unwrap().unwrap();
        match payload {
            Some(payload) => drop(store.update(SCHEMA, name, object.revision, text(payload)).await.unwrap()),
            None => drop(store.delete(SCHEMA, name, object.revision).await.unwrap()),
        }
        store.create(LEVEL, &format!("{name}-{}", object.revision), text("")).await.unwrap();
        past.push(page(&store, At::Latest, 0, None).await);
    }
    for list in past {
        assert_eq!(page(&store, At::Exactly(list.revision), 0, None).await, list);
        for object in &list.items {
            let got = store.get(SCHEMA, &object.name, At::Exactly(list.revision)).await.unwrap();
            assert_eq!(got.as_ref(), Some(object));
        }
    }
}

pub(crate) async fn a_list_of_the_future_is_refused(store: Shared) {
    let revision = create_all(&store, &["a"]).await;
    cached(&*store, revision).await;
    for at in [At::Exactly(revision + 1), At::NotOlderThan(revision + 1)] {
        match store.list(SCHEMA, ListOptions { at, ..ListOptions::default() }).await {
            Err(Error::FutureRevision { asked, current }) => assert_eq!((asked, current), (revision + 1, revision)),
            other => panic!("{other:?}"),
        }
    }
}

pub(crate) async fn lists_are_refused_after_compaction(store: Shared) {
    create_all(&store, &["a"]).await;
    let second = create_all(&store, &["b"]).await;
    let last = create_all(&store, &["c"]).await;
    cached(&*store, last).await;
    store.compact(second).await.unwrap();
    assert_eq!(names(&page(&store, At::Exactly(second), 0, None).await.items), ["a", "b"]);
    match store.list(SCHEMA, ListOptions { at: At::Exactly(second - 1), ..ListOptions::default() }).await {
        Err(Error::TooOld { asked, oldest }) => assert_eq!((asked, oldest), (second - 1, second)),
        other => panic!("{other:?}"),
    }
    assert!(matches!(store.get(SCHEMA, "a", At::Exactly(second - 1)).await, Err(Error::TooOld { .. })));
    assert_eq!(names(&page(&store, At::Cached, 0, None).await.items), ["a", "b", "c"]);
    assert!(matches!(store.compact(second).await, Err(Error::TooOld { .. })));
    match store.compact(last + 1).await {
        Err(Error::FutureRevision { asked, current }) => assert_eq!((asked, current), (last + 1, last)),
        other => panic!("{other:?}"),
    }
    // What is not compacted goes on.
    store.compact(last).await.unwrap();
    create_all(&store, &["d"]).await;
    assert_eq!(names(&page(&store, At::Exactly(last), 0, None).await.items), ["a", "b", "c"]);
}
