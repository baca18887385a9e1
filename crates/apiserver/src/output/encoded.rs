//! `Encoded`: an object written once, to be sent many times.

use bytes::Bytes;
use evenkeel_api::v1::V1;
use evenkeel_api::{HubSpec, Object, Version};

use super::format::json_line;

/// An object as one line of JSON. It is cheap to clone, and where its members start is known, so that a list can leave
/// out `kind` and `apiVersion` (API-11) without looking at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Encoded {
    /// The JSON and a newline.
    line: Bytes,
    /// The length of the part before `metadata`, in bytes.
    heading: usize,
}

/// An object that is to be shown, and what has been kept of it.
#[derive(Debug, Clone)]
pub(crate) struct Shown<'a, S: HubSpec> {
    /// The object.
    pub(crate) object: &'a Object<V1, S>,
    /// The same object written in `v1`, if it is cached.
    pub(crate) v1: Option<&'a Encoded>,
}

// === impl Encoded ===

impl Encoded {
    /// Writes an object as that version does.
    pub(crate) fn new<S: HubSpec>(object: &Object<V1, S>, version: Version) -> Self {
        // A copy, since what is written has grown to up to twice its length, and it may be kept for long.
        let line = Bytes::copy_from_slice(&json_line(&object.in_version(version)));
        let heading = heading(S::KIND.name(), version);
        // Objects always start with this heading. If one did not, lists would include the two members, and still be valid.
        let heading = if line.starts_with(heading.as_bytes()) { heading.len() } else { 1 };
        Self { line, heading }
    }

    /// The JSON and a newline: the body of a response.
    pub(crate) fn line(&self) -> Bytes {
        self.line.clone()
    }

    /// The JSON.
    pub(crate) fn json(&self) -> &[u8] {
        self.line.strip_suffix(b"\n").unwrap_or(&self.line)
    }

    /// The JSON from `"metadata"` on; a `{` is to be put before it.
    pub(super) fn members(&self) -> &[u8] {
        &self.json()[self.heading..]
    }
}

fn heading(kind: &str, version: Version) -> String {
    format!(r#"{{"kind":"{kind}","apiVersion":"{}","#, version.api_version())
}

// === impl Shown ===

impl<S: HubSpec> Copy for Shown<'_, S> {}

impl<'a, S: HubSpec> Shown<'a, S> {
    /// An object without a cached encoding.
    pub(crate) fn new(object: &'a Object<V1, S>) -> Self {
        Self { object, v1: None }
    }

    /// The object as that version writes it: cached, or written now.
    pub(crate) fn encoded(&self, version: Version) -> Encoded {
        match self.v1 {
            Some(encoded) if version == Version::V1 => encoded.clone(),
            _ => Encoded::new(self.object, version),
        }
    }
}
