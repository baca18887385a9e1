//! Reads that go to etcd itself. All of them are linearizable, or of one revision.

use std::sync::Arc;

use evenkeel_api::Kind;
use tonic::Code;

use crate::cache::ObjectMap;
use crate::{Error, List, Object};

use super::client::{CallError, Client, RANGE};
use super::keys::{KeyRange, Keys};
use super::messages::{RangeRequest, RangeResponse, revision_of, signed};

/// The number of objects in one request for a list.
const PAGE: usize = 128;

/// Reads from a cluster.
#[derive(Debug)]
pub(crate) struct EtcdReader {
    pub(crate) client: Arc<Client>,
    pub(crate) keys: Keys,
}

/// An object, if it is there, and the revision at which that was true.
pub(crate) struct ReadObject {
    pub(crate) revision: u64,
    pub(crate) object: Option<Arc<Object>>,
}

// === impl EtcdReader ===

impl EtcdReader {
    /// The newest revision of the whole etcd.
    pub(crate) async fn revision(&self) -> Result<u64, Error> {
        let KeyRange { start, .. } = self.keys.all();
        let request = RangeRequest { key: start, count_only: true, ..RangeRequest::default() };
        let response = self.range(request, 0).await?;
        Ok(revision_of(response.header.as_ref()))
    }

    /// One object at a revision; revision 0 means the newest.
    pub(crate) async fn get(&self, kind: Kind, name: &str, revision: u64) -> Result<ReadObject, Error> {
        let request = RangeRequest { key: self.keys.key(kind, name), ..RangeRequest::default() };
        let response = self.range(request, revision).await?;
        let object = response.kvs.first().and_then(|kv| self.keys.object(kv));
        Ok(ReadObject { revision: revision_of(response.header.as_ref()), object })
    }

    /// The objects of a kind at a revision (the newest for zero), by as many pages as it takes.
    pub(crate) async fn list(
        &self,
        kind: Kind,
        mut revision: u64,
        after: Option<&str>,
        limit: usize,
    ) -> Result<List, Error> {
        let mut items: Vec<Arc<Object>> = Vec::new();
        let mut after = after.map(ToOwned::to_owned);
        loop {
            let wanted = if limit == 0 { PAGE } else { PAGE.min(limit - items.len()) };
            let KeyRange { start, end } = self.keys.of(kind, after.as_deref());
            let request =
                RangeRequest { key: start, range_end: end, limit: signed(wanted as u64), ..RangeRequest::default() };
            let response = self.range(request, revision).await?;
            if revision == 0 {
                // All further pages are of the revision of the first.
                revision = revision_of(response.header.as_ref());
            }
            items.extend(response.kvs.iter().filter_map(|kv| self.keys.object(kv)));
            let remaining = usize::try_from(response.count).unwrap_or(0).saturating_sub(response.kvs.len());
            if remaining == 0 || response.kvs.is_empty() || (limit != 0 && items.len() >= limit) {
                return Ok(List { revision, items, remaining });
            }
            // A key that is no object's is skipped, but the next page begins after it all the same.
            after = response.kvs.last().and_then(|kv| self.keys.name_after(kind, &kv.key));
        }
    }

    /// The objects of all kinds at one revision, the newest.
    pub(crate) async fn list_all(&self) -> Result<([ObjectMap; Kind::ALL.len()], u64), Error> {
        let mut kinds: [ObjectMap; Kind::ALL.len()] = Default::default();
        let mut revision = 0;
        for kind in Kind::ALL {
            let list = self.list(kind, revision, None, 0).await?;
            revision = list.revision;
            kinds[kind as usize] = ObjectMap::from_sorted(&list.items);
        }
        Ok((kinds, revision))
    }

    /// Whether the objects of a kind are unchanged since a revision, and up to which revision that is so.
    ///
    /// Objects are unchanged if there are as many as then, and none was written since: an object that was deleted since would
    /// have to be balanced by one that was created since.
    pub(crate) async fn unchanged(&self, kind: Kind, since: u64, count: usize) -> Result<Option<u64>, Error> {
        let KeyRange { start, end } = self.keys.of(kind, None);
        let request = RangeRequest {
            key: start,
            range_end: end,
            limit: 1,
            keys_only: true,
            min_mod_revision: signed(since + 1),
            ..RangeRequest::default()
        };
        let response = self.range(request, 0).await?;
        let same = response.kvs.is_empty() && usize::try_from(response.count) == Ok(count);
        Ok(same.then(|| revision_of(response.header.as_ref())))
    }

    async fn range(&self, mut request: RangeRequest, revision: u64) -> Result<RangeResponse, Error> {
        request.revision = signed(revision);
        self.client.call(&RANGE, request).await.map_err(|failure| match failure {
            CallError::Refused(status) if status.code() == Code::OutOfRange => out_of_range(status.message(), revision),
            other => other.into(),
        })
    }
}

/// etcd only says in words whether a revision is forgotten or not reached yet. It does not name the bounds.
pub(crate) fn out_of_range(message: &str, asked: u64) -> Error {
    if message.contains("compacted") {
        Error::TooOld { asked, oldest: asked + 1 }
    } else {
        Error::FutureRevision { asked, current: asked.saturating_sub(1) }
    }
}
