//! `WatchedFile`: a value that is read from a file, and read again when the file changes.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use arc_swap::{ArcSwap, Guard};

use super::{FileWatcher, LOOK_AGAIN};
use crate::advice;

/// A value that is read from a file, and read again when the file changes. A file that cannot be used changes nothing.
pub struct WatchedFile<T> {
    value: Arc<ArcSwap<T>>,
    news: Sender<News>,
}

/// Makes a value of the bytes of a file, or says what is wrong with them.
pub trait ReadFile<T>: Fn(&Path, &[u8]) -> Result<T, String> + Send + 'static {}

impl<T, F: Fn(&Path, &[u8]) -> Result<T, String> + Send + 'static> ReadFile<T> for F {}

enum News {
    Changed,
    Dropped,
}

/// What the thread that looks after a file has.
struct Keeper<T, R> {
    path: PathBuf,
    read: R,
    last: Result<Vec<u8>, String>,
    value: Arc<ArcSwap<T>>,
    watch: FileWatcher,
}

/// What belongs together is written together: so long after the last change, it is looked at.
const QUIET: Duration = Duration::from_millis(15);
/// A file of keys is a few kilobytes.
const BYTES_MAX: u64 = 8 << 20;

// === impl WatchedFile ===

impl<T: Send + Sync + 'static> WatchedFile<T> {
    /// Reads the file, and looks after it from now on. Errors begin with the name of the file.
    pub fn open(path: &Path, read: impl ReadFile<T>) -> Result<Self, String> {
        let (news, changes) = channel();
        let tell = news.clone();
        let mut watch = FileWatcher::new(move || drop(tell.send(News::Changed)));
        watch.follow(path);
        let bytes = bytes(path)?;
        let value = Arc::new(ArcSwap::from_pointee(read(path, &bytes)?));
        let keeper = Keeper { path: path.to_owned(), read, last: Ok(bytes), value: Arc::clone(&value), watch };
        std::thread::Builder::new()
            .name("evenkeel-file".to_owned())
            .spawn(move || keeper.keep(&changes))
            .map_err(|error| format!("{}: it cannot be watched: {error}", path.display()))?;
        Ok(Self { value, news })
    }

    /// What the file says now.
    pub fn load(&self) -> Guard<Arc<T>> {
        self.value.load()
    }
}

impl<T> Drop for WatchedFile<T> {
    fn drop(&mut self) {
        let _ = self.news.send(News::Dropped);
    }
}

impl<T> std::fmt::Debug for WatchedFile<T> {
    /// What is in the file may be secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WatchedFile").finish_non_exhaustive()
    }
}

// === impl Keeper ===

impl<T, R: ReadFile<T>> Keeper<T, R> {
    fn keep(mut self, changes: &Receiver<News>) {
        loop {
            match changes.recv_timeout(LOOK_AGAIN) {
                Ok(News::Changed) if is_over(changes) => return,
                Ok(News::Dropped) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(News::Changed) | Err(RecvTimeoutError::Timeout) => self.look(),
            }
        }
    }

    fn look(&mut self) {
        self.watch.follow(&self.path);
        let found = bytes(&self.path);
        if found == self.last {
            return;
        }
        match found.as_ref().map_err(Clone::clone).and_then(|bytes| (self.read)(&self.path, bytes)) {
            Ok(value) => {
                self.value.store(Arc::new(value));
                tracing::info!(file = %self.path.display(), "the file changed and is in effect");
            }
            Err(error) => {
                tracing::warn!(%error, "the file changed and cannot be used; the previous contents stay in effect");
            }
        }
        self.last = found;
    }
}

/// Takes what follows in quick succession, and tells whether nobody wants the file any more.
fn is_over(changes: &Receiver<News>) -> bool {
    loop {
        match changes.recv_timeout(QUIET) {
            Ok(News::Changed) => {}
            Ok(News::Dropped) | Err(RecvTimeoutError::Disconnected) => return true,
            Err(RecvTimeoutError::Timeout) => return false,
        }
    }
}

fn bytes(path: &Path) -> Result<Vec<u8>, String> {
    let fault = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
    let unreadable = |error: std::io::Error| fault(&format_args!("{error}; {}", advice(&error)));
    let file = crate::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(fault(&format_args!("it has more than {BYTES_MAX} bytes")));
    }
    Ok(bytes)
}
