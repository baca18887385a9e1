//! A disk that is full for a while, or whose writes and syncs fail for a while: what was acknowledged stays, what was refused
//! does not appear, and the store goes on by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use evenkeel_api::Kind;
use proptest::prelude::*;
use proptest::test_runner::RngAlgorithm;
use redb::StorageBackend;

use crate::{At, Error, HistoryLimits, ListOptions, Store, WatchOptions};

use super::{EmbeddedStore, open};

const BLOCK: usize = 4096;
const KIND: Kind = Kind::FlowSchema;
/// Long enough for a slow machine.
const SOON: Duration = Duration::from_secs(60);

/// A disk with so many blocks, which fails when it is told to. Clones share it.
#[derive(Debug, Clone)]
struct FailingDisk(Arc<Mutex<DiskState>>);

#[derive(Debug, Default)]
struct DiskState {
    /// The content that reads return.
    now: Vec<u8>,
    /// The content that is left after a loss of power.
    synced: Vec<u8>,
    /// The blocks that the next sync writes. Those that a failed sync could not write are not among them: systems take them
    /// for written.
    dirty: BTreeSet<usize>,
    /// The blocks that have room on the disk.
    allocated: BTreeSet<usize>,
    blocks_max: usize,
    /// How many of the next writes and syncs succeed before one fails, and how many fail then.
    failures: Option<(u32, u32)>,
    /// How many writes found no room.
    full: u32,
}

// === impl FailingDisk ===

impl FailingDisk {
    fn new(blocks_max: usize) -> Self {
        Self(Arc::new(Mutex::new(DiskState { blocks_max, ..DiskState::default() })))
    }

    fn state(&self) -> MutexGuard<'_, DiskState> {
        self.0.lock().unwrap()
    }

    /// The disk after a loss of power.
    fn after_loss(&self) -> Self {
        let now = self.state().synced.clone();
        let disk = Self::new(usize::MAX);
        disk.state().now.clone_from(&now);
        disk.state().synced = now;
        disk
    }
}

// === impl DiskState ===

impl DiskState {
    /// Fails if a failure is due.
    fn fail(&mut self) -> io::Result<()> {
        match &mut self.failures {
            None => Ok(()),
            Some((after @ 1.., _)) => {
                *after -= 1;
                Ok(())
            }
            Some((0, times @ 1..)) => {
                *times -= 1;
                Err(io::Error::other("the disk failed"))
            }
            Some((0, 0)) => {
                self.failures = None;
                Ok(())
            }
        }
    }
}

impl StorageBackend for FailingDisk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.state().now.len() as u64)
    }

    fn read(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let start = usize::try_from(offset).unwrap();
        let state = self.state();
        state.now.get(start..start + len).map(<[u8]>::to_vec).ok_or(io::ErrorKind::UnexpectedEof.into())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.state();
        state.fail()?;
        let len = usize::try_from(len).unwrap();
        state.now.resize(len, 0);
        // The length is part of the file's description, and a sync writes it.
        state.allocated.split_off(&len.div_ceil(BLOCK));
        Ok(())
    }

    fn sync_data(&self, _eventual: bool) -> io::Result<()> {
        let mut state = self.state();
        let failed = state.fail();
        let state = &mut *state;
        let dirty = std::mem::take(&mut state.dirty);
        failed?;
        state.synced.resize(state.now.len(), 0);
        for block in dirty {
            let end = ((block + 1) * BLOCK).min(state.now.len());
            if let Some(bytes) = state.now.get(block * BLOCK..end) {
                state.synced[block * BLOCK..end].copy_from_slice(bytes);
            }
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        state.fail()?;
        let start = usize::try_from(offset).unwrap();
        // As many blocks as there is room for.
        let mut written = 0;
        while written < data.len() {
            let block = (start + written) / BLOCK;
            let end = ((block + 1) * BLOCK - start).min(data.len());
            if !state.allocated.contains(&block) {
                if state.allocated.len() >= state.blocks_max {
                    state.full += 1;
                    return Err(io::ErrorKind::StorageFull.into());
                }
                state.allocated.insert(block);
            }
            state.dirty.insert(block);
            state.now[start + written..start + end].copy_from_slice(&data[written..end]);
            written = end;
        }
        Ok(())
    }
}

fn payload(number: u64) -> String {
    format!("{number:0>3000}")
}

/// The content of a store: names and payloads.
async fn objects(store: &EmbeddedStore) -> BTreeMap<String, String> {
    let list = store.list(KIND, ListOptions::default()).await.unwrap();
    let text = |payload: &[u8]| String::from_utf8(payload.to_vec()).unwrap();
    list.items.iter().map(|object| (object.name.to_string(), text(&object.payload))).collect()
}

async fn recovered(store: &EmbeddedStore) {
    let start = Instant::now();
    while store.freshness().is_broken {
        assert!(start.elapsed() < SOON, "{:?}", store.problem());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(store.problem(), None);
}

fn open_disk(disk: &FailingDisk) -> EmbeddedStore {
    EmbeddedStore::start(open::open_again(disk.clone(), HistoryLimits::default()).unwrap()).unwrap()
}

#[tokio::test]
async fn a_store_on_a_full_disk_takes_writes_again_when_there_is_room() {
    let disk = FailingDisk::new(usize::MAX);
    let store = EmbeddedStore::start(open::open_new(disk.clone(), HistoryLimits::default()).unwrap()).unwrap();
    let mut watch = store.watch(WatchOptions::after(store.revision().await.unwrap())).await.unwrap();
    let room = disk.state().allocated.len() + 40;
    disk.state().blocks_max = room;
    let mut acknowledged = BTreeMap::new();
    let refused = loop {
        let number = acknowledged.len() as u64;
        let name = format!("a{number}");
        match store.create(KIND, &name, payload(number).into()).await {
            Ok(_) => acknowledged.insert(name, payload(number)),
            Err(error) => break error,
        };
    };
    assert!(acknowledged.len() > 3);
    // Nothing was written for certain, so that the client may simply try again.
    assert!(matches!(&refused, Error::Unavailable(problem) if problem.contains("no storage space")), "{refused:?}");
    assert!(store.freshness().is_broken);
    assert!(store.problem().unwrap().contains("no storage space"), "{:?}", store.problem());
    let again = store.create(KIND, "again", payload(0).into()).await;
    assert!(matches!(again, Err(Error::Unavailable(_))), "{again:?}");
    let compacted = store.compact(store.revision().await.unwrap()).await;
    assert!(matches!(compacted, Err(Error::Unavailable(_))), "{compacted:?}");
    assert_eq!(objects(&store).await, acknowledged);
    // The store does not count as recovered while the disk is full, however often it tries.
    let (full, start) = (disk.state().full, Instant::now());
    while disk.state().full < full + 3 {
        assert!(start.elapsed() < SOON, "it does not try: {:?}", store.problem());
        assert!(store.freshness().is_broken);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }

    disk.state().blocks_max = usize::MAX;
    recovered(&store).await;
    store.create(KIND, "later", payload(7).into()).await.unwrap();
    acknowledged.insert("later".to_owned(), payload(7));
    assert_eq!(objects(&store).await, acknowledged);
    for number in 0..acknowledged.len() - 1 {
        assert_eq!(watch.next().await.unwrap().name(), format!("a{number}"));
    }
    assert_eq!(watch.next().await.unwrap().name(), "later");
    drop(store);
    for disk in [disk.clone(), disk.after_loss()] {
        assert_eq!(objects(&open_disk(&disk)).await, acknowledged);
    }
}

#[tokio::test]
async fn a_write_whose_sync_fails_is_written_again_before_it_is_acknowledged() {
    let disk = FailingDisk::new(usize::MAX);
    let store = EmbeddedStore::start(open::open_new(disk.clone(), HistoryLimits::default()).unwrap()).unwrap();
    store.create(KIND, "first", payload(1).into()).await.unwrap();
    // The sync is the last thing that a write does; all before it succeeds.
    let mut after = 0;
    let acknowledged = loop {
        let before = objects(&store).await.len();
        disk.state().failures = Some((after, 1));
        let written = store.create(KIND, &format!("a{after}"), payload(2).into()).await;
        let was_hit = disk.state().failures.is_none_or(|(left, times)| left == 0 && times == 0);
        disk.state().failures = None;
        recovered(&store).await;
        assert_eq!(objects(&store).await.len(), before + usize::from(written.is_ok()), "{written:?}");
        if !was_hit {
            break objects(&store).await;
        }
        after += 1;
    };
    assert!(after > 3, "there are several writes and a sync to fail");
    // Only what has reached the disk is left.
    assert_eq!(objects(&open_disk(&disk.after_loss())).await, acknowledged);
}

#[tokio::test]
async fn a_file_that_lost_what_was_acknowledged_is_not_written_to() {
    let disk = FailingDisk::new(usize::MAX);
    let store = EmbeddedStore::start(open::open_new(disk.clone(), HistoryLimits::default()).unwrap()).unwrap();
    store.create(KIND, "a", payload(1).into()).await.unwrap();
    let old = disk.state().now.clone();
    store.create(KIND, "b", payload(2).into()).await.unwrap();
    disk.state().failures = Some((0, 1));
    disk.state().now = old;
    store.create(KIND, "c", payload(3).into()).await.unwrap_err();
    let start = Instant::now();
    while !store.problem().unwrap().contains("but 3 was acknowledged last") {
        assert!(start.elapsed() < SOON, "{:?}", store.problem());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(objects(&store).await.len(), 2);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20, rng_algorithm: RngAlgorithm::ChaCha, ..ProptestConfig::default() })]
    #[test]
    fn acknowledged_writes_stay_and_refused_ones_do_not_appear(
        faults in prop::collection::vec((0_u32..60, 1_u32..6), 1..4),
        updates in any::<bool>(),
    ) {
        let disk = FailingDisk::new(usize::MAX);
        let store = EmbeddedStore::start(open::open_new(disk.clone(), HistoryLimits::default()).unwrap()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let mut expected: BTreeMap<String, String> = BTreeMap::new();
            let mut number = 0;
            for fault in faults {
                disk.state().failures = Some(fault);
                for _ in 0..20 {
                    number += 1;
                    let name = if updates { "one".to_owned() } else { format!("a{number}") };
                    let written = match store.get(KIND, &name, At::Latest).await.unwrap() {
                        None => store.create(KIND, &name, payload(number).into()).await,
                        Some(old) => store.update(KIND, &name, old.revision, payload(number).into()).await,
                    };
                    match written {
                        Ok(_) => {
                            expected.insert(name, payload(number));
                        }
                        Err(Error::Unavailable(_)) => {}
                        Err(Error::Unknown(_)) => {
                            // The outcome of the write is known as soon as the store has recovered.
                            recovered(&store).await;
                            let found = store.get(KIND, &name, At::Latest).await.unwrap();
                            let found = found.map(|found| String::from_utf8(found.payload.to_vec()).unwrap());
                            assert!(found == expected.get(&name).cloned() || found == Some(payload(number)));
                            expected.extend(found.map(|found| (name, found)));
                        }
                        Err(other) => panic!("{other}"),
                    }
                }
                recovered(&store).await;
                assert_eq!(objects(&store).await, expected);
            }
            assert_eq!(objects(&open_disk(&disk.after_loss())).await, expected);
            drop(store);
            assert_eq!(objects(&open_disk(&disk)).await, expected);
        });
    }
}
