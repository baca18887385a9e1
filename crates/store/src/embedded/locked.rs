//! A file that stays locked while it is opened twice: first to be inspected, then for real.
//!
//! Were the lock given back in between, another process could write what our inspection has not seen.

use std::io;
use std::sync::Arc;

use redb::StorageBackend;
use redb::backends::FileBackend;

/// The lock is given back when the last clone is dropped.
#[derive(Debug, Clone)]
pub(crate) struct LockedFile(Arc<FileBackend>);

// === impl LockedFile ===

impl LockedFile {
    pub(crate) fn new(file: FileBackend) -> Self {
        Self(Arc::new(file))
    }
}

impl StorageBackend for LockedFile {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        self.0.read(offset, len)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync_data(&self, eventual: bool) -> io::Result<()> {
        self.0.sync_data(eventual)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write(offset, data)
    }
}
