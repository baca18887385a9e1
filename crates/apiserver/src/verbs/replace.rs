//! Update and patches other than apply, of an object or of its status (API-56, API-59, API-115).

use bytes::Bytes;
use evenkeel_api::v1::V1;
use evenkeel_api::validate::ValidSpec;
use evenkeel_api::{HubSpec, Object};
use http::StatusCode;

use super::change::{Candidate, ManagedFields, change};
use super::{Write, Written};
use crate::body::Sent;
use crate::failure::Failure;
use crate::negotiate::PatchType;
use crate::owners;
use crate::patch::{self, Patched};
use crate::registry::Registry;

/// A patch that describes changes, and not the result.
#[derive(Debug)]
pub(crate) struct Patch {
    pub(crate) language: PatchType,
    pub(crate) body: Bytes,
}

/// Replaces the stored object by the one that was sent.
pub(crate) async fn replace<S: HubSpec + ValidSpec>(
    registry: &Registry<S>,
    sent: Sent<S>,
    write: &Write<'_>,
) -> Result<Written<S>, Failure> {
    let Sent { object, managers, empty_rules, .. } = sent;
    Failure::check_name(object.name(), write.name)?;
    let record = change(registry, write, |old| {
        let (sent, stored) = (&object.metadata.uid, &old.object.metadata.uid);
        if !sent.is_empty() && sent != stored {
            let why = format!(
                "StorageError: invalid object, Code: 4, Key: /registry/{}/{}, ResourceVersion: 0, AdditionalErrorMsg: \
                 Precondition failed: UID in precondition: {sent}, UID in object meta: {stored}",
                S::KIND.resource(),
                write.name
            );
            return Err(Failure::conflict(S::KIND, write.name, why));
        }
        Ok(Candidate { object: object.clone(), managed_fields: ManagedFields::Compare(managers), empty_rules })
    })
    .await?;
    Ok(Written { status: StatusCode::OK, record })
}

/// Applies a patch to the stored object.
pub(crate) async fn patch<S: HubSpec + ValidSpec>(
    registry: &Registry<S>,
    patch: &Patch,
    write: &Write<'_>,
    warnings: &mut Vec<String>,
) -> Result<Written<S>, Failure> {
    let record = change(registry, write, |old| {
        let mut patched = patched(&old.object, patch, write)?;
        Failure::check_name(patched.object.name(), write.name)?;
        *warnings = std::mem::take(&mut patched.warnings);
        let owners = &mut patched.object.metadata.owner_references;
        warnings.extend(owners::remove_duplicates(owners, owners::DuplicatesFound::Patched));
        let Patched { object, sent, empty_rules, .. } = patched;
        Ok(Candidate { object, managed_fields: ManagedFields::Compare(sent), empty_rules })
    })
    .await?;
    Ok(Written { status: StatusCode::OK, record })
}

/// The object after a patch.
fn patched<S: HubSpec>(object: &Object<V1, S>, patch: &Patch, write: &Write<'_>) -> Result<Patched<S>, Failure> {
    let document = serde_json::to_value(object.in_version(write.version))
        .map_err(|error| Failure::plain(format!("the object cannot be written: {error}")))?;
    let patched = match patch.language {
        PatchType::Json => patch::json_patch(document, &patch.body)?,
        PatchType::Merge | PatchType::Apply => patch::merge_patch(document, &patch.body)?,
        PatchType::StrategicMerge => patch::strategic_merge_patch(S::KIND, write.version, document, &patch.body)?,
    };
    patched.decode(write.version, write.options.validation)
}
