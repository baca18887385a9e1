//! Files that are not whole, not ours, or in use.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use evenkeel_store::{At, EmbeddedStore, Error, HistoryLimits, Store, WatchOptions};
use tempfile::TempDir;

use crate::folder::folder;
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
    filled_in(tempfile::tempdir().unwrap()).await
}

async fn filled_in(folder: TempDir) -> (TempDir, PathBuf) {
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

/// The bytes of the header of redb: what the file is, and its last two states.
const HEADER_BYTES: usize = 320;

/// Flips one bit of a file after the other, and opens it: how often nothing was lost, and how often it was refused.
async fn flip_bits(path: &Path, bits: impl Iterator<Item = usize>) -> (usize, usize) {
    let (mut bytes, record) = (fs::read(path).unwrap(), fs::read(path.with_extension("revision")).unwrap());
    let (mut whole, mut refused) = (0, 0);
    for bit in bits {
        bytes[bit / 8] ^= 1 << (bit % 8);
        fs::write(path.with_extension("revision"), &record).unwrap();
        match open_bytes(path, &bytes).await {
            Ok(()) => whole += 1,
            Err(
                Error::Damaged { .. } | Error::LostWrites { .. } | Error::Foreign { .. } | Error::NewerFormat { .. },
            ) => refused += 1,
            Err(other) => panic!("bit {bit}: {other}"),
        }
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
    (whole, refused)
}

/// What a process that is killed leaves behind.
async fn left_by_a_kill() -> (TempDir, PathBuf) {
    let (folder, path) = filled_in(folder()).await;
    let store = open(&path).unwrap();
    // The last write, which `open_bytes` looks for.
    let last = store.get(SCHEMA, "a0", At::Latest).await.unwrap().unwrap();
    let before = store.update(SCHEMA, "a0", last.revision, text("before")).await.unwrap();
    store.update(SCHEMA, "a0", before.revision, payload(0)).await.unwrap();
    let killed = folder.path().join("killed");
    fs::copy(&path, &killed).unwrap();
    fs::copy(path.with_extension("revision"), killed.with_extension("revision")).unwrap();
    (folder, killed)
}

#[tokio::test]
async fn a_flipped_bit_after_a_kill_is_noticed_or_loses_nothing() {
    let (_folder, path) = left_by_a_kill().await;
    // The byte that says which of the two states is the last, and bits of all other fields.
    let (whole, refused) = flip_bits(&path, (72..80).chain((0..HEADER_BYTES * 8).step_by(11))).await;
    assert!(whole > 0 && refused > 0, "{whole} were whole, {refused} refused");
}

#[tokio::test]
#[ignore = "takes a minute; run it after a change to how files are opened or what redb writes"]
async fn each_flipped_bit_after_a_kill_is_noticed_or_loses_nothing() {
    let (_folder, path) = left_by_a_kill().await;
    let (whole, refused) = flip_bits(&path, 0..HEADER_BYTES * 8).await;
    println!("header: {whole} whole, {refused} refused");
    let bits = fs::metadata(&path).unwrap().len() * 8;
    let mut random = Random::new("each_flipped_bit_after_a_kill_is_noticed_or_loses_nothing");
    let (whole, refused) = flip_bits(&path, (0..400).map(|_| usize::try_from(random.below(bits)).unwrap())).await;
    println!("elsewhere: {whole} whole, {refused} refused");
}

#[tokio::test]
async fn a_store_that_ends_before_what_was_acknowledged_is_refused_until_told_otherwise() {
    let (_folder, path) = filled().await;
    let before = fs::read(&path).unwrap();
    let store = open(&path).unwrap();
    let acknowledged = store.create(LEVEL, "b", text("last")).await.unwrap().revision;
    store.close().await.unwrap();
    // The file as it was before the last write: as if the disk had lost it.
    let error = open_bytes(&path, &before).await.unwrap_err();
    let (shown, record) = (path.display(), path.with_extension("revision"));
    let expected = format!(
        "{shown} has lost writes: it ends with revision {}, but revision {acknowledged} was acknowledged. It was left as it \
         is; put a backup in its place, or, to go on without the lost writes, delete {}",
        acknowledged - 1,
        record.display()
    );
    assert_eq!(error.to_string(), expected);
    fs::remove_file(&record).unwrap();
    open_bytes(&path, &before).await.unwrap();
    // A damaged record is no reason to refuse a store that is whole.
    fs::write(&record, b"garbage").unwrap();
    open_bytes(&path, &before).await.unwrap();
    // Nor is that of a store that is gone.
    fs::remove_file(&path).unwrap();
    assert_eq!(open(&path).unwrap().revision().await.unwrap(), 1);
}

#[tokio::test]
async fn what_is_not_ours_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    let shown = path.display();
    for (bytes, problem) in [(&b""[..], "it is empty"), (b"dear diary", "it does not begin as one")] {
        let error = open_bytes(&path, bytes).await.unwrap_err();
        assert!(matches!(error, Error::Foreign { .. }));
        let expected = format!("{shown} is not a store of Evenkeel: {problem}. It was not changed; name another file");
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
    let expected = format!(
        "{shown} has file format 7, but this version of Evenkeel supports formats up to 1; use a newer version"
    );
    assert_eq!(error.to_string(), expected);
}

#[tokio::test]
async fn a_file_is_opened_once_in_a_process() {
    let (_folder, path) = filled().await;
    let first = open(&path).unwrap();
    let error = open(&path).unwrap_err();
    assert!(matches!(error, Error::InUse { .. }));
    let expected = format!("{} is in use: stop the process that has it open, or name another file", path.display());
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
async fn a_new_store_leaves_nothing_but_its_file_and_its_record() {
    let (folder, _path) = filled().await;
    let mut names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["store", "store.revision"]);
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
