//! From a patched document to an object (API-83, API-116).

use evenkeel_api::decode::{Decoded, Document};
use evenkeel_api::v1::V1;
use evenkeel_api::validate::{EmptyRules, FieldError, Value as Shown};
use evenkeel_api::{HubSpec, Object, Version};
use serde_json::Value;

use super::FieldValidation;
use super::printed::printed;
use super::strategic::restore;
use crate::failure::Failure;
use crate::managed_fields::SentManagers;

/// An object after a patch, as JSON.
#[derive(Debug, Clone, PartialEq)]
pub struct PatchedDocument {
    /// The object.
    pub value: Value,
    /// The fields that were dropped from the patch itself.
    dropped: Vec<String>,
    /// The patch, if it was a strategic merge patch: these are shown where others show the object.
    strategic: Option<Value>,
}

/// An object after a patch, and what there is to tell about it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Patched<S: HubSpec> {
    /// The object, its defaults filled in, in the hub version.
    pub object: Object<V1, S>,
    /// The patched object's `metadata.managedFields`.
    pub sent: SentManagers,
    /// How its rules are written if it has none.
    pub empty_rules: EmptyRules,
    /// A warning for each field that was dropped.
    pub warnings: Vec<String>,
}

// === impl PatchedDocument ===

impl PatchedDocument {
    pub(super) fn new(value: Value, dropped: Vec<String>) -> Self {
        Self { value, dropped, strategic: None }
    }

    pub(super) fn of_strategic(value: Value, dropped: Vec<String>, patch: Value) -> Self {
        Self { value, dropped, strategic: Some(patch) }
    }

    /// The object that the document holds, of the kind of `S` and written in `version`.
    pub fn decode<S: HubSpec>(&self, version: Version, validation: FieldValidation) -> Result<Patched<S>, Failure> {
        let document = Document::from(&self.value);
        let Decoded { object, dropped, .. } = match &self.strategic {
            None => {
                let version = self.checked_version::<S>(version)?;
                document.decode::<S>(version).map_err(|error| self.refuse(&error.first().wire_message))?
            }
            Some(_) => {
                restore::<S>(&self.value, version).map_err(|problem| self.refuse(&problem))?;
                document.decode::<S>(version).map_err(|error| self.refuse(&error.first().wire_message))?
            }
        };
        let mut warnings = self.dropped.clone();
        warnings.extend(dropped.warnings());
        match validation {
            FieldValidation::Ignore => warnings.clear(),
            FieldValidation::Strict if !warnings.is_empty() => {
                return Err(self.refuse(&format!("strict decoding error: {}", warnings.join(", "))));
            }
            FieldValidation::Warn | FieldValidation::Strict => {}
        }
        let (sent, empty_rules) = (SentManagers::of(&document.root), EmptyRules::of(&document.root));
        Ok(Patched { object, sent, empty_rules, warnings })
    }

    /// The version that the patched object is written in: any of the group's, and that of the endpoint if it names none.
    /// Its kind, if it names one, must be that of the endpoint.
    fn checked_version<S: HubSpec>(&self, version: Version) -> Result<Version, Failure> {
        let text = |name: &str, expected: &'static str| {
            self.value[name].as_str().filter(|text| !text.is_empty()).unwrap_or(expected).to_owned()
        };
        let (kind, api_version) = (text("kind", S::KIND.name()), text("apiVersion", version.api_version()));
        if let (true, Some(version)) = (kind == S::KIND.name(), Version::from_api_version(&api_version)) {
            return Ok(version);
        }
        Err(self.refuse(&format!(
            "no kind {kind:?} is registered for version {api_version:?} in scheme \"pkg/api/legacyscheme/scheme.go:30\""
        )))
    }

    fn refuse(&self, problem: &str) -> Failure {
        let shown = match &self.strategic {
            Some(patch) => printed(patch),
            None => self.value.to_string(),
        };
        Failure::invalid_patch(&FieldError::invalid("patch", &Shown::text(&shown), problem).into())
    }
}
