//! `FileChanges`: waits for changes of a file or a folder, and then until those that belong together are over.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};

use super::{FileWatcher, LOOK_AGAIN};

/// The changes of a file, or of a folder and its files.
#[derive(Debug)]
pub struct FileChanges {
    path: PathBuf,
    watch: FileWatcher,
    count: watch::Receiver<u64>,
    /// The number of changes that have been looked at.
    seen: u64,
}

/// A look at the files that has begun.
#[derive(Debug, Clone, Copy)]
pub struct Look(u64);

/// What belongs together is written together: so long after the last change, it is looked at.
const QUIET: Duration = Duration::from_millis(12);
/// And so long after the first one, even if changes do not end.
const HASTE: Duration = Duration::from_millis(40);

// === impl FileChanges ===

impl FileChanges {
    /// Watches this path from the first look on.
    pub fn new(path: &Path) -> Self {
        let (tell, count) = watch::channel(0);
        let tell = Arc::new(tell);
        let watch = FileWatcher::new(move || tell.send_modify(|count| *count += 1));
        Self { path: path.to_owned(), watch, count, seen: 0 }
    }

    /// The file or the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Waits until there may be something new.
    pub async fn wait(&mut self) {
        let seen = self.seen;
        // Whether it is a change or the time that it takes to be sure of none, it is looked at.
        let _ = timeout(LOOK_AGAIN, self.count.wait_for(|count| *count != seen)).await;
        let latest = Instant::now() + HASTE;
        loop {
            let count = *self.count.borrow();
            let until = latest.min(Instant::now() + QUIET);
            if timeout_at(until, self.count.wait_for(|now| *now != count)).await.is_err() {
                return;
            }
        }
    }

    /// Before the files are read: what changes after this is told.
    pub fn begin_look(&mut self) -> Look {
        let count = *self.count.borrow();
        self.watch.follow(&self.path);
        Look(count)
    }

    /// After the files have been read. A look that is given up counts for nothing.
    pub fn end_look(&mut self, look: Look) {
        self.seen = look.0;
    }
}
