//! `Format`: what a response is written in. Texts start as one line of JSON, which most clients want.

use bytes::Bytes;
use http::HeaderValue;
use serde::Serialize;

use super::{indent, yaml};

/// The format of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// A text.
    Text(TextFormat),
    /// Kubernetes' protobuf.
    Protobuf,
}

/// How a text is written. Documents such as discovery have no other format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextFormat {
    /// JSON, for programs.
    Json(Layout),
    /// YAML, for people.
    Yaml,
}

/// The media types of requests and responses (API-87).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Media {
    /// JSON.
    Json,
    /// YAML.
    Yaml,
    /// Kubernetes' protobuf (PB-1), which Go programs send.
    Protobuf,
}

/// How JSON is laid out (API-78).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Layout {
    /// One line, and a newline.
    #[default]
    OneLine,
    /// Indented by two spaces.
    Indented,
}

// === impl Format ===

impl Format {
    /// The given media type, with JSON laid out so.
    pub(crate) fn new(media: Media, layout: Layout) -> Self {
        match media {
            Media::Json => Self::Text(TextFormat::Json(layout)),
            Media::Yaml => Self::Text(TextFormat::Yaml),
            Media::Protobuf => Self::Protobuf,
        }
    }

    /// The format, if it is a text.
    pub(crate) fn text(self) -> Option<TextFormat> {
        match self {
            Self::Text(format) => Some(format),
            Self::Protobuf => None,
        }
    }
}

impl Default for Format {
    fn default() -> Self {
        Self::Text(TextFormat::Json(Layout::OneLine))
    }
}

// === impl TextFormat ===

impl TextFormat {
    /// One line of JSON, or the form that the client wants instead.
    pub(crate) fn written(self, line: Bytes) -> Bytes {
        match self {
            Self::Json(Layout::OneLine) => line,
            Self::Json(Layout::Indented) => indent::indented(&line).into(),
            // JSON is YAML, too: what is too deep to be read again is sent as it is.
            Self::Yaml => match serde_json::from_slice(&line) {
                Ok(value) => yaml::to_yaml(&value).into(),
                Err(_) => line,
            },
        }
    }

    /// The `Content-Type`.
    pub(crate) fn content_type(self) -> HeaderValue {
        let media = match self {
            Self::Json(_) => Media::Json,
            Self::Yaml => Media::Yaml,
        };
        HeaderValue::from_static(media.name())
    }
}

// === impl Media ===

impl Media {
    /// All supported media types, the preferred one first.
    pub(crate) const ALL: [Self; 3] = [Self::Json, Self::Yaml, Self::Protobuf];

    /// The media type.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Yaml => "application/yaml",
            Self::Protobuf => "application/vnd.kubernetes.protobuf",
        }
    }
}

/// A value as one line of JSON with its newline.
pub(super) fn json_line(value: &impl Serialize) -> Bytes {
    let mut text = Vec::with_capacity(1024);
    write_json(&mut text, value);
    text.push(b'\n');
    text.into()
}

/// Writes a value behind what is there.
pub(super) fn write_json(text: &mut Vec<u8>, value: &impl Serialize) {
    serde_json::to_writer(text, value).expect("a Vec takes everything, and every map here has names for keys");
}
