//! `SharedFile`: a file that stays open and locked while its database is opened more than once.
//!
//! It is opened to be inspected, then for real, and again after a write has failed. Were the lock given back in between,
//! another process could write what our inspection has not seen.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use redb::StorageBackend;

/// The lock is given back when the last clone is dropped.
#[derive(Debug, Clone)]
pub(crate) struct SharedFile(Arc<LockedFile>);

#[derive(Debug)]
struct LockedFile {
    backend: Box<dyn StorageBackend>,
    /// Whether a sync has failed and the whole file has not been written again since.
    has_failed_sync: AtomicBool,
}

/// The most that is written at a time.
const CHUNK_BYTES: usize = 64 * 1024;

// === impl SharedFile ===

impl SharedFile {
    pub(crate) fn new(backend: impl StorageBackend) -> Self {
        Self(Arc::new(LockedFile { backend: Box::new(backend), has_failed_sync: AtomicBool::new(false) }))
    }

    /// Makes sure that what is read from the file is also on the disk.
    ///
    /// After a failed sync that is not so: the system may keep what it could not write in memory and take it for written,
    /// so that a later sync succeeds without it. Therefore everything is written again, and synced.
    pub(crate) fn restore_durability(&self) -> io::Result<()> {
        if !self.0.has_failed_sync.load(Ordering::Acquire) {
            return Ok(());
        }
        let len = self.len()?;
        let mut offset = 0;
        while offset < len {
            let chunk_len = usize::try_from(len - offset).unwrap_or(usize::MAX).min(CHUNK_BYTES);
            let chunk = self.read(offset, chunk_len)?;
            // Holes in the file take no room on the disk, and are not filled.
            if chunk.iter().any(|byte| *byte != 0) {
                self.write(offset, &chunk)?;
            }
            offset += chunk_len as u64;
        }
        self.sync_data(false)?;
        self.0.has_failed_sync.store(false, Ordering::Release);
        Ok(())
    }
}

impl StorageBackend for SharedFile {
    fn len(&self) -> io::Result<u64> {
        self.0.backend.len()
    }

    fn read(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        self.0.backend.read(offset, len)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.backend.set_len(len)
    }

    fn sync_data(&self, eventual: bool) -> io::Result<()> {
        let synced = self.0.backend.sync_data(eventual);
        if synced.is_err() {
            self.0.has_failed_sync.store(true, Ordering::Release);
        }
        synced
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.backend.write(offset, data)
    }
}
