//! The store in etcd: writes go there, and what anybody writes there comes back by a watch into a cache.

mod circuit;
mod client;
mod config;
mod feeder;
mod keys;
mod messages;
mod read;
mod transactions;
mod write;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use evenkeel_api::Kind;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tonic::Code;

use crate::cache::{Cache, History};
use crate::object::{check_name, check_payload};
use crate::{At, Error, Freshness, List, ListOptions, Object, Store, StoreFuture, Watch, WatchOptions};

use client::{COMPACT, CallError, Client};
pub use config::{EtcdConfig, EtcdIdentity, EtcdLogin, EtcdTls};
use feeder::Feeder;
use keys::Keys;
use messages::{CompactionRequest, CompactionResponse, signed};
use read::{EtcdReader, out_of_range};
pub use transactions::{
    CoordinationKey, EtcdTransactions, KeyChange, KeyCondition, KeyWatch, KeyWrite, LeaseId, Transacted,
};
use write::{Conditional, Done};

/// How long a write waits for the cache to have it. Afterwards reads go to etcd until the cache has caught up.
const CACHE_WAIT: Duration = Duration::from_secs(1);

/// A store in etcd, shared by all processes that use the same prefix.
///
/// Reads and watches are served from a cache that a watch of etcd keeps up to date. [`Freshness`] says how far it is.
pub struct EtcdStore {
    reader: Arc<EtcdReader>,
    cache: Arc<Cache>,
    feeder: AbortHandle,
    prober: AbortHandle,
    /// The newest of our own writes. Reads here must not be older.
    written: Arc<AtomicU64>,
    closed: AtomicBool,
}

// === impl EtcdStore ===

impl EtcdStore {
    /// Reads all objects, and goes on reading what changes in a task of the present runtime.
    ///
    /// Fails with [`Error::Unavailable`] if no member responds before the deadline, and with [`Error::Denied`] if etcd does
    /// not let us in.
    pub async fn open(config: &EtcdConfig) -> Result<Self, Error> {
        let client = Arc::new(Client::new(config)?);
        let reader = Arc::new(EtcdReader { client, keys: Keys::new(&config.prefix) });
        let (kinds, revision) = reader.list_all().await?;
        let cache = Arc::new(Cache::new(kinds, History::new(revision, config.history), revision));
        let written = Arc::new(AtomicU64::new(0));
        let feeder = Feeder { reader: Arc::clone(&reader), cache: Arc::clone(&cache), written: Arc::clone(&written) };
        let feeder = tokio::spawn(feeder.run()).abort_handle();
        let (client, key) = (Arc::clone(&reader.client), reader.keys.all().start);
        let prober = tokio::spawn(async move { client.probe(key).await }).abort_handle();
        Ok(Self { reader, cache, feeder, prober, written, closed: AtomicBool::new(false) })
    }

    async fn write(&self, write: Conditional<'_>) -> Result<Done, Error> {
        check_name(write.name)?;
        check_payload(write.payload.as_deref().unwrap_or_default())?;
        self.check_open()?;
        let done = write.write(&self.reader).await?;
        self.written.fetch_max(done.revision, Ordering::AcqRel);
        self.wait_for(done.revision).await;
        Ok(Done { object: done.object.map(|object| self.shared(object)), ..done })
    }

    /// The cache's own copy, if it is the same, so that each object is in memory once.
    fn shared(&self, object: Arc<Object>) -> Arc<Object> {
        self.cache.get(object.kind, &object.name).filter(|cached| *cached == object).unwrap_or(object)
    }

    /// Waits until the cache has a revision of ours, which etcd is about to send. If it does not, something is wrong with
    /// the member that is watched, and the next one is taken.
    async fn wait_for(&self, revision: u64) {
        let member = self.reader.client.current();
        let mut told = self.cache.subscribe();
        let reached = async { told.wait_for(|told| *told >= revision).await.is_ok() };
        if timeout(CACHE_WAIT, reached).await.is_err() {
            self.reader.client.leave(member);
        }
    }

    /// Whether the cache shows everything up to a revision and all that was written here.
    fn cache_has(&self, revision: u64) -> bool {
        self.cache.freshness().revision >= revision.max(self.written.load(Ordering::Acquire))
    }

    /// Fails if etcd's revision is older than the requested one.
    fn reached(asked: u64, current: u64) -> Result<(), Error> {
        if asked > current { Err(Error::FutureRevision { asked, current }) } else { Ok(()) }
    }

    fn check_open(&self) -> Result<(), Error> {
        if self.closed.load(Ordering::Acquire) { Err(Error::Closed) } else { Ok(()) }
    }

    /// The bounds of the revisions that can be asked for are those of the cache, as far as anybody can tell.
    fn with_bounds(&self, error: Error) -> Error {
        let state = self.cache.state();
        match error {
            Error::TooOld { asked, oldest } => Error::TooOld { asked, oldest: oldest.max(state.history.oldest()) },
            Error::FutureRevision { asked, current } => {
                Error::FutureRevision { asked, current: current.min(state.revision) }
            }
            other => other,
        }
    }

    async fn read(&self, kind: Kind, name: &str, at: At) -> Result<Option<Arc<Object>>, Error> {
        match at {
            At::Cached if self.cache_has(0) => Ok(self.cache.get(kind, name)),
            At::NotOlderThan(asked) if self.cache_has(asked) => Ok(self.cache.get(kind, name)),
            At::Cached | At::Latest => {
                let found = self.reader.get(kind, name, 0).await?;
                Ok(found.object.map(|object| self.shared(object)))
            }
            At::NotOlderThan(asked) => {
                let found = self.reader.get(kind, name, 0).await?;
                Self::reached(asked, found.revision)?;
                Ok(found.object)
            }
            At::Exactly(revision) => match self.cache.get_at(kind, name, revision) {
                Ok(object) => Ok(object),
                Err(_) => {
                    let found = self.reader.get(kind, name, revision).await;
                    Ok(found.map_err(|error| self.with_bounds(error))?.object)
                }
            },
        }
    }

    async fn read_list(&self, kind: Kind, options: ListOptions) -> Result<List, Error> {
        let (after, limit) = (options.after.as_deref(), options.limit);
        match options.at {
            At::Cached if self.cache_has(0) => Ok(self.cache.list(kind, after, limit)),
            At::NotOlderThan(asked) if self.cache_has(asked) => Ok(self.cache.list(kind, after, limit)),
            At::Cached | At::Latest => self.latest_list(kind, after, limit).await,
            At::NotOlderThan(asked) => {
                let list = self.latest_list(kind, after, limit).await?;
                Self::reached(asked, list.revision)?;
                Ok(list)
            }
            At::Exactly(revision) => match self.cache.list_at(kind, revision, after, limit) {
                Ok(list) => Ok(list),
                Err(_) => {
                    let list = self.reader.list(kind, revision, after, limit).await;
                    list.map_err(|error| self.with_bounds(error))
                }
            },
        }
    }

    /// The list as it is in etcd. If the cache turns out to be up to date, only that much has to be sent.
    async fn latest_list(&self, kind: Kind, after: Option<&str>, limit: usize) -> Result<List, Error> {
        let (known, count) = {
            let state = self.cache.state();
            (state.revision, state.objects(kind).len())
        };
        if let Some(revision) = self.reader.unchanged(kind, known, count).await?
            && let Ok(list) = self.cache.list_at(kind, known, after, limit)
        {
            return Ok(List { revision, ..list });
        }
        self.reader.list(kind, 0, after, limit).await
    }

    async fn start_watch(&self, options: WatchOptions) -> Result<Watch, Error> {
        if options.after > self.cache.freshness().revision {
            Self::reached(options.after, self.reader.revision().await?)?;
        }
        Watch::new(Arc::clone(&self.cache), options)
    }

    async fn forget(&self, revision: u64) -> Result<(), Error> {
        self.check_open()?;
        let request = CompactionRequest { revision: signed(revision) };
        match self.reader.client.call::<_, CompactionResponse>(&COMPACT, request).await {
            Ok(_) => {
                self.cache.forget(revision.min(self.cache.freshness().revision));
                Ok(())
            }
            Err(CallError::Refused(status)) if status.code() == Code::OutOfRange => {
                Err(self.with_bounds(out_of_range(status.message(), revision)))
            }
            Err(CallError::NoResponse(problem)) => Err(Error::Unknown(problem)),
            Err(other) => Err(other.into()),
        }
    }

    fn shut(&self) {
        // Watches end first: a writer that is rejected can see from them that the store is closed.
        self.cache.close();
        self.closed.store(true, Ordering::Release);
        self.feeder.abort();
        self.prober.abort();
    }
}

impl Store for EtcdStore {
    fn get<'a>(&'a self, kind: Kind, name: &'a str, at: At) -> StoreFuture<'a, Option<Arc<Object>>> {
        Box::pin(self.read(kind, name, at))
    }

    fn list(&self, kind: Kind, options: ListOptions) -> StoreFuture<'_, List> {
        Box::pin(self.read_list(kind, options))
    }

    fn create<'a>(&'a self, kind: Kind, name: &'a str, payload: Bytes) -> StoreFuture<'a, Arc<Object>> {
        let write = Conditional { kind, name, expected: 0, payload: Some(payload) };
        Box::pin(async move { written(self.write(write).await?) })
    }

    fn update<'a>(&'a self, kind: Kind, name: &'a str, expected: u64, payload: Bytes) -> StoreFuture<'a, Arc<Object>> {
        let write = Conditional { kind, name, expected, payload: Some(payload) };
        Box::pin(async move { written(self.write(write).await?) })
    }

    fn delete<'a>(&'a self, kind: Kind, name: &'a str, expected: u64) -> StoreFuture<'a, u64> {
        let write = Conditional { kind, name, expected, payload: None };
        Box::pin(async move { Ok(self.write(write).await?.revision) })
    }

    fn watch(&self, options: WatchOptions) -> StoreFuture<'_, Watch> {
        Box::pin(self.start_watch(options))
    }

    fn compact(&self, revision: u64) -> StoreFuture<'_, ()> {
        Box::pin(self.forget(revision))
    }

    fn revision(&self) -> StoreFuture<'_, u64> {
        Box::pin(self.reader.revision())
    }

    fn freshness(&self) -> Freshness {
        let freshness = self.cache.freshness();
        let away_since = || self.reader.client.circuit().away().map(|away| away.since);
        Freshness { disconnected_since: freshness.disconnected_since.or_else(away_since), ..freshness }
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            self.shut();
            Ok(())
        })
    }
}

impl Drop for EtcdStore {
    fn drop(&mut self) {
        self.shut();
    }
}

impl fmt::Debug for EtcdStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdStore").field("freshness", &self.cache.freshness()).finish_non_exhaustive()
    }
}

/// The object that a write has left; only a removal leaves none.
fn written(done: Done) -> Result<Arc<Object>, Error> {
    done.object.ok_or_else(|| Error::Unknown("the write left no object".to_owned()))
}
