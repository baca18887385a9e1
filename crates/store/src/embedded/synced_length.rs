//! A file whose length is on the disk before anything is written that counts on it.
//!
//! The header of the database names its length. After a loss of power the header may be the new one and the length still
//! the old one, unless the length was synced first; and then the database does not open at all.

use std::io;

use redb::StorageBackend;

/// Syncs each change of the length. Lengths grow by doubling, so that this is seldom.
#[derive(Debug)]
pub(crate) struct SyncedLength<B>(pub(crate) B);

impl<B: StorageBackend> StorageBackend for SyncedLength<B> {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        self.0.read(offset, len)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)?;
        self.0.sync_data(false)
    }

    fn sync_data(&self, eventual: bool) -> io::Result<()> {
        self.0.sync_data(eventual)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write(offset, data)
    }
}
