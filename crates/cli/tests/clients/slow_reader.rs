//! Watchers that do not read: they cost little, end alone, and are nothing to the others.

use std::fs;
use std::pin::{Pin, pin};
use std::time::{Duration, Instant};

use k8s_openapi::api::flowcontrol::v1::FlowSchema;
use kube::api::{Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;
use tempfile::TempDir;
use tokio::time::{sleep, timeout};
use tokio_stream::{Stream, StreamExt};

use super::child::PATIENCE;
use super::folder::folder;
use super::kube_rs::schema;
use super::served::Served;

/// So many watch and never read.
const READERS: usize = 20;
/// All events together are far more than what a connection holds.
const CHANGES: u32 = 120;
const ANNOTATION_BYTES: usize = 250_000;
/// Room for what is kept of objects and of the history. What is not read, kept for each reader, would be 600 MB more.
const MEMORY_MAX: u64 = 450 << 20;
/// A change reaches a watcher that reads within this, whoever else does not read. It is much even for a busy machine, and far
/// less than the time after which one who does not read is given up.
const SOON: Duration = Duration::from_secs(5);
const PADDING: &str = "example.com/padding";

/// A server with watchers that do not read, for each of whom there is more than a connection holds.
struct Flooded {
    server: Served,
    sleepers: Vec<Events>,
    /// How many files the server had open before they came.
    files_before: usize,
    /// How long each change took to reach a watcher that reads.
    times: Vec<Duration>,
    _folder: TempDir,
}

type Events = Pin<Box<dyn Stream<Item = kube::Result<WatchEvent<FlowSchema>>>>>;

// === impl Flooded ===

impl Flooded {
    async fn start() -> Self {
        let folder = folder();
        let server = Served::api(folder.path(), &["--no-status-controller"]);
        let api: Api<FlowSchema> = Api::all(server.admin().await);
        let start =
            api.create(&PostParams::default(), &schema("large", 600)).await.unwrap().resource_version().unwrap();
        let watch = WatchParams::default().fields("metadata.name=large");
        let mut events = pin!(api.watch(&watch, &start).await.unwrap());
        let files_before = open_files(&server);
        let mut sleepers: Vec<Events> = Vec::new();
        for _ in 0..READERS {
            // A connection of its own for each, of which nothing is read but the head of the answer.
            let api: Api<FlowSchema> = Api::all(server.admin().await);
            sleepers.push(Box::pin(api.watch(&watch, &start).await.unwrap()));
        }
        assert!(open_files(&server) >= files_before + READERS);
        let mut times = Vec::new();
        for number in 0..CHANGES {
            let padding = format!("{number}{}", "-".repeat(ANNOTATION_BYTES));
            let merge = Patch::Merge(json!({"metadata": {"annotations": {PADDING: padding}}}));
            let started_at = Instant::now();
            api.patch("large", &PatchParams::default(), &merge).await.unwrap();
            let event = timeout(PATIENCE, events.next()).await.expect("an event in time").unwrap().unwrap();
            let WatchEvent::Modified(object) = event else { panic!("{event:?}") };
            assert_eq!(object.annotations()[PADDING], padding);
            times.push(started_at.elapsed());
        }
        Self { server, sleepers, files_before, times, _folder: folder }
    }
}

#[tokio::test]
async fn watchers_that_do_not_read_cost_little_and_delay_nobody() {
    let mut flooded = Flooded::start().await;
    let memory = memory_bytes(&flooded.server);
    assert!(memory < MEMORY_MAX, "{memory} bytes");
    flooded.times.sort();
    assert!(flooded.times[flooded.times.len() / 2] < SOON, "{:?}", flooded.times);
}

#[tokio::test]
#[ignore = "takes more than a minute; run it with --ignored"]
async fn watchers_that_do_not_read_are_closed() {
    let flooded = Flooded::start().await;
    let until = Instant::now() + 2 * PATIENCE;
    while open_files(&flooded.server) > flooded.files_before {
        assert!(Instant::now() < until, "they are not closed");
        sleep(Duration::from_millis(50)).await;
    }
    for mut rest in flooded.sleepers {
        // What is left of the stream has an end, though not a good one.
        while timeout(PATIENCE, rest.next()).await.expect("an end").is_some_and(|event| event.is_ok()) {}
    }
}

fn open_files(server: &Served) -> usize {
    fs::read_dir(format!("/proc/{}/fd", server.process.id())).unwrap().count()
}

/// What the process has in memory.
fn memory_bytes(server: &Served) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.process.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    kilobytes * 1024
}
