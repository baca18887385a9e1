//! kubectl's annotation of what it applied, and how kubectl moves from client-side to server-side apply (API-143).

use evenkeel_api::schema::object_type;
use evenkeel_api::v1::V1;
use evenkeel_api::validate::Value as Shown;
use evenkeel_api::{HubSpec, Object};
use serde_json::Value;

use super::apply_body::ApplyBody;
use super::compare::Comparison;
use super::field_set::FieldSet;
use super::owned::owned_fields;
use super::owned_parts::OwnedParts;
use super::schema_check::check;

/// The manager of `kubectl apply --server-side`.
pub(crate) const KUBECTL: &str = "kubectl";
/// The object that kubectl applied last, as JSON.
const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// How many bytes all annotations of an object may have.
const ANNOTATIONS_BYTES_MAX: usize = 256 << 10;

/// The fields that kubectl had applied on the client's side and that nobody has changed since: those of the annotation
/// that still have the value they have there. `live` is the stored object in the version of the request.
pub(crate) fn fields_to_take_over<S: HubSpec>(
    object: &Object<V1, S>,
    live: &Value,
    request: &ApplyBody,
) -> Option<FieldSet> {
    let annotation = object.metadata.annotations.get(ANNOTATION).filter(|text| !text.is_empty())?;
    let applied: Value = serde_json::from_str(annotation).ok()?;
    let schema = object_type(request.version, request.kind);
    if applied["apiVersion"] != request.version.api_version() || check(&applied, schema).is_err() {
        return None;
    }
    let parts = OwnedParts::Fields(schema);
    let mut fields = owned_fields(&applied, parts);
    let comparison = Comparison::of(&applied, live, parts);
    fields.subtract(&comparison.changed);
    fields.subtract(&comparison.removed);
    Some(fields)
}

/// Brings the annotation up to date, if the object has it.
pub(crate) fn refresh<S: HubSpec>(object: &mut Object<V1, S>, request: &ApplyBody) {
    let annotations = &mut object.metadata.annotations;
    if annotations.get(ANNOTATION).is_none_or(String::is_empty) {
        return;
    }
    let mut applied = request.value.clone();
    if let Some(Value::Object(sent)) = applied.pointer_mut("/metadata/annotations") {
        sent.remove(ANNOTATION);
    }
    annotations.insert(ANNOTATION.to_owned(), format!("{}\n", Shown::json(&applied)));
    let bytes: usize = annotations.iter().map(|(name, text)| name.len() + text.len()).sum();
    if bytes > ANNOTATIONS_BYTES_MAX {
        annotations.remove(ANNOTATION);
    }
}
