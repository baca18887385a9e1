//! The metadata of both kinds (API-30 to API-36).

mod changes;
mod finalizers;
mod labels;
mod owners;

pub(super) use changes::check as check_changes;

use super::rules::Rules;
use super::{FieldError, Path, names};
use crate::Version;
use crate::meta::ObjectMeta;

const METADATA: Path<'_> = Path::new("metadata");

/// Checks what must hold of every object of the kind of `S`, whether new or changed.
pub(super) fn check<S: Rules>(metadata: &ObjectMeta, version: Version, errors: &mut Vec<FieldError>) {
    check_name(metadata, errors);
    labels::check(&metadata.labels, errors);
    labels::check_annotations(&metadata.annotations, errors);
    S::check_annotations(&metadata.annotations, version, &METADATA.child("annotations"), errors);
    owners::check(&metadata.owner_references, errors);
    finalizers::check(&metadata.finalizers, errors);
}

fn check_name(metadata: &ObjectMeta, errors: &mut Vec<FieldError>) {
    let (name, prefix) = (&metadata.name, &metadata.generate_name);
    if !prefix.is_empty() {
        names::report(errors, &METADATA.child("generateName"), prefix, names::subdomain_prefix(prefix));
    }
    let path = METADATA.child("name");
    if !name.is_empty() {
        names::report(errors, &path, name, names::subdomain(name));
    } else if prefix.is_empty() {
        errors.push(FieldError::required(path, "name or generateName is required"));
    }
}
