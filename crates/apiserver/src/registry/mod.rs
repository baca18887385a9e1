//! The objects of one kind: stored, decoded and encoded.

mod decoded_cache;
mod encodings;
mod payload;
mod record;
mod snapshot;
mod upkeep;
mod wait;
mod write_locks;

use std::sync::Arc;

use evenkeel_api::v1::V1;
use evenkeel_api::{HubSpec, Object, Preset};
use evenkeel_store::{At, Error, List, ListOptions, Store};

use crate::failure::Failure;
use crate::offload::Offload;
use crate::options::Moment;

use decoded_cache::DecodedCache;
use encodings::Encodings;
use payload::Payload;
use snapshot::Snapshot;
use write_locks::WriteLocks;

pub(crate) use encodings::ListForm;
pub(crate) use payload::Managers;
pub(crate) use record::Record;
pub(crate) use snapshot::{ObjectsOfKind, has_same_effect};
pub(crate) use upkeep::Upkeep;
pub(crate) use write_locks::WriteLock;

/// The objects of one kind.
#[derive(Debug)]
pub(crate) struct Registry<S: HubSpec> {
    store: Arc<dyn Store>,
    /// Rules of validation, and the initial objects.
    preset: Preset,
    decoded_cache: DecodedCache<S>,
    snapshot: Snapshot<S>,
    encodings: Encodings<S>,
    write_locks: Arc<WriteLocks>,
}

/// Objects as they were at one revision, in the order of their names.
#[derive(Debug)]
pub(crate) struct Page<S: HubSpec> {
    pub(crate) revision: u64,
    pub(crate) items: Vec<Arc<Record<S>>>,
    /// How many objects come after these.
    pub(crate) remaining: usize,
}

/// Why a write failed.
#[derive(Debug)]
pub(crate) enum Unwritten {
    /// The object has changed since it was read.
    Changed,
    /// Any other failure.
    Failed(Failure),
}

// === impl Registry ===

impl<S: HubSpec> Registry<S> {
    pub(crate) fn new(store: Arc<dyn Store>, preset: Preset) -> Self {
        Self {
            store,
            preset,
            decoded_cache: DecodedCache::default(),
            snapshot: Snapshot::default(),
            encodings: Encodings::default(),
            write_locks: Arc::default(),
        }
    }

    pub(crate) fn preset(&self) -> Preset {
        self.preset
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The locks of objects that are being written.
    pub(crate) fn write_locks(&self) -> &Arc<WriteLocks> {
        &self.write_locks
    }

    /// The object of this name.
    pub(crate) async fn get(&self, name: &str, moment: Moment) -> Result<Arc<Record<S>>, Failure> {
        self.decoded_cache.decode(&self.find(name, moment).await?)
    }

    /// The object of this name as it is stored, which may be unreadable.
    pub(crate) async fn find(&self, name: &str, moment: Moment) -> Result<Arc<evenkeel_store::Object>, Failure> {
        let at = self.at(moment).await?;
        match self.store.get(S::KIND, name, at).await {
            Ok(Some(found)) => Ok(found),
            // No object has a name that the store does not take.
            Ok(None) | Err(Error::Invalid(_)) => Err(Failure::not_found(S::KIND, name)),
            Err(error) => Err(Self::failure(error)),
        }
    }

    /// The size of the object of this name in the cache; zero if there is none.
    pub(crate) async fn cached_bytes(&self, name: &str) -> usize {
        let found = self.store.get(S::KIND, name, At::Cached).await;
        found.ok().flatten().map_or(0, |object| object.payload.len())
    }

    /// Objects in the order of their names: at most `limit` of them if that is not zero, after a name if there is one.
    pub(crate) async fn list(&self, moment: Moment, limit: usize, after: Option<String>) -> Result<Page<S>, Unlisted> {
        let list = self.stored(moment, limit, after).await?;
        self.page(&list).await.map_err(Unlisted::Failed)
    }

    /// A list of the store, decoded.
    pub(crate) async fn page(&self, list: &List) -> Result<Page<S>, Failure> {
        let unknown = self.decoded_cache.unknown_bytes(&list.items);
        let items = Offload::of(unknown).await.run(|| self.decoded_cache.decode_all(&list.items))?;
        Ok(Page { revision: list.revision, items, remaining: list.remaining })
    }

    /// All objects without their statuses and managed fields: for code that reads all of them after each change, see [`Snapshot`].
    /// Unreadable objects are left out, so that they do not keep the others from taking effect.
    pub(crate) async fn snapshot(&self, moment: Moment) -> Result<ObjectsOfKind<S>, Failure> {
        let list = self.stored(moment, 0, None).await.map_err(|error| match error {
            Unlisted::Expired => Failure::expired("the present state is gone"),
            Unlisted::Failed(failure) => failure,
        })?;
        Ok(self.snapshot.update(&list, &self.decoded_cache))
    }

    /// The encodings of lists that are being sent.
    pub(crate) fn encodings(&self) -> &Encodings<S> {
        &self.encodings
    }

    /// The objects of [`list`](Self::list), as the store keeps them.
    pub(crate) async fn stored(&self, moment: Moment, limit: usize, after: Option<String>) -> Result<List, Unlisted> {
        let at = self.at(moment).await.map_err(Unlisted::Failed)?;
        self.store.list(S::KIND, ListOptions { at, limit, after }).await.map_err(|error| match error {
            Error::TooOld { .. } => Unlisted::Expired,
            other => Unlisted::Failed(Self::failure(other)),
        })
    }

    /// Decodes an object of the store.
    pub(crate) fn decode(&self, object: &Arc<evenkeel_store::Object>) -> Result<Arc<Record<S>>, Failure> {
        self.decoded_cache.decode(object)
    }

    /// Writes an object that is not there yet.
    pub(crate) async fn create(&self, object: Object<V1, S>, managers: Managers) -> Result<Arc<Record<S>>, Failure> {
        let Payload { object, bytes } = Payload::new(object, managers)?;
        match self.store.create(S::KIND, object.name(), bytes).await {
            Ok(stored) => Ok(self.decoded_cache.add_written(&stored, object)),
            Err(Error::AlreadyExists { .. }) => Err(Failure::already_exists(S::KIND, object.name())),
            Err(error) => Err(Self::failure(error)),
        }
    }

    /// Replaces `old` by `object`.
    pub(crate) async fn update(
        &self,
        old: &Record<S>,
        object: Object<V1, S>,
        managers: Managers,
    ) -> Result<Arc<Record<S>>, Unwritten> {
        let Payload { object, bytes } = Payload::new(object, managers).map_err(Unwritten::Failed)?;
        match self.store.update(S::KIND, object.name(), old.revision, bytes).await {
            Ok(stored) => Ok(self.decoded_cache.add_written(&stored, object)),
            Err(error) => Err(Self::unwritten(error)),
        }
    }

    /// Removes the object of this name, which must be at that revision.
    pub(crate) async fn delete(&self, name: &str, revision: u64) -> Result<u64, Unwritten> {
        self.store.delete(S::KIND, name, revision).await.map_err(Self::unwritten)
    }

    fn unwritten(error: Error) -> Unwritten {
        match error {
            Error::Conflict { .. } | Error::NotFound { .. } => Unwritten::Changed,
            other => Unwritten::Failed(Self::failure(other)),
        }
    }

    /// Waits until the store has reached the moment.
    async fn at(&self, moment: Moment) -> Result<At, Failure> {
        Ok(match moment {
            Moment::Current => At::Latest,
            Moment::Any => At::Cached,
            Moment::NotOlderThan(revision) => {
                wait::until(&*self.store, revision).await?;
                At::NotOlderThan(revision)
            }
            Moment::Exactly(revision) => {
                wait::until(&*self.store, revision).await?;
                At::Exactly(revision)
            }
        })
    }

    /// The failure that the client gets for an error of the store.
    pub(crate) fn failure(error: Error) -> Failure {
        match error {
            Error::NotFound { name, .. } => Failure::not_found(S::KIND, &name),
            Error::FutureRevision { asked, current } => Failure::too_large_revision(asked, current),
            Error::TooOld { .. } => Failure::expired("The resourceVersion for the provided list is too old."),
            Error::Invalid(problem) => Failure::bad_request(problem),
            Error::Unknown(problem) => Failure::unknown_outcome(problem),
            other => Failure::unavailable(other.to_string()),
        }
    }
}

/// Why there is no list.
#[derive(Debug)]
pub(crate) enum Unlisted {
    /// The revision is no longer known.
    Expired,
    /// Any other failure.
    Failed(Failure),
}

/// Whether two objects of one revision are the same. They differ if the revision was used twice.
fn is_same(one: &Arc<evenkeel_store::Object>, other: &Arc<evenkeel_store::Object>) -> bool {
    Arc::ptr_eq(one, other) || one == other
}
