//! `Event`: one write, as watchers get it.

use std::sync::Arc;

use evenkeel_api::Kind;

use crate::Object;

/// One write, as watchers see it.
///
/// What the object was before is always there, because a watch with a selector has to know whether the object was
/// among the selected ones.
///
/// Not `#[non_exhaustive]`: stores of your own make or read all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The revision of the write.
    pub revision: u64,
    /// The change that the write made.
    pub change: Change,
}

/// The change that a write made to an object.
///
/// Not `#[non_exhaustive]`: stores of your own make or read all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The object is new.
    Created {
        /// As it is now.
        object: Arc<Object>,
    },
    /// The object has changed.
    Updated {
        /// As it is now.
        object: Arc<Object>,
        /// As it was before.
        previous: Arc<Object>,
    },
    /// The object is gone.
    Deleted {
        /// As it was before.
        previous: Arc<Object>,
    },
}

// === impl Event ===

impl Event {
    /// The kind of the object.
    pub fn kind(&self) -> Kind {
        self.subject().kind
    }

    /// The name of the object.
    pub fn name(&self) -> &str {
        &self.subject().name
    }

    /// The object as it is after the write, if it still is.
    pub fn object(&self) -> Option<&Arc<Object>> {
        match &self.change {
            Change::Created { object } | Change::Updated { object, .. } => Some(object),
            Change::Deleted { .. } => None,
        }
    }

    /// The object as it was before the write, if it was.
    pub fn previous(&self) -> Option<&Arc<Object>> {
        match &self.change {
            Change::Created { .. } => None,
            Change::Updated { previous, .. } | Change::Deleted { previous } => Some(previous),
        }
    }

    fn subject(&self) -> &Object {
        match &self.change {
            Change::Created { object } | Change::Updated { object, .. } => object,
            Change::Deleted { previous } => previous,
        }
    }
}
