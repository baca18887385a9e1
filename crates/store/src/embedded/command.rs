//! The commands for the committer, and its replies.

use std::sync::Arc;

use bytes::Bytes;
use evenkeel_api::Kind;
use tokio::sync::oneshot;

use crate::cache::Write;
use crate::{Error, Object};

/// Something that the committer does in its turn.
#[derive(Debug)]
pub(crate) enum Command {
    Write(WriteCommand),
    Compact { revision: u64, reply: oneshot::Sender<Result<(), Error>> },
    Close { reply: oneshot::Sender<()> },
}

/// A conditional write, and where its result goes.
#[derive(Debug)]
pub(crate) struct WriteCommand {
    pub(crate) kind: Kind,
    pub(crate) name: Box<str>,
    pub(crate) action: Action,
    pub(crate) reply: oneshot::Sender<Result<Write, Error>>,
}

/// A write and its condition.
#[derive(Debug)]
pub(crate) enum Action {
    Create { payload: Bytes },
    Update { expected: u64, payload: Bytes },
    Delete { expected: u64 },
}

// === impl Command ===

impl Command {
    /// Rejects a command that came after the end.
    pub(crate) fn refuse(self) {
        // The caller may be gone.
        match self {
            Self::Write(write) => drop(write.reply.send(Err(Error::Closed))),
            Self::Compact { reply, .. } => drop(reply.send(Err(Error::Closed))),
            Self::Close { reply } => drop(reply.send(())),
        }
    }
}

// === impl WriteCommand ===

impl WriteCommand {
    /// The result of the write at its revision, given the stored object.
    pub(crate) fn decide(&self, current: Option<&Arc<Object>>, revision: u64) -> Result<Write, Error> {
        let object = match (&self.action, current) {
            (Action::Create { payload }, None) => Some(self.object(revision, revision, payload)),
            (Action::Create { .. }, Some(current)) => {
                return Err(Error::AlreadyExists { current: Arc::clone(current) });
            }
            (Action::Update { .. } | Action::Delete { .. }, None) => {
                return Err(Error::NotFound { kind: self.kind, name: self.name.to_string() });
            }
            (&(Action::Update { expected, .. } | Action::Delete { expected }), Some(current))
                if current.revision != expected =>
            {
                return Err(Error::Conflict { expected, current: Arc::clone(current) });
            }
            (Action::Update { payload, .. }, Some(current)) => {
                Some(self.object(revision, current.create_revision, payload))
            }
            (Action::Delete { .. }, Some(_)) => None,
        };
        Ok(Write { revision, kind: self.kind, name: self.name.clone(), object })
    }

    fn object(&self, revision: u64, create_revision: u64, payload: &Bytes) -> Arc<Object> {
        let (kind, name, payload) = (self.kind, self.name.clone(), payload.clone());
        Arc::new(Object { kind, name, revision, create_revision, payload })
    }
}
