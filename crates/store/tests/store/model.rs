//! Many writers, readers and watchers do random things; what each of them saw must be what a simple model says.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use evenkeel_api::Kind;
use evenkeel_store::{
    At, EmbeddedStore, Error, EtcdStore, Event, HistoryLimits, List, ListOptions, Object, Store, WatchOptions,
};
use tokio::task::JoinSet;

use crate::etcd_server::EtcdServer;
use crate::folder::folder;
use crate::model_replay::{Acknowledged, Model};
use crate::patient::patient;
use crate::random::Random;
use crate::samples::{LEVEL, SCHEMA, text};
use crate::until::soon;

const KINDS: [Kind; 2] = [SCHEMA, LEVEL];
const NAMES: [&str; 6] = ["a", "a.b", "a-b", "b", "c", "d"];
const END: &str = "zz-end";

/// A list, and how it was asked for.
struct Listed {
    kind: Kind,
    after: Option<&'static str>,
    limit: usize,
    list: List,
}

/// What a watcher asked for and saw.
struct Watched {
    options: WatchOptions,
    events: Vec<Event>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_does_what_the_model_says() {
    let mut random = Random::new("a_file_does_what_the_model_says");
    for _ in 0..2 {
        let folder = folder();
        let store = EmbeddedStore::open(folder.path().join("store"), HistoryLimits::default()).unwrap();
        soon("the writers", check(Arc::new(store), random.fork(), 12, 80)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_does_what_the_model_says() {
    let mut random = Random::new("memory_does_what_the_model_says");
    for _ in 0..5 {
        let store = EmbeddedStore::in_memory(HistoryLimits::default()).unwrap();
        soon("the writers", check(Arc::new(store), random.fork(), 12, 100)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn etcd_does_what_the_model_says() {
    let mut random = Random::new("etcd_does_what_the_model_says");
    let server = EtcdServer::start().await;
    let store = EtcdStore::open(&patient([server.endpoint()])).await.unwrap();
    soon("the writers", check(Arc::new(store), random.fork(), 12, 80)).await;
}

async fn check(store: Arc<dyn Store>, mut random: Random, writers: usize, operations: usize) {
    let start = store.revision().await.unwrap();
    let writing = Arc::new(AtomicBool::new(true));
    let mut written = JoinSet::new();
    for writer in 0..writers {
        written.spawn(write(Arc::clone(&store), random.fork(), writer, operations));
    }
    let (mut listed, mut watched) = (JoinSet::new(), JoinSet::new());
    for _ in 0..2 {
        listed.spawn(read(Arc::clone(&store), random.fork(), start, Arc::clone(&writing)));
    }
    for number in 0..9 {
        watched.spawn(follow(Arc::clone(&store), random.fork(), start, number));
    }
    let mut acknowledged: Vec<Acknowledged> = written.join_all().await.into_iter().flatten().collect();
    writing.store(false, Ordering::Relaxed);
    for kind in KINDS {
        let object = store.create(kind, END, text("")).await.unwrap();
        acknowledged.push(Acknowledged {
            revision: object.revision,
            kind,
            name: END.to_owned(),
            expected: None,
            object: Some(object),
        });
    }

    let model = Model::replay(start, acknowledged);
    for watched in watched.join_all().await {
        assert_eq!(watched.events, model.events_after(watched.options.after, watched.options.kind));
    }
    for Listed { kind, after, limit, list } in listed.join_all().await.into_iter().flatten() {
        model.check(kind, after, limit, &list);
    }
}

/// Writes on the grounds of what it knows, which may be out of date.
async fn write(store: Arc<dyn Store>, mut random: Random, writer: usize, operations: usize) -> Vec<Acknowledged> {
    let mut acknowledged = Vec::new();
    let mut known: Option<Arc<Object>> = None;
    for operation in 0..operations {
        let (kind, name) = (random.pick(&KINDS), random.pick(&NAMES));
        // At times the object that was seen last, which somebody else may have written since.
        let object = match known.take() {
            Some(known) if random.below(4) == 0 => Some(known),
            _ => store.get(kind, name, random.pick(&[At::Cached, At::Cached, At::Latest])).await.unwrap(),
        };
        known = store.get(random.pick(&KINDS), random.pick(&NAMES), At::Cached).await.unwrap();
        let payload = text(format!("{writer}/{operation}"));
        let (kind, name, expected, outcome) = match &object {
            None => {
                let created = store.create(kind, name, payload).await;
                (kind, name.to_owned(), None, created.map(|object| (object.revision, Some(object))))
            }
            Some(object) if random.below(3) == 0 => {
                let removed = store.delete(object.kind, &object.name, object.revision).await;
                (object.kind, object.name.to_string(), Some(object.revision), removed.map(|revision| (revision, None)))
            }
            Some(object) => {
                let updated = store.update(object.kind, &object.name, object.revision, payload).await;
                let updated = updated.map(|object| (object.revision, Some(object)));
                (object.kind, object.name.to_string(), Some(object.revision), updated)
            }
        };
        match outcome {
            Ok((revision, object)) => acknowledged.push(Acknowledged { revision, kind, name, expected, object }),
            Err(Error::AlreadyExists { .. }) => assert_eq!(expected, None),
            Err(Error::Conflict { expected: told, current }) => {
                assert_eq!(Some(told), expected);
                assert!(current.revision > told);
            }
            Err(Error::NotFound { .. }) => assert!(expected.is_some()),
            Err(other) => panic!("{other}"),
        }
    }
    acknowledged
}

/// Lists until nobody writes any more.
async fn read(store: Arc<dyn Store>, mut random: Random, start: u64, writing: Arc<AtomicBool>) -> Vec<Listed> {
    let mut listed = Vec::new();
    let mut newest = start;
    while writing.load(Ordering::Relaxed) {
        let (kind, limit) = (random.pick(&KINDS), random.pick(&[0, 0, 1, 2, 10]));
        let after = random.pick(&[None, None, Some("a"), Some("b"), Some("bb")]);
        let past = start + random.below(newest - start + 1);
        let at = random.pick(&[At::Cached, At::Latest, At::NotOlderThan(newest), At::Exactly(past)]);
        let options = ListOptions { at, limit, after: after.map(ToOwned::to_owned) };
        let list = store.list(kind, options).await.unwrap();
        match at {
            At::Exactly(revision) => assert_eq!(list.revision, revision),
            At::NotOlderThan(revision) => assert!(list.revision >= revision),
            _ => {}
        }
        newest = newest.max(list.revision);
        listed.push(Listed { kind, after, limit, list });
        tokio::task::yield_now().await;
    }
    listed
}

/// Watches from the start or from a list; at times it begins a new watch where the last one was.
async fn follow(store: Arc<dyn Store>, mut random: Random, start: u64, number: usize) -> Watched {
    let kind = [None, Some(SCHEMA), Some(LEVEL)][number % 3];
    let after = match random.below(2) {
        0 => start,
        _ => store.list(SCHEMA, ListOptions { at: At::Latest, ..ListOptions::default() }).await.unwrap().revision,
    };
    let options = WatchOptions { kind, after };
    let mut watch = store.watch(options).await.unwrap();
    let mut events: Vec<Event> = Vec::new();
    let mut ends = if kind.is_none() { 2 } else { 1 };
    while ends > 0 {
        let event = watch.next().await.unwrap();
        ends -= usize::from(event.name() == END);
        events.push(Event::clone(&event));
        if random.below(20) == 0 {
            let after = match random.below(2) {
                0 => watch.progress().unwrap(),
                _ => event.revision,
            };
            watch = store.watch(WatchOptions { kind, after }).await.unwrap();
        }
    }
    Watched { options, events }
}
