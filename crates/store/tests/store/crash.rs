//! A process that writes is killed at random moments. Afterwards, every acknowledged write is there, and no write is there in
//! part.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use evenkeel_store::{At, EmbeddedStore, HistoryLimits, ListOptions, Store, WatchOptions};
use tokio::task::JoinSet;

use crate::folder::folder;
use crate::random::Random;
use crate::samples::{SCHEMA, text};

/// Tells the child that it is one, and which file to write to.
const FILE: &str = "EVENKEEL_CRASH_FILE";
/// Tells the child which names are its own in this round.
const ROUND: &str = "EVENKEEL_CRASH_ROUND";

const KILLS: u64 = 250;
const WRITERS: usize = 8;
/// Short, so that the history is cut while the process is killed.
const LIMITS: HistoryLimits = HistoryLimits { events: 300, bytes: 1 << 20 };

/// The last acknowledged write of each name: the revision and the payload, or `None` for a deletion.
type AcknowledgedWrites = BTreeMap<String, (u64, Option<String>)>;

fn open(path: &Path) -> EmbeddedStore {
    EmbeddedStore::open(path, LIMITS).unwrap()
}

#[test]
fn what_was_answered_survives_a_kill() {
    let mut random = Random::new("what_was_answered_survives_a_kill");
    let folder = folder();
    let path = folder.path().join("store");
    drop(open(&path));
    let mut told = AcknowledgedWrites::new();
    let mut acknowledged = 0;
    for round in 0..KILLS {
        let (lines, now) = run_and_kill(&path, round, random.below(60));
        acknowledged += lines;
        told.extend(now);
        check(&path, &told);
    }
    println!("{acknowledged} writes were acknowledged in {KILLS} lives");
    assert!(acknowledged > KILLS, "the process was killed before it could write");
}

/// Lets a child write until some more acknowledgements have come after its first, and kills it.
fn run_and_kill(path: &Path, round: u64, after: u64) -> (u64, AcknowledgedWrites) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["crash::child", "--exact", "--ignored", "--nocapture"])
        .env(FILE, path)
        .env(ROUND, round.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut told = AcknowledgedWrites::new();
    let mut count = 0;
    // Everything that was printed counts, also what is read only after the kill.
    while let Some(Ok(line)) = lines.next() {
        let Some(line) = line.strip_prefix("told ") else { continue };
        let mut words = line.split(' ');
        let (Some(name), Some(revision), payload) = (words.next(), words.next(), words.next()) else { break };
        told.insert(name.to_owned(), (revision.parse().unwrap(), payload.map(ToOwned::to_owned)));
        count += 1;
        if count == after.max(1) {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    (count, told)
}

/// The last acknowledged write of every name is in the file, or a later one that was not acknowledged any more.
fn check(path: &Path, told: &AcknowledgedWrites) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = open(path);
        let revision = store.revision().await.unwrap();
        for (name, (told_revision, told_payload)) in told {
            assert!(*told_revision <= revision);
            match store.get(SCHEMA, name, At::Latest).await.unwrap() {
                Some(object) => {
                    assert!(object.revision >= *told_revision, "{name}");
                    if object.revision == *told_revision {
                        assert_eq!(Some(&*object.payload), told_payload.as_ref().map(String::as_bytes), "{name}");
                    }
                    assert!(is_whole(&object.payload), "{name} is there by half");
                }
                // Removed, or removed by a write without a response.
                None => assert!(told_payload.is_none() || revision > *told_revision, "{name} is lost"),
            }
        }
        // The history leads exactly to what is there.
        let all = store.list(SCHEMA, ListOptions::default()).await.unwrap();
        let oldest = revision.saturating_sub(LIMITS.events as u64).max(1);
        let past = store.list(SCHEMA, ListOptions { at: At::Exactly(oldest), ..ListOptions::default() }).await.unwrap();
        let mut objects: BTreeMap<_, _> = past.items.into_iter().map(|object| (object.name.clone(), object)).collect();
        let mut watch = store.watch(WatchOptions::after(oldest)).await.unwrap();
        for expected in oldest + 1..=revision {
            let event = watch.try_next().unwrap().unwrap();
            assert_eq!(event.revision, expected);
            match event.object() {
                Some(object) => objects.insert(object.name.clone(), Arc::clone(object)),
                None => objects.remove(event.name()),
            };
        }
        assert_eq!(objects.into_values().collect::<Vec<_>>(), all.items);
    });
}

/// A payload says its own length, and is then filled up to it.
fn payload(number: u64) -> String {
    let len = 20 + usize::try_from(number * 37 % 3000).unwrap();
    format!("{len:x<len$}")
}

fn is_whole(payload: &[u8]) -> bool {
    let text = std::str::from_utf8(payload).unwrap();
    text.trim_end_matches('x').parse() == Ok(text.len())
}

/// What the child process does: several writers, each with names of its own, print every acknowledged write on the standard output.
#[test]
#[ignore = "run by the test above in a process of its own"]
fn child() {
    let (Some(path), Ok(round)) = (std::env::var_os(FILE), std::env::var(ROUND)) else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async move {
        let store = Arc::new(open(Path::new(&path)));
        let mut writers = JoinSet::new();
        for writer in 0..WRITERS {
            writers.spawn(write(Arc::clone(&store), format!("{round}-{writer}")));
        }
        writers.join_all().await;
    });
}

async fn write(store: Arc<EmbeddedStore>, name: String) {
    let start = Instant::now();
    let mut last: Option<u64> = None;
    // If the parent does not kill us, something is wrong with it.
    for number in 0.. {
        assert!(start.elapsed() < Duration::from_secs(60));
        let payload = payload(number);
        match last {
            Some(revision) if number % 5 == 4 => {
                let revision = store.delete(SCHEMA, &name, revision).await.unwrap();
                tell(&format!("told {name} {revision}\n"));
                last = None;
            }
            Some(revision) => {
                let object = store.update(SCHEMA, &name, revision, text(&payload)).await.unwrap();
                tell(&format!("told {name} {} {payload}\n", object.revision));
                last = Some(object.revision);
            }
            None => {
                let object = store.create(SCHEMA, &name, text(&payload)).await.unwrap();
                tell(&format!("told {name} {} {payload}\n", object.revision));
                last = Some(object.revision);
            }
        }
    }
}

fn tell(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(line.as_bytes()).and_then(|()| out.flush()).unwrap();
}
