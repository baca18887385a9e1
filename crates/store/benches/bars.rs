//! The bars of the store: group commit, opening, reaching many watchers, and a long list.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use evenkeel_api::Kind;
use evenkeel_api::v1::FlowSchema;
use evenkeel_bars::{Bar, Bars, nanos_per_operation};
use evenkeel_store::{At, EmbeddedStore, HistoryLimits, ListOptions, Store, WatchOptions};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

const OBJECTS: usize = 10_000;
const WATCHERS: usize = 1_000;
const WRITERS: u32 = 64;
/// Times in all, and the figure is the best: a disk is shared with whoever else uses the machine.
const ROUNDS: usize = 3;

fn main() {
    let runtime = Runtime::new().expect("a runtime");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("many");
    let mut bars = Bars::filtered(std::env::args().skip(1));

    let mut one = 0.0;
    bars.measure("durable creates, 1 writer", "a second", || {
        one = best(ROUNDS, || creates_per_second(&runtime, folder.path(), 1));
        (one, Bar::None)
    });
    bars.measure("durable creates, 64 writers", "a second", || {
        let many = best(ROUNDS, || creates_per_second(&runtime, folder.path(), WRITERS));
        // Five times what one writer gets; nothing, if that was left out.
        (many, if one > 0.0 { Bar::AtLeast((5.0 * one).round(), "a second") } else { Bar::None })
    });
    bars.measure("open a store of 10,000 objects", "ms", || {
        fill(&runtime, &path);
        (open_ms(&path), Bar::AtMost(150.0, "ms"))
    });
    bars.measure("a write reaches 1,000 watchers, median", "ms", || {
        let store = EmbeddedStore::in_memory(HistoryLimits::default()).expect("a store");
        (fan_out_ms(&runtime, &store), Bar::AtMost(5.0, "ms"))
    });
    bars.measure("a write reaches 1,000 watchers, with its sync", "ms", || {
        let store = open(&folder.path().join("watched"));
        (fan_out_ms(&runtime, &store), Bar::AtMost(5.0, "ms"))
    });
    bars.measure("list 10,000 objects from cache", "ms", || {
        fill(&runtime, &path);
        (list_ms(&runtime, &path), Bar::AtMost(10.0, "ms"))
    });
    bars.print("The store");
}

fn best(rounds: usize, figure: impl FnMut() -> f64) -> f64 {
    std::iter::repeat_with(figure).take(rounds).fold(0.0, f64::max)
}

fn payload(name: &str) -> Bytes {
    let schema = FlowSchema::builder(name)
        .priority_level("workload-low")
        .matching_precedence(500)
        .by_user()
        .rule(|rule| rule.user("alice").resources(["pods", "services"]).verbs(["get", "list", "watch"]))
        .build();
    serde_json::to_vec(&schema).expect("JSON").into()
}

fn open(path: &Path) -> EmbeddedStore {
    EmbeddedStore::open(path, HistoryLimits::default()).expect("a store")
}

/// Creates in a new file for some time, each writer one after the other.
fn creates_per_second(runtime: &Runtime, folder: &Path, writers: u32) -> f64 {
    let folder = tempfile::tempdir_in(folder).expect("a folder");
    let store = Arc::new(open(&folder.path().join("store")));
    let start = Instant::now();
    let tasks: Vec<_> = (0..writers)
        .map(|writer| {
            let store = Arc::clone(&store);
            runtime.spawn(async move {
                let mut created = 0_u32;
                while start.elapsed() < Duration::from_secs(1) {
                    let name = format!("writer-{writer}-{created}");
                    store.create(Kind::FlowSchema, &name, payload(&name)).await.expect("created");
                    created += 1;
                }
                created
            })
        })
        .collect();
    let created: u32 = tasks.into_iter().map(|task| runtime.block_on(task).expect("a writer")).sum();
    f64::from(created) / start.elapsed().as_secs_f64()
}

fn fill(runtime: &Runtime, path: &Path) {
    if path.exists() {
        return;
    }
    let store = Arc::new(open(path));
    let tasks: Vec<_> = (0..WRITERS as usize)
        .map(|writer| {
            let store = Arc::clone(&store);
            runtime.spawn(async move {
                for number in (writer..OBJECTS).step_by(WRITERS as usize) {
                    let name = format!("schema-{number}");
                    store.create(Kind::FlowSchema, &name, payload(&name)).await.expect("created");
                }
            })
        })
        .collect();
    for task in tasks {
        runtime.block_on(task).expect("a writer");
    }
}

fn open_ms(path: &Path) -> f64 {
    let times = (0..7).map(|_| {
        let start = Instant::now();
        let store = open(path);
        let elapsed = start.elapsed();
        drop(store);
        elapsed
    });
    median_ms(times.collect())
}

/// From before the write to when the last of the watchers has the event.
fn fan_out_ms(runtime: &Runtime, store: &EmbeddedStore) -> f64 {
    runtime.block_on(async {
        let start = store.revision().await.expect("a revision");
        let (told, mut seen) = mpsc::channel(WATCHERS);
        for _ in 0..WATCHERS {
            let mut watch = store.watch(WatchOptions::after(start)).await.expect("a watch");
            let told = told.clone();
            tokio::spawn(async move {
                while watch.next().await.is_ok() {
                    told.send(Instant::now()).await.expect("the bench listens");
                }
            });
        }
        let mut times = Vec::new();
        for number in 0..101 {
            let name = format!("schema-{number}");
            let payload = payload(&name);
            let start = Instant::now();
            store.create(Kind::FlowSchema, &name, payload).await.expect("created");
            let mut last = start;
            for _ in 0..WATCHERS {
                last = last.max(seen.recv().await.expect("a watcher"));
            }
            times.push(last - start);
        }
        median_ms(times)
    })
}

fn list_ms(runtime: &Runtime, path: &Path) -> f64 {
    let store = open(path);
    nanos_per_operation(1, || {
        let list = runtime.block_on(store.list(Kind::FlowSchema, ListOptions { at: At::Cached, ..Default::default() }));
        assert_eq!(list.expect("a list").items.len(), OBJECTS);
    }) / 1e6
}

fn median_ms(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e3
}
