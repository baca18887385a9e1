//! The events of a watch, one line each (API-159, API-163, API-172).

use bytes::Bytes;
use evenkeel_api::meta::{ObjectMeta, Time};
use evenkeel_api::{Object, Version};

use super::format::write_json;
use super::partial::PartialMetadata;
use super::table::{Header, Table, TableStyle};
use super::{Columns, Shown, View};
use crate::Failure;
use crate::negotiate::{MetaVersion, Shape};

/// Writes the events of one watch.
#[derive(Debug)]
pub(crate) struct EventWriter {
    version: Version,
    shape: EventShape,
}

/// What happened to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// It has come into being, or into the selection.
    Added,
    /// It has changed.
    Modified,
    /// It is gone, or out of the selection.
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

/// The annotation of the bookmark that ends the initial events (API-164).
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

// === impl EventWriter ===

impl EventWriter {
    /// For a watch whose client wants that.
    pub(crate) fn new(view: &View<'_>) -> Result<Self, Failure> {
        let shape = match view.wanted.shape {
            Shape::Plain => EventShape::Plain,
            Shape::Table(version) => EventShape::Table(TableStyle::new(version, view)?),
            // A watch has no lists; who asks for a list of metadata is served with metadata.
            Shape::PartialMetadata(version) | Shape::PartialMetadataList(version) => {
                EventShape::PartialMetadata(version)
            }
        };
        Ok(Self { version: view.version, shape })
    }

    /// What happened to an object, at that time.
    pub(crate) fn change<S: Columns>(&mut self, change: Change, shown: Shown<'_, S>, now: Time) -> Bytes {
        self.event(change.name(), shown, now)
    }

    /// That everything up to a version has been sent (API-163).
    pub(crate) fn bookmark<S: Columns>(&mut self, bookmark: Bookmark, resource_version: &str) -> Bytes {
        let mut metadata = ObjectMeta { resource_version: resource_version.to_owned(), ..ObjectMeta::default() };
        if bookmark == Bookmark::InitialEventsEnd {
            metadata.annotations.insert(INITIAL_EVENTS_END.to_owned(), "true".to_owned());
        }
        // The object of a bookmark has no time of creation, and so no age.
        self.event("BOOKMARK", Shown::new(&Object::new(metadata, S::default())), Time::from_unix_seconds(0))
    }

    /// That the watch cannot go on: always a plain `Status` (API-168).
    pub(crate) fn failure(failure: &Failure) -> Bytes {
        let mut text = opening("ERROR", 512);
        write_json(&mut text, failure);
        closed(text)
    }

    fn event<S: Columns>(&mut self, event: &str, shown: Shown<'_, S>, now: Time) -> Bytes {
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
