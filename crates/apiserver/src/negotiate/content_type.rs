//! What the body of a request is written in (API-87 to API-89, API-109).

use crate::Failure;
use crate::output::Media;

/// What the body of a request is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyFormat {
    /// JSON.
    Json,
    /// YAML.
    Yaml,
    /// Kubernetes' protobuf.
    Protobuf,
}

/// What the body of a PATCH is (API-89).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatchType {
    /// A list of operations.
    Json,
    /// Members to be replaced.
    Merge,
    /// Members to be replaced, lists by the rules of the type.
    StrategicMerge,
    /// Server-side apply.
    Apply,
}

/// What a body is written in, by the header `Content-Type`. A body without one is JSON.
pub(crate) fn body_format(content_type: Option<&str>) -> Result<BodyFormat, Failure> {
    let found = media_type(content_type.unwrap_or_default());
    let is = |media: Media| found.eq_ignore_ascii_case(media.name());
    if found.is_empty() || is(Media::Json) {
        Ok(BodyFormat::Json)
    } else if is(Media::Yaml) {
        Ok(BodyFormat::Yaml)
    } else if is(Media::Protobuf) {
        Ok(BodyFormat::Protobuf)
    } else {
        Err(Failure::unknown_body_type(super::wanted::SPOKEN))
    }
}

/// What a patch is, by the header `Content-Type`.
pub(crate) fn patch_type(content_type: Option<&str>) -> Result<PatchType, Failure> {
    let found = media_type(content_type.unwrap_or_default());
    let is_named = |patch: &PatchType| found.eq_ignore_ascii_case(patch.name());
    PatchType::ALL.into_iter().find(is_named).ok_or_else(Failure::unknown_patch_type)
}

/// A media type without its parameters.
fn media_type(header: &str) -> &str {
    header.split(';').next().unwrap_or_default().trim()
}

// === impl PatchType ===

impl PatchType {
    const ALL: [Self; 4] = [Self::Json, Self::Merge, Self::StrategicMerge, Self::Apply];

    const fn name(self) -> &'static str {
        match self {
            Self::Json => "application/json-patch+json",
            Self::Merge => "application/merge-patch+json",
            Self::StrategicMerge => "application/strategic-merge-patch+json",
            Self::Apply => "application/apply-patch+yaml",
        }
    }
}
