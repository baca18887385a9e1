//! Whether a write changes anything (API-58, API-132).

use evenkeel_api::meta::ManagedFieldsEntry;
use evenkeel_api::v1::V1;
use evenkeel_api::{Object, Spec};

/// Whether anything but the times of managed fields differs. If not, the new object gets the old times back, and is the
/// same as the old one.
///
/// Both objects have the same `resourceVersion` by then, and `generation` is set.
pub fn differs<S: Spec>(old: &Object<V1, S>, new: &mut Object<V1, S>) -> bool {
    if !differ_in_time_only(&old.metadata.managed_fields, &new.metadata.managed_fields) {
        return true;
    }
    let entries = std::mem::replace(&mut new.metadata.managed_fields, old.metadata.managed_fields.clone());
    let differs = old != new;
    if differs {
        new.metadata.managed_fields = entries;
    }
    differs
}

/// Whether both lists have the same entries, in whatever order: entries are sorted by their times.
fn differ_in_time_only(old: &[ManagedFieldsEntry], new: &[ManagedFieldsEntry]) -> bool {
    fn by_identity(entries: &[ManagedFieldsEntry]) -> Vec<&ManagedFieldsEntry> {
        let mut sorted: Vec<_> = entries.iter().collect();
        sorted.sort_by(|one, other| identity(one).cmp(&identity(other)));
        sorted
    }
    let is_same = |(old, new): (&ManagedFieldsEntry, &ManagedFieldsEntry)| {
        identity(old) == identity(new) && old.fields_type == new.fields_type && old.fields_v1 == new.fields_v1
    };
    old.len() == new.len() && by_identity(old).into_iter().zip(by_identity(new)).all(is_same)
}

fn identity(entry: &ManagedFieldsEntry) -> (&str, &str, &str, &str) {
    (&entry.manager, &entry.operation, &entry.api_version, &entry.subresource)
}
