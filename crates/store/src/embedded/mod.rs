//! The store in one file, by means of redb.

mod caught_panic;
mod command;
mod committer;
#[cfg(test)]
mod failing_disk;
mod format;
mod last_revision;
mod load;
mod migrate;
mod open;
mod overlay;
#[cfg(test)]
mod power_loss;
mod recovery;
mod shared_file;
mod synced_length;

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use bytes::Bytes;
use evenkeel_api::Kind;
use redb::backends::InMemoryBackend;
use tokio::sync::{mpsc, oneshot};

use crate::cache::{Cache, HistoryLimits, Write};
use crate::object::{check_name, check_payload};
use crate::{At, Error, Freshness, List, ListOptions, Object, Store, StoreFuture, Watch, WatchOptions};

use command::{Action, Command, WriteCommand};
use committer::Committer;
use open::Opened;

/// This many writes can wait for their turn; further ones wait for room.
const COMMANDS_MAX: usize = 1024;

/// A report of redb or of this crate about a file, for people; no code acts on it.
type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// A store in one file, in this process.
///
/// Every acknowledged write survives the end of the process and a loss of power. Writes that come at the same time
/// share one sync of the file. All reads are linearizable, and served from memory.
///
/// When a write to the disk fails, writes are refused ([`Freshness::is_broken`]) until the store has recovered by itself:
/// it opens the file again, finds all acknowledged writes in it, and can write. Reads and watches go on meanwhile.
pub struct EmbeddedStore {
    cache: Arc<Cache>,
    commands: mpsc::Sender<Command>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

// === impl EmbeddedStore ===

impl EmbeddedStore {
    /// Opens the file; makes it if it is not there. Blocks while the file is read.
    ///
    /// Fails with [`Error::InUse`], [`Error::Foreign`], [`Error::Damaged`], [`Error::LostWrites`] or
    /// [`Error::NewerFormat`] if the file cannot be used, and does not change it then. If the disk is full, the file can be
    /// read, and writes are refused until there is room.
    pub fn open(path: impl AsRef<Path>, limits: HistoryLimits) -> Result<Self, Error> {
        Self::start(open::open_file(path.as_ref(), limits)?)
    }

    /// A store that is gone when it is dropped, for tests: the same code with memory in the place of the file.
    pub fn in_memory(limits: HistoryLimits) -> Result<Self, Error> {
        let opened = open::open_new(InMemoryBackend::new(), limits);
        Self::start(opened.map_err(|error| Error::Unavailable(error.to_string()))?)
    }

    fn start(opened: Opened) -> Result<Self, Error> {
        let (commands, receiver) = mpsc::channel(COMMANDS_MAX);
        let Opened { file, database, cache, last_revision } = opened;
        let cache = Arc::new(cache);
        let committer = Committer::new(file, database, Arc::clone(&cache), receiver, last_revision);
        let thread = std::thread::Builder::new()
            .name("evenkeel-store".to_owned())
            .spawn(move || committer.run())
            .map_err(|error| Error::Unavailable(format!("cannot start a thread: {error}")))?;
        Ok(Self { cache, commands, thread: Mutex::new(Some(thread)) })
    }

    async fn write(&self, kind: Kind, name: &str, action: Action) -> Result<Write, Error> {
        check_name(name)?;
        if let Action::Create { payload } | Action::Update { payload, .. } = &action {
            check_payload(payload)?;
        }
        let (reply, result) = oneshot::channel();
        let command = Command::Write(WriteCommand { kind, name: name.into(), action, reply });
        self.commands.send(command).await.map_err(|_| Error::Closed)?;
        result.await.map_err(|_| Error::Unknown("the store was closed before it replied".to_owned()))?
    }

    /// Ends the watches; the thread ends when there is nothing more to be written.
    async fn shut(&self) -> Result<(), Error> {
        self.cache.close();
        let (reply, closed) = oneshot::channel();
        if self.commands.send(Command::Close { reply }).await.is_ok() {
            // An error means that the thread has ended already.
            let _ = closed.await;
        }
        Ok(())
    }
}

impl Store for EmbeddedStore {
    fn get<'a>(&'a self, kind: Kind, name: &'a str, at: At) -> StoreFuture<'a, Option<Arc<Object>>> {
        Box::pin(async move {
            match at {
                At::Exactly(revision) => self.cache.get_at(kind, name, revision),
                At::NotOlderThan(revision) => {
                    check_reached(&self.cache, revision)?;
                    Ok(self.cache.get(kind, name))
                }
                At::Cached | At::Latest => Ok(self.cache.get(kind, name)),
            }
        })
    }

    fn list(&self, kind: Kind, options: ListOptions) -> StoreFuture<'_, List> {
        Box::pin(async move {
            let after = options.after.as_deref();
            match options.at {
                At::Exactly(revision) => self.cache.list_at(kind, revision, after, options.limit),
                At::NotOlderThan(revision) => {
                    check_reached(&self.cache, revision)?;
                    Ok(self.cache.list(kind, after, options.limit))
                }
                At::Cached | At::Latest => Ok(self.cache.list(kind, after, options.limit)),
            }
        })
    }

    fn create<'a>(&'a self, kind: Kind, name: &'a str, payload: Bytes) -> StoreFuture<'a, Arc<Object>> {
        Box::pin(async move { self.write(kind, name, Action::Create { payload }).await.and_then(written) })
    }

    fn update<'a>(&'a self, kind: Kind, name: &'a str, expected: u64, payload: Bytes) -> StoreFuture<'a, Arc<Object>> {
        Box::pin(async move { self.write(kind, name, Action::Update { expected, payload }).await.and_then(written) })
    }

    fn delete<'a>(&'a self, kind: Kind, name: &'a str, expected: u64) -> StoreFuture<'a, u64> {
        Box::pin(async move { Ok(self.write(kind, name, Action::Delete { expected }).await?.revision) })
    }

    fn watch(&self, options: WatchOptions) -> StoreFuture<'_, Watch> {
        Box::pin(async move {
            check_reached(&self.cache, options.after)?;
            Watch::new(Arc::clone(&self.cache), options)
        })
    }

    fn compact(&self, revision: u64) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let (reply, result) = oneshot::channel();
            self.commands.send(Command::Compact { revision, reply }).await.map_err(|_| Error::Closed)?;
            result.await.map_err(|_| Error::Unknown("the store was closed before it replied".to_owned()))?
        })
    }

    fn revision(&self) -> StoreFuture<'_, u64> {
        Box::pin(async move { Ok(self.cache.freshness().revision) })
    }

    fn freshness(&self) -> Freshness {
        self.cache.freshness()
    }

    fn problem(&self) -> Option<String> {
        let fault = self.cache.fault()?;
        Some(format!("a write to the disk failed, and writes are refused until one succeeds: {fault}"))
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        Box::pin(self.shut())
    }
}

impl Drop for EmbeddedStore {
    fn drop(&mut self) {
        self.cache.close();
        // Without a sender the thread ends after the last write that was sent; the file is free then.
        self.commands = mpsc::channel(1).0;
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for EmbeddedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddedStore").field("freshness", &self.cache.freshness()).finish_non_exhaustive()
    }
}

fn check_reached(cache: &Cache, asked: u64) -> Result<(), Error> {
    let current = cache.freshness().revision;
    if asked > current { Err(Error::FutureRevision { asked, current }) } else { Ok(()) }
}

/// Whether the disk is full or takes no writes, which has nothing to do with what is in the file.
fn is_of_the_disk(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(error.kind(), FileTooLarge | QuotaExceeded | ReadOnlyFilesystem | StorageFull)
}

/// The object that a write has left; only a removal leaves none.
fn written(write: Write) -> Result<Arc<Object>, Error> {
    write.object.ok_or_else(|| Error::Unknown("the write left no object".to_owned()))
}
