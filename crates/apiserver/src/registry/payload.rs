//! `Payload`: the bytes of an object in the store: canonical JSON, without the version, which the store assigns.

use bytes::Bytes;
use evenkeel_api::v1::V1;
use evenkeel_api::{HubSpec, Object};
use evenkeel_store::PAYLOAD_BYTES_MAX;
use serde::Serialize;

use crate::failure::Failure;

/// The treatment of `managedFields` in an object that is too large only because of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Managers {
    /// The object is stored without them.
    Expendable,
    /// The object is refused: an apply depends on them.
    Needed,
}

/// An object as the store keeps it.
#[derive(Debug)]
pub(super) struct Payload<S: HubSpec> {
    /// Without its version.
    pub(super) object: Object<V1, S>,
    /// The same as JSON.
    pub(super) bytes: Bytes,
}

// === impl Payload ===

impl<S: HubSpec> Payload<S> {
    /// Fails if the object cannot be encoded: then nothing is stored.
    pub(super) fn new(mut object: Object<V1, S>, managers: Managers) -> Result<Self, Failure> {
        object.metadata.resource_version.clear();
        let mut json = encode(&object)?;
        let is_strippable = managers == Managers::Expendable && !object.metadata.managed_fields.is_empty();
        if json.len() > PAYLOAD_BYTES_MAX && is_strippable {
            object.metadata.managed_fields.clear();
            json = encode(&object)?;
        }
        // A copy, since the vector has grown to up to twice its length, and the store keeps what it gets.
        Ok(Self { object, bytes: Bytes::copy_from_slice(&json) })
    }
}

fn encode<S: HubSpec>(object: &Object<V1, S>) -> Result<Vec<u8>, Failure> {
    encoded(object).map_err(|problem| {
        Failure::internal(format!("the {} {:?} {problem}, and was not stored", S::KIND, object.name()))
    })
}

fn encoded(object: &impl Serialize) -> Result<Vec<u8>, String> {
    serde_json::to_vec(object).map_err(|error| format!("cannot be encoded: {error}"))
}

#[cfg(test)]
mod tests {
    use evenkeel_api::v1::FlowSchema;
    use serde::Serializer;
    use serde::ser::Error as _;

    use super::*;

    struct Unwritable;

    impl Serialize for Unwritable {
        fn serialize<S: Serializer>(&self, _serializer: S) -> Result<S::Ok, S::Error> {
            Err(S::Error::custom("no"))
        }
    }

    #[test]
    fn what_cannot_be_encoded_is_an_error_and_not_an_empty_object() {
        assert_eq!(encoded(&Unwritable).unwrap_err(), "cannot be encoded: no");
    }

    #[test]
    fn the_version_is_not_stored() {
        let mut schema = FlowSchema::builder("a").priority_level("b").build();
        schema.metadata.resource_version = "7".to_owned();
        let Payload { object, bytes } = Payload::new(schema, Managers::Needed).unwrap();
        assert_eq!(object.metadata.resource_version, "");
        assert_eq!(serde_json::from_slice::<FlowSchema>(&bytes).unwrap(), object);
    }
}
