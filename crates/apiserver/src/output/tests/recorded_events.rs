//! Recorded events of watches, written again from the objects in them.

use evenkeel_api::v1::{FlowSchemaSpec, PriorityLevelConfigurationSpec};
use evenkeel_api::{Kind, Object, Version};
use evenkeel_recorded::{compare, compared, transcripts};
use serde_json::Value;

use super::seen::{Seen, now, parse_path, read, read_object};
use crate::negotiate::{MetaVersion, Shape, Wanted};
use crate::output::{Bookmark, Change, Columns, Encoded, EventWriter, Shown, View};

#[test]
fn events_are_as_recorded() {
    let Some(transcripts) = transcripts(&["watch-", "clients-", "kubectl-"]) else { return };
    let mut written = 0;
    for transcript in &transcripts {
        let mut schemas = Seen::<FlowSchemaSpec>::default();
        let mut levels = Seen::<PriorityLevelConfigurationSpec>::default();
        let mut last = None;
        for step in &transcript.steps {
            if let (Some(request), Some(response)) = (&step.request, &step.response) {
                last = parse_path(&request.path).map(|(kind, version, _)| (kind, version)).or(last);
                let whole = response.body.as_ref().filter(|_| response.status < 300 && response.mode != "subset");
                match (last, whole) {
                    (Some((Kind::FlowSchema, version)), Some(body)) => schemas.note(version, body),
                    (Some((Kind::PriorityLevelConfiguration, version)), Some(body)) => levels.note(version, body),
                    _ => {}
                }
            }
            written += match last {
                Some((Kind::FlowSchema, version)) => check(&schemas, version, &step.events, &transcript.name),
                Some((Kind::PriorityLevelConfiguration, version)) => {
                    check(&levels, version, &step.events, &transcript.name)
                }
                None => 0,
            };
        }
    }
    assert!(written > 30, "only {written} events were written");
    compared("watch events", written);
}

/// How many of the events could be written again.
fn check<S: Columns>(seen: &Seen<S>, version: Version, events: &[Value], what: &str) -> usize {
    let Some(first) = events.first() else { return 0 };
    let shape = match first["object"]["kind"].as_str() {
        Some("Table") => Shape::Table(MetaVersion::V1),
        Some("PartialObjectMetadata") => Shape::PartialMetadata(MetaVersion::V1),
        Some(kind) if kind == S::KIND.name() => Shape::Plain,
        _ => return 0,
    };
    let include_object = match &first["object"]["rows"][0]["object"] {
        Value::Null => Some("None"),
        _ => None,
    };
    // The steps of one conversation may be about several versions.
    let named = first["object"]["apiVersion"].as_str().and_then(Version::from_api_version);
    let version = named.unwrap_or(version);
    let wanted = Wanted { shape, ..Wanted::default() };
    let mut writer = EventWriter::new(&View { version, wanted, include_object, now: now() }).unwrap();
    let mut written = 0;
    for event in events {
        let found = match event["type"].as_str().unwrap() {
            "BOOKMARK" => {
                let annotations = &event["object"]["metadata"]["annotations"];
                let bookmark = if annotations.is_null() { Bookmark::Progress } else { Bookmark::InitialEventsEnd };
                writer.bookmark::<S>(bookmark, "7")
            }
            "ERROR" => continue,
            change => {
                let Some(object) = object_of(seen, version, &event["object"]) else { continue };
                let kept = Encoded::new(&object, Version::V1);
                writer.change(change_of(change), Shown { object: &object, v1: Some(&kept) }, now())
            }
        };
        assert_eq!(found.iter().position(|byte| *byte == b'\n'), Some(found.len() - 1), "one line each");
        assert_eq!(compare("", event, &serde_json::from_slice(&found).unwrap()), [], "{what}");
        written += 1;
    }
    written
}

fn change_of(name: &str) -> Change {
    match name {
        "ADDED" => Change::Added,
        "MODIFIED" => Change::Modified,
        "DELETED" => Change::Deleted,
        other => panic!("{other} is no change"),
    }
}

/// The object that an event shows; what the event does not show of it, as it was seen elsewhere.
fn object_of<S: Columns>(seen: &Seen<S>, version: Version, shown: &Value) -> Option<Object<evenkeel_api::v1::V1, S>> {
    let (name, metadata) = match shown["kind"].as_str()? {
        "Table" => (&shown["rows"][0]["cells"][0], &shown["rows"][0]["object"]["metadata"]),
        "PartialObjectMetadata" => (&shown["metadata"]["name"], &shown["metadata"]),
        _ => return shown["metadata"]["uid"].is_string().then(|| read_object(version, shown)),
    };
    let mut object = seen.get(name.as_str()?)?.clone();
    if !metadata.is_null() {
        object.metadata = read(metadata).unwrap();
    }
    Some(object)
}
