//! The format of a request's body (API-87 to API-89, API-109).

use crate::Failure;
use crate::output::Media;

/// The format of a request's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyFormat {
    /// JSON.
    Json,
    /// YAML.
    Yaml,
    /// Kubernetes' protobuf.
    Protobuf,
}

/// The type of patch in the body of a PATCH (API-89).
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

/// The format of a body, by the header `Content-Type`. A body without one is JSON. The parameters do not matter, but must be
/// well-formed.
pub(crate) fn body_format(content_type: Option<&str>) -> Result<BodyFormat, Failure> {
    let header = content_type.unwrap_or_default();
    let found = media_type(header);
    let is = |media: Media| found.eq_ignore_ascii_case(media.name());
    let parameters = header.split_once(';').map_or("", |(_, parameters)| parameters);
    if header.is_empty() {
        Ok(BodyFormat::Json)
    } else if !are_parameters(parameters) {
        Err(Failure::unknown_body_type(super::wanted::SPOKEN))
    } else if is(Media::Json) {
        Ok(BodyFormat::Json)
    } else if is(Media::Yaml) {
        Ok(BodyFormat::Yaml)
    } else if is(Media::Protobuf) {
        Ok(BodyFormat::Protobuf)
    } else {
        Err(Failure::unknown_body_type(super::wanted::SPOKEN))
    }
}

/// The type of a patch, by the header `Content-Type`.
pub(crate) fn patch_type(content_type: Option<&str>) -> Result<PatchType, Failure> {
    let found = media_type(content_type.unwrap_or_default());
    let is_named = |patch: &PatchType| found.eq_ignore_ascii_case(patch.name());
    PatchType::ALL.into_iter().find(is_named).ok_or_else(Failure::unknown_patch_type)
}

/// A media type without its parameters.
fn media_type(header: &str) -> &str {
    header.split(';').next().unwrap_or_default().trim()
}

/// Whether a text is parameters of a media type, `name=value` separated by semicolons, no name twice. One more semicolon at the
/// end does no harm.
fn are_parameters(text: &str) -> bool {
    let mut names = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let Some((name, value)) = rest.split_once('=') else { return false };
        let (name, value) = (name.trim().to_ascii_lowercase(), value.trim_start());
        let end = match value.strip_prefix('"') {
            Some(quoted) => end_of_quoted(quoted).map(|end| end + 1),
            None => Some(value.find([';', ' ', '\t']).unwrap_or(value.len())).filter(|end| is_token(&value[..*end])),
        };
        let Some(end) = end.filter(|_| is_token(&name) && !names.contains(&name)) else { return false };
        names.push(name);
        rest = value[end..].trim_start();
        match rest.strip_prefix(';') {
            Some(next) => rest = next.trim_start(),
            None if rest.is_empty() => {}
            None => return false,
        }
    }
    true
}

/// Where a quoted text ends, behind its closing quote.
fn end_of_quoted(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// Whether a text is a token as headers have them.
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic() && !b"()<>@,;:\\\"/[]?=".contains(&byte))
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
