//! `IncludeObject`: what the rows of a table carry besides their cells (API-177).

use serde_json::Value;

use crate::Failure;

/// The part of the objects that the rows of a table carry besides their cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IncludeObject {
    /// Nothing.
    None,
    /// The metadata of the object.
    Metadata,
    /// The whole object.
    Object,
}

// === impl IncludeObject ===

impl IncludeObject {
    /// The value of the query parameter `includeObject`.
    pub(super) fn parse(parameter: Option<&str>) -> Result<Self, Failure> {
        match parameter.unwrap_or_default() {
            "" | "Metadata" => Ok(Self::Metadata),
            "None" => Ok(Self::None),
            "Object" => Ok(Self::Object),
            other => Err(Failure::bad_request(format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: {}: must be 'Metadata', \
                 'Object', 'None', or empty",
                Value::from(other)
            ))),
        }
    }
}
