//! Transactions on keys of one prefix, for whoever coordinates by them: comparisons, writes, and a read of all keys in one step.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use tonic::Streaming;

use crate::Error;

use super::client::{Client, LEASE_GRANT, TXN};
use super::config::EtcdConfig;
use super::keys::{KeyRange, Keys};
use super::messages::{
    Compare, CompareTarget, DeleteRangeRequest, EventType, KeyValue, LeaseGrantRequest, LeaseGrantResponse, PutRequest,
    RangeRequest, Request, RequestOp, Response, TxnRequest, TxnResponse, WatchCreateRequest, WatchEvent, WatchResponse,
    revision_of, signed, unsigned,
};

/// All keys under one prefix of an etcd.
///
/// Every call is one attempt at the member in use, and takes no longer than the `attempt_deadline` of the configuration. After a
/// failure the next call goes to the next member.
#[derive(Debug)]
pub struct EtcdTransactions {
    client: Client,
    /// All keys; they begin with its start.
    all: KeyRange,
}

/// Something that has to be true of a key for a transaction to write anything. A revision of zero: there is no such key.
///
/// Not `#[non_exhaustive]`: callers make it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyCondition {
    /// The key was created in this revision.
    Created(String, u64),
    /// The key was last written in this revision.
    Written(String, u64),
}

/// The write of a transaction.
///
/// Not `#[non_exhaustive]`: callers make it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyWrite {
    /// Writes a key that ends with a lease.
    PutWithLease(String, Vec<u8>, LeaseId),
    /// Writes a key, which keeps its lease. The key has to exist.
    PutKeepingLease(String, Vec<u8>),
    /// Writes a key that has no lease.
    Put(String, Vec<u8>),
    /// Deletes a key, if it exists.
    Delete(String),
}

/// A lease: keys that were written with it are deleted when it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LeaseId(i64);

/// The result of a transaction.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Transacted {
    /// Whether all conditions held, and everything was written.
    pub is_written: bool,
    /// The revision after it.
    pub revision: u64,
    /// All keys under the prefix after it.
    pub keys: Vec<CoordinationKey>,
}

/// A key and its value. Its name has no prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CoordinationKey {
    /// The key without the prefix.
    pub name: String,
    /// The revision in which it was created.
    pub create_revision: u64,
    /// The revision in which it was last written.
    pub mod_revision: u64,
    /// Its value.
    pub value: Bytes,
}

/// A change of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyChange {
    /// The object was written.
    Written(CoordinationKey),
    /// The object was deleted.
    Deleted {
        /// The key without the prefix.
        name: String,
        /// The revision of the deletion.
        revision: u64,
    },
}

/// The changes of all keys under the prefix, from when it was opened. It may end at any time, and changes may be lost then.
pub struct KeyWatch {
    prefix: Bytes,
    responses: Streaming<WatchResponse>,
}

// === impl EtcdTransactions ===

impl EtcdTransactions {
    /// Keys under the prefix of the configuration. Connects when the first call is made.
    pub fn new(config: &EtcdConfig) -> Result<Self, Error> {
        Ok(Self { client: Client::new(config)?, all: Keys::new(&config.prefix).all() })
    }

    /// Writes if all conditions hold, and reads all keys after that. Without writes it only reads. The read is linearisable.
    pub async fn transact(&self, conditions: &[KeyCondition], writes: Vec<KeyWrite>) -> Result<Transacted, Error> {
        let range = || RequestOp { request: Some(Request::Range(self.all())) };
        let mut success: Vec<RequestOp> = writes.into_iter().map(|write| self.operation(write)).collect();
        success.push(range());
        let compare = conditions.iter().map(|condition| self.compare(condition)).collect();
        let txn = TxnRequest { compare, success, failure: vec![range()] };
        let response: TxnResponse = self.client.call_once(&TXN, txn).await?;
        let Some(Response::Range(range)) = response.responses.last().and_then(|last| last.response.as_ref()) else {
            return Err(Error::Unknown("etcd sent a response that does not match the request".to_owned()));
        };
        let keys = range.kvs.iter().filter_map(|kv| coordination_key(&self.all.start, kv)).collect();
        Ok(Transacted { is_written: response.succeeded, revision: revision_of(response.header.as_ref()), keys })
    }

    /// A lease that lasts this long unless it is kept alive.
    pub async fn grant_lease(&self, lasts: Duration) -> Result<LeaseId, Error> {
        let seconds = signed(lasts.as_secs().max(1));
        let response: LeaseGrantResponse = self.client.call_once(&LEASE_GRANT, LeaseGrantRequest { seconds }).await?;
        Ok(LeaseId(response.id))
    }

    /// Lets a lease last anew. Says whether there is still such a lease.
    pub async fn keep_alive(&self, lease: LeaseId) -> Result<bool, Error> {
        Ok(self.client.keep_alive(lease.0).await? > 0)
    }

    /// Watches all keys from now on.
    pub async fn watch(&self) -> Result<KeyWatch, Error> {
        let all = self.all();
        let create = WatchCreateRequest { key: all.key, range_end: all.range_end, ..WatchCreateRequest::default() };
        let (_, responses) = self.client.watch(create).await?;
        Ok(KeyWatch { prefix: self.all.start.clone(), responses })
    }

    fn all(&self) -> RangeRequest {
        RangeRequest { key: self.all.start.clone(), range_end: self.all.end.clone(), ..RangeRequest::default() }
    }

    fn key(&self, name: &str) -> Bytes {
        Bytes::from([&self.all.start[..], name.as_bytes()].concat())
    }

    fn compare(&self, condition: &KeyCondition) -> Compare {
        let (target, name, revision) = match condition {
            KeyCondition::Created(name, revision) => (CompareTarget::CreateRevision, name, *revision),
            KeyCondition::Written(name, revision) => (CompareTarget::ModRevision, name, *revision),
        };
        let revision = Some(signed(revision));
        let is_created = target == CompareTarget::CreateRevision;
        Compare {
            target: target.into(),
            key: self.key(name),
            create_revision: revision.filter(|_| is_created),
            mod_revision: revision.filter(|_| !is_created),
        }
    }

    fn operation(&self, write: KeyWrite) -> RequestOp {
        let put = |name: &str, value: Vec<u8>| PutRequest {
            key: self.key(name),
            value: Bytes::from(value),
            ..PutRequest::default()
        };
        let request = match write {
            KeyWrite::PutWithLease(name, value, lease) => {
                Request::Put(PutRequest { lease: lease.0, ..put(&name, value) })
            }
            KeyWrite::PutKeepingLease(name, value) => {
                Request::Put(PutRequest { ignore_lease: true, ..put(&name, value) })
            }
            KeyWrite::Put(name, value) => Request::Put(put(&name, value)),
            KeyWrite::Delete(name) => Request::DeleteRange(DeleteRangeRequest { key: self.key(&name) }),
        };
        RequestOp { request: Some(request) }
    }
}

fn coordination_key(prefix: &[u8], kv: &KeyValue) -> Option<CoordinationKey> {
    let name = String::from_utf8(kv.key.strip_prefix(prefix)?.to_vec()).ok()?;
    let (create_revision, mod_revision) = (unsigned(kv.create_revision), unsigned(kv.mod_revision));
    Some(CoordinationKey { name, create_revision, mod_revision, value: kv.value.clone() })
}

// === impl KeyWatch ===

impl KeyWatch {
    /// The next changes; an error when the watch has ended.
    pub async fn next(&mut self) -> Result<Vec<KeyChange>, Error> {
        let response =
            self.responses.message().await.map_err(|status| Error::Unavailable(status.message().to_owned()))?;
        let response = response.filter(|response| !response.canceled);
        let response = response.ok_or_else(|| Error::Unavailable("the member ended the watch".to_owned()))?;
        let change = |event: &WatchEvent| {
            let key = coordination_key(&self.prefix, event.kv.as_ref()?)?;
            match EventType::try_from(event.r#type).ok()? {
                EventType::Put => Some(KeyChange::Written(key)),
                EventType::Delete => Some(KeyChange::Deleted { name: key.name, revision: key.mod_revision }),
            }
        };
        Ok(response.events.iter().filter_map(change).collect())
    }
}

impl fmt::Debug for KeyWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyWatch").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}
