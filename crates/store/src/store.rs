//! The trait that both stores implement.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use evenkeel_api::Kind;

use crate::{At, Error, Freshness, List, ListOptions, Object, Watch, WatchOptions};

/// The future that the methods of a [`Store`] return, so that it can be used as `Arc<dyn Store>`.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// Where the objects live.
///
/// Revisions are one strictly increasing sequence across both kinds, as those of etcd: every write that takes place has a
/// revision of its own, larger than all before. The revision of a store without any write is not zero.
///
/// A future of a write that is dropped before it is ready leaves it open whether the write takes place.
///
/// An acknowledged write is visible to all later reads of the same store, [`At::Cached`] included.
pub trait Store: fmt::Debug + Send + Sync + 'static {
    /// The object of this name, if there is one.
    fn get<'a>(&'a self, kind: Kind, name: &'a str, at: At) -> StoreFuture<'a, Option<Arc<Object>>>;

    /// The objects of a kind at one revision, in the order of their names.
    fn list(&self, kind: Kind, options: ListOptions) -> StoreFuture<'_, List>;

    /// Writes an object that must not be there yet. Fails with [`Error::AlreadyExists`] if it is.
    fn create<'a>(&'a self, kind: Kind, name: &'a str, payload: Bytes) -> StoreFuture<'a, Arc<Object>>;

    /// Writes an object that must be there at the revision `expected`. Fails with [`Error::Conflict`] if it is at
    /// another, and with [`Error::NotFound`] if it is not there.
    fn update<'a>(&'a self, kind: Kind, name: &'a str, expected: u64, payload: Bytes) -> StoreFuture<'a, Arc<Object>>;

    /// Removes an object that must be there at the revision `expected`, and returns the revision of the removal.
    /// Fails as [`update`](Self::update) does.
    fn delete<'a>(&'a self, kind: Kind, name: &'a str, expected: u64) -> StoreFuture<'a, u64>;

    /// Every write after a revision, in order, without a gap and without a repetition, and then every further one as it
    /// takes place. Fails with [`Error::TooOld`] if the history does not reach back so far, and with
    /// [`Error::FutureRevision`] if the revision has not been reached.
    fn watch(&self, options: WatchOptions) -> StoreFuture<'_, Watch>;

    /// Forgets the history up to a revision: [`At::Exactly`] and [`watch`](Self::watch) can go back to it, but no longer to
    /// what was before. Objects are never forgotten. Fails with [`Error::TooOld`] if that much is forgotten already, and
    /// with [`Error::FutureRevision`] if the revision has not been reached.
    fn compact(&self, revision: u64) -> StoreFuture<'_, ()>;

    /// The newest revision of the whole store; linearizable.
    fn revision(&self) -> StoreFuture<'_, u64>;

    /// How fresh the cache is that [`At::Cached`] and watches are served from.
    fn freshness(&self) -> Freshness;

    /// Why the store is unavailable, if it is: it refuses writes, or cannot be reached. For people.
    fn problem(&self) -> Option<String> {
        let Freshness { disconnected_since, is_broken, .. } = self.freshness();
        if is_broken {
            return Some("a write to the disk failed, and writes are refused until one succeeds".to_owned());
        }
        disconnected_since.map(|since| format!("it has been out of reach for {} s", since.elapsed().as_secs()))
    }

    /// Ends all watches with [`Error::Closed`], finishes the writes that were begun, refuses further ones, and lets go of
    /// the file or the connections. Dropping the store does the same.
    fn close(&self) -> StoreFuture<'_, ()>;
}
