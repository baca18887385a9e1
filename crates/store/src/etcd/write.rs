//! Conditional writes, and how to find out whether one without a response took place.

use std::sync::Arc;

use bytes::Bytes;
use evenkeel_api::Kind;
use tokio::time::Instant;

use crate::{Error, Object};

use super::client::{CallError, TXN};
use super::messages::{
    Compare, CompareTarget, DeleteRangeRequest, PutRequest, RangeRequest, Request, RequestOp, Response, ResponseOp,
    TxnRequest, TxnResponse, revision_of, signed, unsigned,
};
use super::read::EtcdReader;

/// A write that takes place only if the object is at the revision `expected`; zero if it must not be there.
#[derive(Debug)]
pub(crate) struct Conditional<'a> {
    pub(crate) kind: Kind,
    pub(crate) name: &'a str,
    pub(crate) expected: u64,
    /// The object to write; `None` to remove it.
    pub(crate) payload: Option<Bytes>,
}

/// A write that has taken place.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) revision: u64,
    pub(crate) object: Option<Arc<Object>>,
}

// === impl Conditional ===

impl Conditional<'_> {
    /// Writes, once.
    ///
    /// A transaction without a response may have taken place, or may still. It is sent again only while the object is
    /// at the revision that it is conditional on: then it has not taken place yet, and only one of the two can. A creation
    /// is not sent again, because the object may have been created and removed in between.
    pub(crate) async fn write(&self, reader: &EtcdReader) -> Result<Done, Error> {
        let deadline = Instant::now() + reader.client.call_deadline();
        loop {
            let called = reader.client.call::<_, TxnResponse>(&TXN, self.transaction(reader)).await;
            let problem = match called {
                Ok(txn) => return self.outcome(reader, &txn),
                Err(CallError::NoResponse(problem)) => problem,
                Err(other) => return Err(other.into()),
            };
            let unknown = || Error::Unknown(problem.clone());
            let found = reader.get(self.kind, self.name, 0).await.map_err(|_| unknown())?.object;
            match found {
                Some(object) if object.revision != self.expected && Some(&object.payload) == self.payload.as_ref() => {
                    return Ok(Done { revision: object.revision, object: Some(object) });
                }
                Some(object) if object.revision == self.expected && Instant::now() < deadline => {}
                _ => return Err(unknown()),
            }
        }
    }

    fn transaction(&self, reader: &EtcdReader) -> TxnRequest {
        let key = reader.keys.key(self.kind, self.name);
        let operation = match &self.payload {
            Some(payload) => {
                let (key, value) = (key.clone(), payload.clone());
                Request::Put(PutRequest { key, value, prev_kv: true, ..PutRequest::default() })
            }
            None => Request::DeleteRange(DeleteRangeRequest { key: key.clone() }),
        };
        let read = Request::Range(RangeRequest { key: key.clone(), ..RangeRequest::default() });
        let mod_revision = Some(signed(self.expected));
        let condition = Compare { target: CompareTarget::ModRevision.into(), key, mod_revision, ..Compare::default() };
        TxnRequest {
            compare: vec![condition],
            success: vec![RequestOp { request: Some(operation) }],
            failure: vec![RequestOp { request: Some(read) }],
        }
    }

    /// The content of a response: that the write took place, or what prevented it.
    fn outcome(&self, reader: &EtcdReader, txn: &TxnResponse) -> Result<Done, Error> {
        let revision = revision_of(txn.header.as_ref());
        let response = txn.responses.first().and_then(|ResponseOp { response }| response.as_ref());
        match (txn.succeeded, response) {
            (true, Some(Response::Put(put))) => {
                let create_revision = put.prev_kv.as_ref().map_or(revision, |kv| unsigned(kv.create_revision));
                let payload = self.payload.clone().unwrap_or_default();
                let name = self.name.into();
                let object = Object { kind: self.kind, name, revision, create_revision, payload };
                Ok(Done { revision, object: Some(Arc::new(object)) })
            }
            (true, Some(Response::DeleteRange(_))) => Ok(Done { revision, object: None }),
            (false, Some(Response::Range(range))) => {
                let current = range.kvs.first().and_then(|kv| reader.keys.object(kv));
                Err(self.refusal(current))
            }
            _ => Err(Error::Unknown("etcd sent a response that does not match the request".to_owned())),
        }
    }

    fn refusal(&self, current: Option<Arc<Object>>) -> Error {
        match current {
            None => Error::NotFound { kind: self.kind, name: self.name.to_owned() },
            Some(current) if self.expected == 0 => Error::AlreadyExists { current },
            Some(current) => Error::Conflict { expected: self.expected, current },
        }
    }
}
