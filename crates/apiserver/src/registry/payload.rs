//! What the store keeps of an object: its canonical JSON, without the version that the store gives it.

use bytes::Bytes;
use evenkeel_api::v1::V1;
use evenkeel_api::{HubSpec, Object};
use evenkeel_store::PAYLOAD_BYTES_MAX;

/// What becomes of the `managedFields` of an object that is too large only because of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Managers {
    /// The object is stored without them.
    Expendable,
    /// The object is refused: an apply depends on them.
    Needed,
}

/// An object as the store keeps it.
pub(super) fn payload<S: HubSpec>(object: &Object<V1, S>, managers: Managers) -> Bytes {
    let bytes = json(object);
    let is_strippable = managers == Managers::Expendable && !object.metadata.managed_fields.is_empty();
    if bytes.len() <= PAYLOAD_BYTES_MAX || !is_strippable {
        return bytes;
    }
    let mut stripped = object.clone();
    stripped.metadata.managed_fields.clear();
    json(&stripped)
}

fn json<S: HubSpec>(object: &Object<V1, S>) -> Bytes {
    let bytes = if object.metadata.resource_version.is_empty() {
        serde_json::to_vec(object)
    } else {
        let mut unversioned = object.clone();
        unversioned.metadata.resource_version.clear();
        serde_json::to_vec(&unversioned)
    };
    // The types of the API have no value that JSON cannot say.
    bytes.unwrap_or_default().into()
}
