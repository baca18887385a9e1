//! Many writers at the same time.

use std::collections::BTreeMap;
use std::sync::Arc;

use evenkeel_store::{At, Error, ListOptions, Store, WatchOptions};
use tokio::task::JoinSet;

use crate::samples::{SCHEMA, text};

type Shared = Arc<dyn Store>;

pub(crate) async fn one_of_many_creations_wins(store: Shared) {
    for round in 0..5 {
        let mut writers = JoinSet::new();
        for writer in 0..16 {
            let store = Arc::clone(&store);
            writers.spawn(async move { store.create(SCHEMA, &format!("a{round}"), text(writer.to_string())).await });
        }
        let outcomes = writers.join_all().await;
        let winners: Vec<_> = outcomes.iter().filter_map(|outcome| outcome.as_ref().ok()).collect();
        assert_eq!(winners.len(), 1);
        let refused = |outcome: &Result<_, Error>| matches!(outcome, Err(Error::AlreadyExists { current }) if current == winners[0]);
        assert_eq!(outcomes.iter().filter(|outcome| refused(outcome)).count(), 15);
        assert_eq!(store.get(SCHEMA, &format!("a{round}"), At::Cached).await.unwrap().as_ref(), Some(winners[0]));
    }
}

pub(crate) async fn no_update_is_lost(store: Shared) {
    const WRITERS: u32 = 8;
    const UPDATES: u32 = 10;
    store.create(SCHEMA, "counter", text("0")).await.unwrap();
    let mut writers = JoinSet::new();
    for _ in 0..WRITERS {
        let store = Arc::clone(&store);
        writers.spawn(async move {
            for _ in 0..UPDATES {
                let mut current = store.get(SCHEMA, "counter", At::Cached).await.unwrap().unwrap();
                loop {
                    let count: u32 = std::str::from_utf8(&current.payload).unwrap().parse().unwrap();
                    match store.update(SCHEMA, "counter", current.revision, text((count + 1).to_string())).await {
                        Ok(_) => break,
                        Err(Error::Conflict { current: newer, .. }) => current = newer,
                        Err(other) => panic!("{other}"),
                    }
                }
            }
        });
    }
    writers.join_all().await;
    let counter = store.get(SCHEMA, "counter", At::Latest).await.unwrap().unwrap();
    assert_eq!(counter.payload, (WRITERS * UPDATES).to_string());
}

pub(crate) async fn writes_that_meet_the_end_are_done_or_refused(store: Shared) {
    let mut writers = JoinSet::new();
    for writer in 0..32 {
        let store = Arc::clone(&store);
        writers.spawn(async move { store.create(SCHEMA, &format!("a{writer}"), text("one")).await });
    }
    tokio::task::yield_now().await;
    store.close().await.unwrap();
    for outcome in writers.join_all().await {
        assert!(matches!(outcome, Ok(_) | Err(Error::Closed)), "{outcome:?}");
    }
}

pub(crate) async fn a_list_and_a_watch_from_there_miss_nothing(store: Shared) {
    let writer = tokio::spawn({
        let store = Arc::clone(&store);
        async move {
            for number in 0..150 {
                let name = format!("a{}", number % 30);
                match store.get(SCHEMA, &name, At::Cached).await.unwrap() {
                    None => drop(store.create(SCHEMA, &name, text(number.to_string())).await.unwrap()),
                    Some(old) if number % 2 == 0 => drop(store.delete(SCHEMA, &name, old.revision).await.unwrap()),
                    Some(old) => drop(store.update(SCHEMA, &name, old.revision, text("new")).await.unwrap()),
                }
            }
            store.create(SCHEMA, "end", text("")).await.unwrap();
        }
    });
    let mut watchers = JoinSet::new();
    for number in 0..20 {
        let store = Arc::clone(&store);
        watchers.spawn(async move {
            let at = if number % 2 == 0 { At::Cached } else { At::Latest };
            let list = store.list(SCHEMA, ListOptions { at, ..ListOptions::default() }).await.unwrap();
            let mut objects: BTreeMap<_, _> =
                list.items.into_iter().map(|object| (object.name.clone(), object)).collect();
            let mut watch = store.watch(WatchOptions::of(SCHEMA, list.revision)).await.unwrap();
            while !objects.contains_key("end") {
                let event = watch.next().await.unwrap();
                let was = match event.object() {
                    Some(object) => objects.insert(object.name.clone(), Arc::clone(object)),
                    None => objects.remove(event.name()),
                };
                assert_eq!(was.as_ref(), event.previous());
            }
            objects.into_values().collect::<Vec<_>>()
        });
    }
    writer.await.unwrap();
    let last = store.list(SCHEMA, ListOptions { at: At::Latest, ..ListOptions::default() }).await.unwrap();
    for seen in watchers.join_all().await {
        assert_eq!(seen, last.items);
    }
}
