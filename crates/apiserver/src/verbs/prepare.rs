//! The fields that the server sets and resets, whatever a client sends (API-54 to API-57, API-59).

use evenkeel_api::meta::{ObjectMeta, Time};
use evenkeel_api::v1::V1;
use evenkeel_api::{HubSpec, Object};
use uuid::Uuid;

/// The letters of made-up names: none that could be read as another, and no vowels.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX_LENGTH: usize = 5;
/// A made-up name has no more than 63 characters.
const PREFIX_LENGTH_MAX: usize = 58;

/// Makes an object new (API-54, API-55).
pub(super) fn for_create<S: HubSpec>(object: &mut Object<V1, S>, now: Time) {
    let metadata = &mut object.metadata;
    metadata.uid = Uuid::new_v4().to_string();
    metadata.creation_timestamp = Some(now);
    metadata.generation = 1;
    metadata.deletion_timestamp = None;
    metadata.deletion_grace_period_seconds = None;
    if metadata.name.is_empty() && !metadata.generate_name.is_empty() {
        metadata.name = made_up_name(&metadata.generate_name);
    }
    object.status = evenkeel_api::v1::Status::default();
}

fn made_up_name(prefix: &str) -> String {
    let mut name: String = prefix.chars().take(PREFIX_LENGTH_MAX).collect();
    let random = Uuid::new_v4();
    let letters = random.as_bytes().iter().take(SUFFIX_LENGTH);
    name.extend(letters.map(|byte| char::from(LETTERS[usize::from(*byte) % LETTERS.len()])));
    name
}

/// Takes from `old` what an update may not change (API-56, API-57).
pub(super) fn for_update<S: HubSpec>(new: &mut Object<V1, S>, old: &Object<V1, S>) {
    new.status = old.status.clone();
    let metadata = &mut new.metadata;
    metadata.creation_timestamp = old.metadata.creation_timestamp;
    if metadata.uid.is_empty() {
        metadata.uid.clone_from(&old.metadata.uid);
    }
    metadata.deletion_timestamp = metadata.deletion_timestamp.or(old.metadata.deletion_timestamp);
    metadata.deletion_grace_period_seconds =
        metadata.deletion_grace_period_seconds.or(old.metadata.deletion_grace_period_seconds);
    metadata.generation = old.metadata.generation + i64::from(new.spec != old.spec);
}

/// Takes everything but the status from `old` (API-59). Another `uid` stays, so that it is rejected later, and so do the
/// managed fields, which are set later.
pub(super) fn for_status_update<S: HubSpec>(new: &mut Object<V1, S>, old: &Object<V1, S>) {
    let ObjectMeta { uid, managed_fields, .. } = std::mem::take(&mut new.metadata);
    new.metadata = ObjectMeta { managed_fields, ..old.metadata.clone() };
    if !uid.is_empty() {
        new.metadata.uid = uid;
    }
    new.spec = old.spec.clone();
}

#[cfg(test)]
mod tests {
    use evenkeel_api::v1::FlowSchema;

    use super::*;

    #[test]
    fn api_55_made_up_names() {
        for prefix in ["batch-".to_owned(), "x".repeat(80), "é".repeat(80)] {
            let name = made_up_name(&prefix);
            let kept: String = prefix.chars().take(PREFIX_LENGTH_MAX).collect();
            let suffix = name.strip_prefix(&kept).unwrap();
            assert!(suffix.len() == 5 && suffix.bytes().all(|byte| LETTERS.contains(&byte)), "{name}");
        }
    }

    #[test]
    fn api_57_the_generation_counts_changes_of_the_specification() {
        let mut old = FlowSchema::default();
        old.metadata.generation = 3;
        let mut new = old.clone();
        new.metadata.labels.insert("a".to_owned(), "b".to_owned());
        for_update(&mut new, &old);
        assert_eq!(new.metadata.generation, 3);
        new.spec.matching_precedence += 1;
        for_update(&mut new, &old);
        assert_eq!(new.metadata.generation, 4);
    }
}
