//! Files that are not whole, not ours, or in use.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use evenkeel_store::{At, EmbeddedStore, Error, HistoryLimits, Store, WatchOptions};
use tempfile::TempDir;

use crate::random::Random;
use crate::samples::{LEVEL, SCHEMA, text};

/// Tells the child which file to hold open.
const FILE: &str = "EVENKEEL_HELD_FILE";
const OBJECTS: usize = 60;

fn open(path: &Path) -> Result<EmbeddedStore, Error> {
    EmbeddedStore::open(path, HistoryLimits::default())
}

/// A store with some objects that was closed properly.
async fn filled() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store = open(&path).unwrap();
    for number in 0..OBJECTS {
        let object = store.create(SCHEMA, &format!("a{number}"), payload(number)).await.unwrap();
        if number % 3 == 0 {
            store.update(SCHEMA, &object.name, object.revision, payload(number)).await.unwrap();
        }
    }
    store.close().await.unwrap();
    (folder, path)
}

fn payload(number: usize) -> bytes::Bytes {
    text(format!("{number} ").repeat(300))
}

/// Opens a file that holds these bytes. If that fails, it has to say so in our words and leave the file alone.
async fn open_bytes(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    fs::write(path, bytes).unwrap();
    match open(path) {
        Ok(store) => {
            for number in 0..OBJECTS {
                let object = store.get(SCHEMA, &format!("a{number}"), At::Latest).await.unwrap();
                assert_eq!(object.unwrap().payload, payload(number), "a{number} was lost without a word");
            }
            Ok(())
        }
        Err(error) => {
            assert!(fs::read(path).unwrap() == bytes, "the file was changed: {error}");
            Err(error)
        }
    }
}

#[tokio::test]
async fn a_store_is_as_it_was_left() {
    let (_folder, path) = filled().await;
    let bytes = fs::read(&path).unwrap();
    open_bytes(&path, &bytes).await.unwrap();
}

#[tokio::test]
async fn a_truncated_file_is_damaged() {
    let (_folder, path) = filled().await;
    let bytes = fs::read(&path).unwrap();
    let mut random = Random::new("a_truncated_file_is_damaged");
    let random_cuts = (0..40).map(|_| usize::try_from(random.below(bytes.len() as u64)).unwrap());
    let pages = (4096..bytes.len()).step_by(bytes.len() / 20 / 4096 * 4096);
    for len in [1, 8, 9, 10, 100, 320, 4095].into_iter().chain(pages).chain(random_cuts) {
        match open_bytes(&path, &bytes[..len]).await {
            Err(Error::Damaged { .. }) => {}
            Err(Error::Foreign { .. }) => assert!(len < 9),
            other => panic!("{len} of {} bytes: {other:?}", bytes.len()),
        }
    }
}

#[tokio::test]
async fn a_torn_file_is_damaged_or_loses_nothing() {
    let (_folder, path) = filled().await;
    let bytes = fs::read(&path).unwrap();
    let mut random = Random::new("a_torn_file_is_damaged_or_loses_nothing");
    let mut refused = 0;
    for _ in 0..120 {
        let mut torn = bytes.clone();
        let start = usize::try_from(random.below(torn.len() as u64)).unwrap();
        let end = torn.len().min(start + random.pick(&[1, 16, 512, 4096, 20_000]));
        match random.below(3) {
            0 => torn[start..end].fill(0),
            1 => torn[start..end].iter_mut().for_each(|byte| *byte ^= 0x55),
            _ => torn[start..end].iter_mut().for_each(|byte| *byte = random.next().to_le_bytes()[0]),
        }
        match open_bytes(&path, &torn).await {
            Ok(()) => {}
            Err(Error::Damaged { .. } | Error::Foreign { .. } | Error::NewerFormat { .. }) => refused += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert!(refused > 0, "nothing that was torn was noticed");
}

#[tokio::test]
async fn what_is_not_ours_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    let shown = path.display();
    for (bytes, problem) in [(&b""[..], "it is empty"), (b"dear diary", "it does not begin as one")] {
        let error = open_bytes(&path, bytes).await.unwrap_err();
        assert!(matches!(error, Error::Foreign { .. }));
        let expected =
            format!("{shown} is not a store of Evenkeel: {problem}. It was left as it is; name another file");
        assert_eq!(error.to_string(), expected);
    }
}

#[tokio::test]
async fn a_database_of_another_program_is_left_alone() {
    const TABLE: redb::TableDefinition<'_, &str, u64> = redb::TableDefinition::new("theirs");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("theirs.redb");
    let database = redb::Database::create(&path).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(TABLE).unwrap().insert("a", 1).unwrap();
    transaction.commit().unwrap();
    drop(database);
    let error = open_bytes(&path, &fs::read(&path).unwrap()).await.unwrap_err();
    assert!(
        matches!(&error, Error::Foreign { problem, .. } if problem == "it is a database of another program"),
        "{error}"
    );
}

#[tokio::test]
async fn a_newer_format_is_left_alone() {
    const META: redb::TableDefinition<'_, &str, u64> = redb::TableDefinition::new("evenkeel.meta");
    let (_folder, path) = filled().await;
    let database = redb::Database::open(&path).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(META).unwrap().insert("format", 7).unwrap();
    transaction.commit().unwrap();
    drop(database);
    let error = open_bytes(&path, &fs::read(&path).unwrap()).await.unwrap_err();
    let shown = path.display();
    let expected = format!("{shown} has file format 7, and this Evenkeel knows formats up to 1: use a newer one");
    assert_eq!(error.to_string(), expected);
}

#[tokio::test]
async fn a_file_is_opened_once_in_a_process() {
    let (_folder, path) = filled().await;
    let first = open(&path).unwrap();
    let error = open(&path).unwrap_err();
    assert!(matches!(error, Error::InUse { .. }));
    let expected = format!("{} is in use: stop the Evenkeel that has it open, or name another file", path.display());
    assert_eq!(error.to_string(), expected);
    first.create(LEVEL, "b", text("still works")).await.unwrap();
    drop(first);
    assert!(open(&path).unwrap().get(LEVEL, "b", At::Latest).await.unwrap().is_some());
}

#[tokio::test]
async fn a_closed_store_frees_the_file_before_it_is_dropped() {
    let (_folder, path) = filled().await;
    let first = open(&path).unwrap();
    first.close().await.unwrap();
    drop(open(&path).unwrap());
}

#[test]
fn a_file_is_opened_by_one_process() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (_folder, path) = runtime.block_on(filled());
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["damage::holder", "--exact", "--ignored", "--nocapture"])
        .env(FILE, &path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "held"));
    assert!(matches!(open(&path), Err(Error::InUse { .. })));
    // It ends with its input; what it says until then has to be read.
    drop(child.stdin.take());
    assert!(lines.all(|line| line.is_ok()));
    assert!(child.wait().unwrap().success());
    open(&path).unwrap();
}

/// Another process that has the file open until its input ends.
#[test]
#[ignore = "run by the test above in a process of its own"]
fn holder() {
    let Some(path) = std::env::var_os(FILE) else { return };
    let store = open(Path::new(&path)).unwrap();
    // On a line of its own: the name of the test may stand before it.
    println!("\nheld");
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).unwrap();
    drop(store);
}

#[tokio::test]
async fn a_folder_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("missing").join("store");
    let error = open(&path).unwrap_err().to_string();
    assert!(error.starts_with(&format!("cannot create {}: ", path.display())), "{error}");
}

#[tokio::test]
async fn a_new_store_leaves_nothing_but_its_file() {
    let (folder, _path) = filled().await;
    let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["store"]);
}

#[tokio::test]
async fn the_history_is_kept_across_restarts_within_its_limits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let limits = HistoryLimits { events: 10, bytes: 1 << 20 };
    let mut told = Vec::new();
    for round in 0..4_u64 {
        let store = EmbeddedStore::open(&path, limits).unwrap();
        for number in 0..6 {
            told.push(store.create(SCHEMA, &format!("{round}-{number}"), text("")).await.unwrap());
        }
        store.close().await.unwrap();
        let store = EmbeddedStore::open(&path, limits).unwrap();
        let kept = &told[told.len().saturating_sub(limits.events)..];
        let oldest = kept[0].revision - 1;
        let mut watch = store.watch(WatchOptions::after(oldest)).await.unwrap();
        for object in kept {
            assert_eq!(watch.try_next().unwrap().unwrap().object(), Some(object));
        }
        let before = store.watch(WatchOptions::after(oldest - 1)).await;
        assert!(matches!(before, Err(Error::TooOld { .. })));
    }
}
