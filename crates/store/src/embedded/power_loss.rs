//! A loss of power at any moment: of what was written since the last sync, any part may have reached the disk.

use std::io;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use proptest::test_runner::RngAlgorithm;
use redb::StorageBackend;

use evenkeel_api::Kind;

use crate::{At, HistoryLimits, Store};

use super::{EmbeddedStore, open};

/// Disks write whole sectors.
const SECTOR: usize = 512;

/// A disk that remembers what was not synced yet.
#[derive(Debug, Clone, Default)]
struct UnsyncedDisk(Arc<Mutex<Contents>>);

#[derive(Debug, Clone, Default)]
struct Contents {
    synced: Vec<u8>,
    now: Vec<u8>,
}

impl UnsyncedDisk {
    /// The disk when the power is back: each sector that differs is in its old or in its new state.
    fn after_loss(&self, mut keep_new: impl FnMut() -> bool) -> Vec<u8> {
        let contents = self.0.lock().unwrap().clone();
        let (mut found, now) = (contents.synced, contents.now);
        // The length is written with the rest of the file's description, which can be before or after the data.
        if keep_new() || now.len() < found.len() {
            found.resize(now.len(), 0);
        }
        for (old, new) in found.chunks_mut(SECTOR).zip(now.chunks(SECTOR)) {
            if old != new && keep_new() {
                let len = old.len().min(new.len());
                old[..len].copy_from_slice(&new[..len]);
            }
        }
        found
    }
}

impl StorageBackend for UnsyncedDisk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().unwrap().now.len() as u64)
    }

    fn read(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let start = usize::try_from(offset).unwrap();
        let contents = self.0.lock().unwrap();
        contents.now.get(start..start + len).map(<[u8]>::to_vec).ok_or(io::ErrorKind::UnexpectedEof.into())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.lock().unwrap().now.resize(usize::try_from(len).unwrap(), 0);
        Ok(())
    }

    fn sync_data(&self, eventual: bool) -> io::Result<()> {
        assert!(!eventual, "a write is acknowledged only after a durable sync");
        let mut contents = self.0.lock().unwrap();
        contents.synced = contents.now.clone();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let start = usize::try_from(offset).unwrap();
        self.0.lock().unwrap().now[start..start + data.len()].copy_from_slice(data);
        Ok(())
    }
}

/// A disk that fails when its time has come, as if the power went off; what is written after that is lost.
#[derive(Debug)]
struct Failing {
    disk: UnsyncedDisk,
    operations_left: Mutex<u32>,
}

impl Failing {
    fn spend(&self) -> io::Result<()> {
        let mut left = self.operations_left.lock().unwrap();
        *left = left.checked_sub(1).ok_or_else(|| io::Error::other("no power"))?;
        Ok(())
    }
}

impl StorageBackend for Failing {
    fn len(&self) -> io::Result<u64> {
        self.disk.len()
    }

    fn read(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        self.disk.read(offset, len)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.spend()?;
        self.disk.set_len(len)
    }

    fn sync_data(&self, eventual: bool) -> io::Result<()> {
        self.spend()?;
        self.disk.sync_data(eventual)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.spend()?;
        self.disk.write(offset, data)
    }
}

/// Writes until the power goes off; returns the payload's number of every acknowledged object.
fn write_until_loss(disk: &UnsyncedDisk, operations: u32) -> Vec<(String, u64)> {
    drop(open::open_new(disk.clone(), HistoryLimits::default()).unwrap());
    let failing = Failing { disk: disk.clone(), operations_left: Mutex::new(operations) };
    let Ok(opened) = open::open_again(failing, HistoryLimits::default()) else { return Vec::new() };
    let store = EmbeddedStore::start(opened).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let mut acknowledged = Vec::new();
        for number in 0..40_u64 {
            let name = format!("a{number}");
            let payload = format!("{number:0>1500}").into();
            match store.create(Kind::FlowSchema, &name, payload).await {
                Ok(_) => acknowledged.push((name, number)),
                Err(_) => break,
            }
        }
        acknowledged
    })
}

#[tokio::test]
async fn a_write_that_fails_is_told_by_the_freshness() {
    let disk = UnsyncedDisk::default();
    drop(open::open_new(disk.clone(), HistoryLimits::default()).unwrap());
    let failing = Failing { disk, operations_left: Mutex::new(100) };
    let store = EmbeddedStore::start(open::open_again(failing, HistoryLimits::default()).unwrap()).unwrap();
    for number in 0.. {
        assert!(!store.freshness().is_broken);
        if store.create(Kind::FlowSchema, &format!("a{number}"), "a".into()).await.is_err() {
            break;
        }
    }
    assert!(store.freshness().is_broken);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, rng_algorithm: RngAlgorithm::ChaCha, ..ProptestConfig::default() })]
    #[test]
    fn what_was_answered_survives_a_loss_of_power(operations in 1_u32..400, seed in any::<u64>()) {
        let disk = UnsyncedDisk::default();
        let acknowledged = write_until_loss(&disk, operations);
        let mut state = seed | 1;
        let found = disk.after_loss(|| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state & 1 == 1
        });
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        std::fs::write(&path, found).unwrap();
        let store = EmbeddedStore::open(&path, HistoryLimits::default()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let revision = runtime.block_on(store.revision()).unwrap();
        // One more write may have taken place without a response.
        prop_assert!((acknowledged.len() as u64 + 1..=acknowledged.len() as u64 + 2).contains(&revision));
        for (name, number) in acknowledged {
            let object = runtime.block_on(store.get(Kind::FlowSchema, &name, At::Latest)).unwrap();
            let expected = format!("{number:0>1500}");
            prop_assert_eq!(object.map(|object| object.payload.clone()), Some(expected.into()));
        }
    }
}
