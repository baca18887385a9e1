//! Labels and annotations: the form of keys and values, and how much they may hold (API-31, API-32).

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::METADATA;
use crate::validate::{FieldError, names};

/// How many bytes the keys and values of all annotations may take together.
const ANNOTATIONS_BYTES_MAX: usize = 262_144;

pub(super) fn check(labels: &BTreeMap<String, String>, errors: &mut Vec<FieldError>) {
    let path = METADATA.child("labels");
    for (key, value) in labels {
        names::report(errors, &path, key, names::qualified_name(key));
        names::report(errors, &path, value, names::label_value(value));
    }
}

pub(super) fn check_annotations(annotations: &BTreeMap<String, String>, errors: &mut Vec<FieldError>) {
    let path = METADATA.child("annotations");
    for key in annotations.keys() {
        names::report(errors, &path, key, names::qualified_name(&lower_case(key)));
    }
    let bytes: usize = annotations.iter().map(|(key, value)| key.len() + value.len()).sum();
    if bytes > ANNOTATIONS_BYTES_MAX {
        errors.push(FieldError::too_long(path, ANNOTATIONS_BYTES_MAX));
    }
}

fn lower_case(text: &str) -> Cow<'_, str> {
    if text.chars().any(char::is_uppercase) { text.to_lowercase().into() } else { text.into() }
}
