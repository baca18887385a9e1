//! The lock by which a process knows that the one before it is dead, and may take its place in the ledger (FL-9).

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::ledger::ProcessNonce;

/// A file with the nonce of the process that has it locked. The system gives the lock back when the process ends, however it ends.
#[derive(Debug)]
pub(crate) struct ProcessLock {
    _file: File,
}

/// The lock of this process, or the wish for it: the process before may still live, and end later.
#[derive(Debug)]
pub(crate) struct WantedLock {
    path: PathBuf,
    own: ProcessNonce,
    lock: Option<ProcessLock>,
}

/// The most bytes that a file has which another process has written.
const LENGTH_MAX: u64 = 64;

// === impl WantedLock ===

impl WantedLock {
    pub(crate) fn new(path: &Path, own: ProcessNonce) -> Self {
        Self { path: path.to_owned(), own, lock: None }
    }

    pub(crate) fn is_taken(&self) -> bool {
        self.lock.is_some()
    }

    /// Takes the lock unless this process has it or another one does. Tells which process had it before and is dead.
    pub(crate) fn try_take(&mut self) -> io::Result<Option<ProcessNonce>> {
        if self.is_taken() {
            return Ok(None);
        }
        let Some((lock, before)) = ProcessLock::take(&self.path, self.own)? else { return Ok(None) };
        self.lock = Some(lock);
        Ok(before)
    }
}

// === impl ProcessLock ===

impl ProcessLock {
    /// Locks the file for this process, and tells which process had it before and is dead. `None` if another process has the lock.
    pub(crate) fn take(path: &Path, own: ProcessNonce) -> io::Result<Option<(Self, Option<ProcessNonce>)>> {
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
        }
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        let mut text = String::new();
        // A text that is not a nonce belongs to no process.
        let read = Read::by_ref(&mut file).take(LENGTH_MAX).read_to_string(&mut text);
        let before = read.ok().and_then(|_| u64::from_str_radix(text.trim(), 16).ok()).map(ProcessNonce);
        file.rewind()?;
        file.set_len(0)?;
        writeln!(file, "{:016x}", own.0)?;
        Ok(Some((Self { _file: file }, before)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fl_9_only_the_lock_of_a_dead_process_tells_its_nonce() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let (first, before) = ProcessLock::take(&path, ProcessNonce(7)).unwrap().unwrap();
        assert_eq!(before, None);
        // The lock of a process that lives is not to be had.
        assert!(ProcessLock::take(&path, ProcessNonce(8)).unwrap().is_none());
        drop(first);
        let (_second, before) = ProcessLock::take(&path, ProcessNonce(9)).unwrap().unwrap();
        assert_eq!(before, Some(ProcessNonce(7)));
    }

    /// The successor of a takeover finds the lock taken while the process before drains. It has to have it later, or the process after
    /// it would find nobody's.
    #[test]
    fn fl_9_a_lock_that_is_taken_is_tried_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let [mut first, mut second, mut third] = [1, 2, 3].map(|number| WantedLock::new(&path, ProcessNonce(number)));
        assert_eq!(first.try_take().unwrap(), None);
        assert_eq!((second.try_take().unwrap(), second.is_taken()), (None, false));
        drop(first);
        assert_eq!((second.try_take().unwrap(), second.is_taken()), (Some(ProcessNonce(1)), true));
        assert_eq!((second.try_take().unwrap(), third.try_take().unwrap()), (None, None));
        drop(second);
        assert_eq!(third.try_take().unwrap(), Some(ProcessNonce(2)));
    }

    #[test]
    fn a_file_of_something_else_names_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        std::fs::write(&path, [0xff; 100]).unwrap();
        assert_eq!(ProcessLock::take(&path, ProcessNonce(1)).unwrap().unwrap().1, None);
        assert!(ProcessLock::take(folder.path(), ProcessNonce(1)).is_err());
    }
}
