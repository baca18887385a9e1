//! The events of a watch: lines of JSON (API-159, API-163, API-172), or frames of protobuf (PB-4).

use bytes::Bytes;
use evenkeel_api::meta::{ObjectMeta, Time};
use evenkeel_api::protobuf::watch_event;
use evenkeel_api::{Object, Version};
use http::HeaderValue;

use super::format::write_json;
use super::partial::PartialMetadata;
use super::table::{Header, Table, TableStyle};
use super::{Columns, Format, Media, Shown, View, protobuf};
use crate::Failure;
use crate::negotiate::{MetaVersion, Shape};

/// Writes the events of one watch.
#[derive(Debug)]
pub(crate) struct EventWriter {
    version: Version,
    shape: EventShape,
    framing: Framing,
}

/// How events are separated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    /// Each is a line of JSON.
    Lines,
    /// Each is a protobuf message with its length before it.
    Frames,
}

/// The change to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// The object was created, or begins to match the selectors.
    Added,
    /// The object has changed.
    Modified,
    /// The object was deleted, or no longer matches the selectors.
    Deleted,
}

/// Why a bookmark is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bookmark {
    /// To say how far the watch has come.
    Progress,
    /// To say that all objects that existed at the start have been sent (API-164).
    InitialEventsEnd,
}

#[derive(Debug)]
enum EventShape {
    Plain,
    Table(TableStyle),
    PartialMetadata(MetaVersion),
}

/// The content type of a watch in protobuf (PB-4).
const PROTOBUF_WATCH: &str = "application/vnd.kubernetes.protobuf;stream=watch";
/// The annotation of the bookmark that ends the initial events (API-164).
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

// === impl EventWriter ===

impl EventWriter {
    /// For a watch whose client wants that.
    pub(crate) fn new(view: &View<'_>) -> Result<Self, Failure> {
        let shape = match view.wanted.shape {
            Shape::Plain => EventShape::Plain,
            Shape::Table(version) => EventShape::Table(TableStyle::new(version, view)?),
            // A watch has no lists; a client that asks for a list of metadata gets metadata.
            Shape::PartialMetadata(version) | Shape::PartialMetadataList(version) => {
                EventShape::PartialMetadata(version)
            }
        };
        let framing = match view.wanted.format {
            Format::Text(_) => Framing::Lines,
            Format::Protobuf => Framing::Frames,
        };
        Ok(Self { version: view.version, shape, framing })
    }

    /// The format of the whole watch.
    pub(crate) fn content_type(&self) -> HeaderValue {
        HeaderValue::from_static(match self.framing {
            Framing::Lines => Media::Json.name(),
            Framing::Frames => PROTOBUF_WATCH,
        })
    }

    /// The event of a change to an object.
    pub(crate) fn change<S: Columns>(&mut self, change: Change, shown: Shown<'_, S>, now: Time) -> Bytes {
        self.event(change.name(), shown, now)
    }

    /// The event that all changes up to a version have been sent (API-163).
    pub(crate) fn bookmark<S: Columns>(&mut self, bookmark: Bookmark, resource_version: &str) -> Bytes {
        let mut metadata = ObjectMeta { resource_version: resource_version.to_owned(), ..ObjectMeta::default() };
        if bookmark == Bookmark::InitialEventsEnd {
            metadata.annotations.insert(INITIAL_EVENTS_END.to_owned(), "true".to_owned());
        }
        // The object of a bookmark has no time of creation, and so no age.
        self.event("BOOKMARK", Shown::new(&Object::new(metadata, S::default())), Time::from_unix_seconds(0))
    }

    /// The event that the watch failed: always a plain `Status` (API-168).
    pub(crate) fn failure(&self, failure: &Failure) -> Bytes {
        if self.framing == Framing::Frames {
            return watch_event("ERROR", &protobuf::status(failure)).into();
        }
        let mut text = opening("ERROR", 512);
        write_json(&mut text, failure);
        closed(text)
    }

    fn event<S: Columns>(&mut self, event: &str, shown: Shown<'_, S>, now: Time) -> Bytes {
        match self.framing {
            Framing::Lines => self.line(event, shown, now),
            Framing::Frames => self.frame(event, shown),
        }
    }

    /// Never a table: those are text only.
    fn frame<S: Columns>(&self, event: &str, shown: Shown<'_, S>) -> Bytes {
        let object = match self.shape {
            EventShape::Plain | EventShape::Table(_) => shown.object.in_version(self.version).to_protobuf(),
            EventShape::PartialMetadata(version) => protobuf::partial(&shown.object.metadata, version),
        };
        watch_event(event, &object).into()
    }

    fn line<S: Columns>(&mut self, event: &str, shown: Shown<'_, S>, now: Time) -> Bytes {
        match &mut self.shape {
            EventShape::Plain => {
                let encoded = shown.encoded(self.version);
                let mut text = opening(event, encoded.json().len());
                text.extend_from_slice(encoded.json());
                closed(text)
            }
            EventShape::Table(style) => {
                let mut text = opening(event, 2048);
                write_json(&mut text, &Table::of_object(shown, *style, now));
                style.header = Header::Omitted;
                closed(text)
            }
            EventShape::PartialMetadata(version) => {
                let mut text = opening(event, 1024);
                write_json(&mut text, &PartialMetadata::new(&shown.object.metadata, *version));
                closed(text)
            }
        }
    }
}

/// The beginning of an event, with room for an object of that length.
fn opening(event: &str, length: usize) -> Vec<u8> {
    let mut text = Vec::with_capacity(length + 40);
    text.extend_from_slice(br#"{"type":""#);
    text.extend_from_slice(event.as_bytes());
    text.extend_from_slice(br#"","object":"#);
    text
}

fn closed(mut text: Vec<u8>) -> Bytes {
    text.extend_from_slice(b"}\n");
    text.into()
}

// === impl Change ===

impl Change {
    fn name(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}
