//! The differences between the two kinds, behind one trait.

use std::collections::BTreeMap;

use super::{Context, FieldError, Path};
use crate::{Spec, Version};

/// A specification, of either kind, that can be validated.
///
/// Implemented for the specifications of the hub version; the trait cannot be implemented elsewhere.
pub trait ValidSpec: Rules {}

impl<S: Rules> ValidSpec for S {}

/// The rules of one kind.
pub trait Rules: Spec {
    /// Checks the specification of the object of that name (API-37 to API-49).
    fn check(&self, name: &str, context: Context, path: &Path<'_>, errors: &mut Vec<FieldError>);

    /// The fixed value of the specification, if an object of that name is mandatory (API-52).
    fn mandatory(&self, name: &str) -> Option<Mandatory<Self>>;

    /// Checks which members may stand together, after everything else (API-50).
    fn check_union(&self, _path: &Path<'_>, _errors: &mut Vec<FieldError>) {}

    /// Checks what the kind asks of annotations beyond what is asked of all (API-36).
    fn check_annotations(
        _annotations: &BTreeMap<String, String>,
        _version: Version,
        _path: &Path<'_>,
        _errors: &mut Vec<FieldError>,
    ) {
    }
}

/// The required content of a mandatory object.
#[derive(Debug)]
#[non_exhaustive]
pub struct Mandatory<S> {
    /// The specification that it must have.
    pub spec: S,
    /// The part that may differ, in the words of the message: empty, or starting with a space.
    pub except: &'static str,
}
