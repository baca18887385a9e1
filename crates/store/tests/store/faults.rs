//! A cluster of three members that fail one way or another while somebody writes and watches.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use evenkeel_store::{At, Error, EtcdConfig, EtcdStore, Event, ListOptions, Object, Store, WatchOptions};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::etcd_server::EtcdCluster;
use crate::patient::patient;
use crate::proxy::Proxy;
use crate::samples::{SCHEMA, text};
use crate::until::{soon, until};

/// Writes resume within this time, whatever has failed, once the rest of the cluster has a leader.
const RESUME: Duration = Duration::from_secs(10);
const END: &str = "zz-end";

/// Writes and watches while members fail.
struct FaultLoad {
    endpoints: Vec<String>,
    store: Arc<EtcdStore>,
    stop: Arc<AtomicBool>,
    /// How many writes were acknowledged.
    acknowledged: watch::Receiver<u64>,
    writer: JoinHandle<Vec<Arc<Object>>>,
    watcher: JoinHandle<Vec<Arc<Event>>>,
}

impl FaultLoad {
    async fn start(endpoints: Vec<String>) -> Self {
        let store = Arc::new(EtcdStore::open(&EtcdConfig::new(endpoints.clone())).await.unwrap());
        let stop = Arc::new(AtomicBool::new(false));
        let (count, acknowledged) = watch::channel(0);
        let mut events = store.watch(WatchOptions::after(store.revision().await.unwrap())).await.unwrap();
        let writer = tokio::spawn(write(Arc::clone(&store), Arc::clone(&stop), count));
        let watcher = tokio::spawn(async move {
            let mut seen = Vec::new();
            loop {
                let event = events.next().await.unwrap();
                seen.push(Arc::clone(&event));
                if event.name() == END {
                    return seen;
                }
            }
        });
        Self { endpoints, store, stop, acknowledged, writer, watcher }
    }

    /// Waits until some more writes have been acknowledged.
    async fn writes(&mut self, more: u64) {
        let target = *self.acknowledged.borrow() + more;
        soon("writes", self.acknowledged.wait_for(|count| *count >= target)).await.unwrap();
    }

    /// The first write that is acknowledged from now on has to be so in time. One may be on its way.
    async fn resumes(&mut self, cluster: &EtcdCluster) {
        let target = *self.acknowledged.borrow() + 2;
        // How long the members take to elect one is theirs; the rest is ours.
        cluster.leader().await;
        let start = Instant::now();
        soon("writes", self.acknowledged.wait_for(|count| *count >= target)).await.unwrap();
        assert!(start.elapsed() < RESUME, "writes resumed only after {:?}", start.elapsed());
    }

    /// Ends the writes, and compares what was acknowledged, what was seen, and what is there.
    async fn check(self) {
        self.stop.store(true, Ordering::Relaxed);
        let acknowledged = soon("the writer", self.writer).await.unwrap();
        until("the last write", || async {
            let ended = self.store.create(SCHEMA, END, text("")).await;
            matches!(ended, Ok(_) | Err(Error::AlreadyExists { .. })).then_some(())
        })
        .await;
        let seen = soon("the watcher", self.watcher).await.unwrap();
        assert!(seen.is_sorted_by(|a, b| a.revision < b.revision), "events are out of order or repeated");
        let by_revision: BTreeMap<u64, &Arc<Event>> = seen.iter().map(|event| (event.revision, event)).collect();
        for object in &acknowledged {
            let event = by_revision.get(&object.revision).expect("every acknowledged write is seen");
            assert_eq!(event.object(), Some(object));
        }
        let mut replayed = BTreeMap::new();
        for event in &seen {
            let was = match event.object() {
                Some(object) => replayed.insert(object.name.clone(), Arc::clone(object)),
                None => replayed.remove(event.name()),
            };
            assert_eq!(was.as_ref(), event.previous(), "an event was missed");
        }
        // A write of which nobody knows may still take place, so what is there is asked for at the end, and of etcd itself.
        let fresh = EtcdStore::open(&patient(self.endpoints)).await.unwrap();
        let at = At::Exactly(seen[seen.len() - 1].revision);
        let list = fresh.list(SCHEMA, ListOptions { at, ..ListOptions::default() }).await.unwrap();
        assert_eq!(replayed.into_values().collect::<Vec<_>>(), list.items);
        println!("{} writes were acknowledged, {} events seen", acknowledged.len(), seen.len());
    }
}

/// Creates and updates one object after the other. A write of which nobody knows whether it took place is left alone.
async fn write(store: Arc<EtcdStore>, stop: Arc<AtomicBool>, count: watch::Sender<u64>) -> Vec<Arc<Object>> {
    let mut acknowledged: Vec<Arc<Object>> = Vec::new();
    let mut number = 0;
    while !stop.load(Ordering::Relaxed) {
        number += 1;
        let name = format!("a{:03}", number % 200);
        let payload = text(format!("{number}"));
        let outcome = match store.get(SCHEMA, &name, At::Cached).await {
            Ok(None) => store.create(SCHEMA, &name, payload).await,
            Ok(Some(object)) => store.update(SCHEMA, &name, object.revision, payload).await,
            Err(error) => Err(error),
        };
        match outcome {
            Ok(object) => {
                acknowledged.push(object);
                count.send_modify(|count| *count += 1);
            }
            // After a write of unknown outcome, what is read from the cache may be out of date.
            Err(Error::Unknown(_) | Error::Unavailable(_) | Error::Conflict { .. } | Error::AlreadyExists { .. }) => {
                tokio::task::yield_now().await;
            }
            Err(other) => panic!("{other}"),
        }
    }
    acknowledged
}

/// Forgets all up to now. When nobody knows whether that took place, it is done again, and may then have been done before.
async fn compact(store: &EtcdStore) {
    let revision = store.revision().await.unwrap();
    let is_repeated = AtomicBool::new(false);
    until("the compaction", || async {
        match store.compact(revision).await {
            Ok(()) => Some(()),
            Err(Error::TooOld { .. }) if is_repeated.load(Ordering::Relaxed) => Some(()),
            Err(Error::Unknown(_) | Error::Unavailable(_)) => {
                is_repeated.store(true, Ordering::Relaxed);
                None
            }
            Err(other) => panic!("{other}"),
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cluster_loses_its_leader() {
    let mut cluster = EtcdCluster::start(3).await;
    let leader = cluster.leader().await;
    let mut load = FaultLoad::start(cluster.endpoints()).await;
    load.writes(20).await;
    cluster.member(leader).kill();
    load.resumes(&cluster).await;
    load.writes(20).await;
    cluster.member(leader).restart().await;
    let next = cluster.leader().await;
    if next != leader {
        cluster.member(next).kill();
        load.resumes(&cluster).await;
    }
    load.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cluster_has_a_member_that_does_not_answer() {
    let mut cluster = EtcdCluster::start(3).await;
    let mut load = FaultLoad::start(cluster.endpoints()).await;
    for member in 0..3 {
        load.writes(20).await;
        cluster.member(member).pause();
        load.resumes(&cluster).await;
        load.writes(20).await;
        cluster.member(member).resume();
    }
    load.check().await;
}

/// How long a call takes to find out that etcd is away.
const CALL_DEADLINE: Duration = Duration::from_secs(3);

/// While etcd is away, the first call takes its time, and all others fail at once, until it is back.
async fn check_fails_fast(store: &EtcdStore, come_back: impl FnOnce()) {
    // It may respond for a moment after it was told to stop.
    let first = until("etcd is away", || async { store.get(SCHEMA, "a", At::Latest).await.err() }).await;
    assert!(matches!(first, Error::Unavailable(_)), "{first:?}");
    let start = Instant::now();
    for _ in 0..20 {
        let read = store.list(SCHEMA, ListOptions { at: At::Latest, ..ListOptions::default() }).await;
        assert!(matches!(read, Err(Error::Unavailable(_))), "{read:?}");
        // It was not sent, so that it is known that nothing was written.
        let write = store.create(SCHEMA, "b", text("")).await;
        assert!(matches!(write, Err(Error::Unavailable(_))), "{write:?}");
    }
    assert!(start.elapsed() < CALL_DEADLINE, "40 calls took {:?}", start.elapsed());
    assert!(store.freshness().disconnected_since.is_some());
    assert_eq!(store.get(SCHEMA, "a", At::Cached).await.unwrap().unwrap().payload, text("1"));
    come_back();
    until("etcd is back", || async { store.get(SCHEMA, "a", At::Latest).await.ok() }).await;
    until("the cache follows", || async { store.freshness().disconnected_since.is_none().then_some(()) }).await;
    store.create(SCHEMA, "b", text("")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_fail_at_once_while_etcd_is_away() {
    let cluster = EtcdCluster::start(1).await;
    let proxy = Proxy::start(cluster.endpoints().remove(0)).await;
    let mut config = EtcdConfig::new([proxy.endpoint()]);
    (config.call_deadline, config.attempt_deadline) = (CALL_DEADLINE, CALL_DEADLINE / 3);
    let store = EtcdStore::open(&config).await.unwrap();
    store.create(SCHEMA, "a", text("1")).await.unwrap();
    proxy.cut();
    check_fails_fast(&store, || proxy.heal()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_fail_at_once_while_etcd_does_not_answer() {
    let mut cluster = EtcdCluster::start(1).await;
    let mut config = EtcdConfig::new(cluster.endpoints());
    (config.call_deadline, config.attempt_deadline) = (CALL_DEADLINE, CALL_DEADLINE / 3);
    let store = EtcdStore::open(&config).await.unwrap();
    store.create(SCHEMA, "a", text("1")).await.unwrap();
    cluster.member(0).pause();
    check_fails_fast(&store, || cluster.member(0).resume()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cluster_is_cut_off_again_and_again() {
    let cluster = EtcdCluster::start(3).await;
    let mut proxies = Vec::new();
    for endpoint in cluster.endpoints() {
        proxies.push(Proxy::start(endpoint).await);
    }
    let mut load = FaultLoad::start(proxies.iter().map(Proxy::endpoint).collect()).await;
    for round in 0..20 {
        load.writes(5).await;
        proxies.iter().for_each(Proxy::cut_once);
        if round % 5 == 0 {
            proxies[round % 3].cut();
            load.resumes(&cluster).await;
            proxies[round % 3].heal();
        }
    }
    load.resumes(&cluster).await;
    load.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cluster_is_compacted_under_a_watcher() {
    let cluster = EtcdCluster::start(3).await;
    let mut load = FaultLoad::start(cluster.endpoints()).await;
    let other = EtcdStore::open(&patient(cluster.endpoints())).await.unwrap();
    for _ in 0..10 {
        load.writes(5).await;
        compact(&other).await;
    }
    load.check().await;
}
