//! `Format`: how the text of an answer is written. Everything starts as one line of JSON, which most clients want.

use bytes::Bytes;
use http::HeaderValue;
use serde::Serialize;

use super::{indent, yaml};

/// How the text of an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Format {
    /// The language.
    pub(crate) media: Media,
    /// How JSON is laid out.
    pub(crate) layout: Layout,
}

/// The language of an answer (API-87).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Media {
    /// What programs want.
    #[default]
    Json,
    /// What some people want.
    Yaml,
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
    /// One line of JSON, or what the client wants instead.
    pub(crate) fn written(self, line: Bytes) -> Bytes {
        match (self.media, self.layout) {
            (Media::Json, Layout::OneLine) => line,
            (Media::Json, Layout::Indented) => indent::indented(&line).into(),
            // JSON is YAML, too: what is too deep to be read again is sent as it is.
            (Media::Yaml, _) => match serde_json::from_slice(&line) {
                Ok(value) => yaml::to_yaml(&value).into(),
                Err(_) => line,
            },
        }
    }

    /// The `Content-Type`.
    pub(crate) fn content_type(self) -> HeaderValue {
        HeaderValue::from_static(self.media.name())
    }
}

// === impl Media ===

impl Media {
    /// All that are spoken, the preferred one first.
    pub(crate) const ALL: [Self; 2] = [Self::Json, Self::Yaml];

    /// The media type.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Yaml => "application/yaml",
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
