//! `Record`: an object of the store, decoded, and as the text that most responses are made of.

use std::sync::Arc;

use evenkeel_api::v1::V1;
use evenkeel_api::{HubSpec, Object, Version};

use crate::failure::Failure;
use crate::output::{Encoded, Shown};

/// An object of the store, ready to be shown.
#[derive(Debug)]
pub(crate) struct Record<S: HubSpec> {
    /// The object, with its version.
    pub(crate) object: Arc<Object<V1, S>>,
    /// The same as text, in `v1`.
    encoded: Encoded,
    /// Its version as a number; zero if it is not stored.
    pub(crate) revision: u64,
}

// === impl Record ===

impl<S: HubSpec> Record<S> {
    /// Decodes an object of the store.
    pub(crate) fn decode(stored: &evenkeel_store::Object) -> Result<Self, Failure> {
        Ok(Self::new(Self::read(stored)?, stored.revision))
    }

    /// Decodes an object of the store, without setting its version.
    pub(super) fn read(stored: &evenkeel_store::Object) -> Result<Object<V1, S>, Failure> {
        serde_json::from_slice(&stored.payload).map_err(|error| {
            let evenkeel_store::Object { name, revision, .. } = stored;
            Failure::plain(format!(
                "the stored {} {name:?} of revision {revision} is unreadable: {error}; delete it, and create it again",
                S::KIND
            ))
        })
    }

    /// An object at a revision.
    pub(crate) fn new(mut object: Object<V1, S>, revision: u64) -> Self {
        object.metadata.resource_version = revision.to_string();
        Self { revision, ..Self::unstored(object) }
    }

    /// An object that is shown but not stored, as it is.
    pub(crate) fn unstored(object: Object<V1, S>) -> Self {
        let encoded = Encoded::new(&object, Version::V1);
        Self { object: Arc::new(object), encoded, revision: 0 }
    }

    /// How many bytes the object has as text.
    pub(crate) fn len(&self) -> usize {
        self.encoded.json().len()
    }

    /// The object and its cached encoding, for responses.
    pub(crate) fn shown(&self) -> Shown<'_, S> {
        Shown { object: &self.object, v1: Some(&self.encoded) }
    }
}
