//! A second record of the last revision, in a small file beside the store.
//!
//! redb keeps its last two states, and goes back to the one before if the last one cannot be read. After a crash that is
//! right: the last state may be a write that was never acknowledged. But a fault of the disk looks the same, and an
//! acknowledged write would be lost without a word. So each acknowledged revision is also noted here, after the write is on
//! the disk and before it is acknowledged. A store that ends before that revision has lost writes.
//!
//! The note is not synced with each write, which would double what a write costs. It survives the end of the process; a
//! loss of power can take the notes of the last seconds, and never leaves one of a write that is not on the disk.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::is_of_the_disk;

/// The record of an open store.
#[derive(Debug)]
pub(crate) struct LastRevision {
    /// `None` if the disk had no room for it.
    file: Option<File>,
    path: PathBuf,
    /// Whether the last note could not be written, which is logged once.
    is_failing: bool,
}

/// The first bytes of the file: its name and the version of its format.
const MAGIC: &[u8; 8] = b"evkrev\x00\x01";
/// The magic, the revision, and the revision with all bits inverted.
const RECORD_BYTES: usize = 24;

/// Where the record of a store is.
pub(crate) fn record_path(store: &Path) -> PathBuf {
    let mut name = OsString::from(store);
    name.push(".revision");
    name.into()
}

/// The revision that was noted last, if there is a record that is whole. Without one nothing is known: the store is older
/// than the record, or was moved without it.
pub(crate) fn noted(store: &Path) -> io::Result<Option<u64>> {
    let path = record_path(store);
    let bytes = match evenkeel_files::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let revision = parse(&bytes);
    if revision.is_none() {
        tracing::warn!(path = %path.display(), "the record of the last revision is damaged; writing a new one");
    }
    Ok(revision)
}

fn parse(bytes: &[u8]) -> Option<u64> {
    let record: &[u8; RECORD_BYTES] = bytes.try_into().ok()?;
    let (magic, numbers) = record.split_at(MAGIC.len());
    let (revision, inverted) = numbers.split_at(size_of::<u64>());
    let number = |bytes: &[u8]| bytes.try_into().ok().map(u64::from_le_bytes);
    let (revision, inverted) = (number(revision)?, number(inverted)?);
    (magic == MAGIC && revision == !inverted).then_some(revision)
}

/// Removes what is left of another store of the same name.
pub(crate) fn forget(store: &Path) -> io::Result<()> {
    match fs::remove_file(record_path(store)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

// === impl LastRevision ===

impl LastRevision {
    /// Begins the record of a store that is at that revision. On a disk that takes no writes there is no record until it
    /// does.
    pub(crate) fn open(store: &Path, revision: u64) -> io::Result<Self> {
        let mut record = Self { file: None, path: record_path(store), is_failing: false };
        match record.begin(revision) {
            Err(error) if is_of_the_disk(&error) => {
                record.warn(&error);
                Ok(record)
            }
            begun => begun.map(|()| record),
        }
    }

    fn begin(&mut self, revision: u64) -> io::Result<()> {
        self.write(revision)?;
        if let Some(file) = &self.file {
            file.set_len(RECORD_BYTES as u64)?;
            file.sync_all()?;
        }
        Ok(())
    }

    /// Notes a revision. The write itself is on the disk already, so that a failure costs nothing but the check.
    pub(crate) fn note(&mut self, revision: u64) {
        match self.write(revision) {
            Ok(()) => self.is_failing = false,
            Err(error) => self.warn(&error),
        }
    }

    fn warn(&mut self, error: &io::Error) {
        if !std::mem::replace(&mut self.is_failing, true) {
            let path = self.path.display();
            tracing::warn!(%path, %error, "the last revision could not be recorded; lost writes may go unnoticed");
        }
    }

    /// Makes the last note survive a loss of power.
    pub(crate) fn sync(&self) {
        // The note is an additional check, and the store was closed in good order.
        let _ = self.file.as_ref().map(File::sync_data);
    }

    fn write(&mut self, revision: u64) -> io::Result<()> {
        let mut record = [0; RECORD_BYTES];
        let (magic, numbers) = record.split_at_mut(MAGIC.len());
        let (number, inverted) = numbers.split_at_mut(size_of::<u64>());
        magic.copy_from_slice(MAGIC);
        number.copy_from_slice(&revision.to_le_bytes());
        inverted.copy_from_slice(&(!revision).to_le_bytes());
        let file = self.file()?;
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&record)
    }

    /// The file, which is made if it is not there.
    fn file(&mut self) -> io::Result<&mut File> {
        if self.file.is_none() {
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(false);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            self.file = Some(options.open(&self.path)?);
        }
        self.file.as_mut().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("store");
        assert_eq!(noted(&store).unwrap(), None);
        let mut record = LastRevision::open(&store, 7).unwrap();
        record.note(8);
        assert_eq!(noted(&store).unwrap(), Some(8));
        let bytes = fs::read(record_path(&store)).unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(parse(&flipped), None, "bit {bit}");
        }
        forget(&store).unwrap();
        forget(&store).unwrap();
        assert_eq!(noted(&store).unwrap(), None);
    }
}
