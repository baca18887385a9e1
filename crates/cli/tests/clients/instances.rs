//! Two instances that share an etcd: what is written through one is served by, and governs, the other.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::pin::pin;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use k8s_openapi::api::flowcontrol::v1::FlowSchema;
use kube::api::{ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;
use tempfile::TempDir;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_stream::{Stream, StreamExt};

use super::child::PATIENCE;
use super::etcd_server::EtcdServer;
use super::folder::folder;
use super::gateway::{everybody, schema_governs, serve};
use super::kube_rs::schema;
use super::peer::Upstream;
use super::served::Served;

/// What has been applied governs every instance within this. How long the disk takes before that is not asked.
const AT_ONCE: Duration = Duration::from_millis(100);
const ROUNDS: u32 = 11;
const COUNTER: &str = "example.com/counter";

/// Two gateways with their APIs over one etcd.
struct Pair {
    instances: Vec<Instance>,
    _etcd: EtcdServer,
}

struct Instance {
    served: Served,
    address: SocketAddr,
    _upstream: Upstream,
    _folder: TempDir,
}

// === impl Instance ===

impl Instance {
    fn start(store: &str) -> Self {
        let (upstream, folder) = (Upstream::start(), folder());
        let (served, address) = serve(&upstream, folder.path(), &["--store", store]);
        Self { served, address, _upstream: upstream, _folder: folder }
    }
}

// === impl Pair ===

impl Pair {
    /// Both start at once, and both find an empty etcd. Says that the test is skipped where there is no etcd.
    async fn start() -> Option<Self> {
        if Command::new("etcd").arg("--version").output().is_err() {
            evenkeel_missing_tool::skip("etcd is not installed");
            return None;
        }
        let etcd = EtcdServer::start().await;
        let store = format!("etcd://{}", etcd.endpoint());
        let instances = thread::scope(|scope| {
            let starting = [(); 2].map(|()| scope.spawn(|| Instance::start(&store)));
            starting.map(|instance| instance.join().unwrap()).into()
        });
        Some(Self { instances, _etcd: etcd })
    }

    async fn api(&self, index: usize) -> Api<FlowSchema> {
        Api::all(self.instances[index].served.admin().await)
    }
}

#[tokio::test]
async fn what_is_written_through_one_governs_the_other_within_a_tenth_of_a_second() {
    let Some(pair) = Pair::start().await else { return };
    let apis = [pair.api(0).await, pair.api(1).await];
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..ROUNDS {
        let writer = usize::from(round % 2 == 1);
        let name = format!("everybody-{round}");
        let mut object = everybody("exempt");
        object["metadata"]["name"] = json!(name);
        // Each goes before all that were there.
        object["spec"]["matchingPrecedence"] = json!(ROUNDS + 1 - round);
        let applied = apis[writer].patch(&name, &PatchParams::apply("test"), &Patch::Apply(object)).await.unwrap();
        let applied_at = Instant::now();
        let uid = applied.uid().unwrap();
        for (times, instance) in times.iter_mut().zip([1 - writer, writer]) {
            schema_governs(pair.instances[instance].address, &uid);
            times.push(applied_at.elapsed());
        }
    }
    for times in &mut times {
        times.sort();
        assert!(times[times.len() / 2] < AT_ONCE, "{times:?}");
    }
}

#[tokio::test]
async fn what_is_written_through_one_is_told_and_read_by_the_other() {
    let Some(pair) = Pair::start().await else { return };
    let (here, there) = (pair.api(0).await, pair.api(1).await);
    let start = there.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    let watch = WatchParams::default().labels("test=told");
    let mut events = pin!(there.watch(&watch, &start).await.unwrap());
    for number in 0..20_u32 {
        let mut object = schema(&format!("told-{number}"), 600);
        object.labels_mut().insert("test".to_owned(), "told".to_owned());
        let created = here.create(&PostParams::default(), &object).await.unwrap();
        // API-145: what has been answered is in every list that is asked for afterwards, wherever it is asked for.
        let listed = there.list(&ListParams::default().labels("test=told")).await.unwrap();
        assert_eq!(listed.items.len(), usize::try_from(number).unwrap() + 1);
        let name = created.name_any();
        assert_eq!(there.get(&name).await.unwrap().uid(), created.uid());
        let told = timeout(PATIENCE, next_added(&mut events)).await.unwrap();
        assert_eq!((told.name_any(), told.uid()), (name, created.uid()));
    }
}

/// The next object that appears; conditions are written to those that did.
async fn next_added(events: &mut (impl Stream<Item = kube::Result<WatchEvent<FlowSchema>>> + Unpin)) -> FlowSchema {
    loop {
        match events.next().await.unwrap().unwrap() {
            WatchEvent::Added(object) => return object,
            // A bookmark comes once a minute.
            WatchEvent::Modified(_) | WatchEvent::Bookmark(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn writers_through_both_lose_no_update() {
    const WRITERS: usize = 6;
    const INCREMENTS: usize = 10;
    let Some(pair) = Pair::start().await else { return };
    pair.api(0).await.create(&PostParams::default(), &schema("counted", 600)).await.unwrap();
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let api = pair.api(writer % 2).await;
        writers.spawn(async move {
            for _ in 0..INCREMENTS {
                increment(&api).await;
            }
        });
    }
    // Each increment may take several attempts.
    timeout(5 * PATIENCE, writers.join_all()).await.expect("all writers succeed in the end");
    for index in 0..2 {
        let counted = pair.api(index).await.get("counted").await.unwrap();
        assert_eq!(counted.annotations()[COUNTER], (WRITERS * INCREMENTS).to_string());
    }
}

/// Adds one to the annotation, however often others are faster.
async fn increment(api: &Api<FlowSchema>) {
    loop {
        let mut object = api.get("counted").await.unwrap();
        let count = object.annotations().get(COUNTER).map_or(0, |count| count.parse::<usize>().unwrap());
        object.annotations_mut().insert(COUNTER.to_owned(), (count + 1).to_string());
        match api.replace("counted", &PostParams::default(), &object).await {
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            other => return drop(other.unwrap()),
        }
    }
}

#[tokio::test]
async fn two_that_start_at_once_make_each_bootstrap_object_once() {
    let Some(pair) = Pair::start().await else { return };
    let uids = |list: Vec<FlowSchema>| -> BTreeMap<String, Option<String>> {
        list.into_iter().map(|object| (object.name_any(), object.uid())).collect()
    };
    let here = uids(pair.api(0).await.list(&ListParams::default()).await.unwrap().items);
    let there = uids(pair.api(1).await.list(&ListParams::default()).await.unwrap().items);
    assert_eq!((here.len(), &here), (11, &there));
}
