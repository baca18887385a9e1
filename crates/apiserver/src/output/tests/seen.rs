//! The objects that a recorded server had sent.

use std::collections::BTreeMap;

use evenkeel_api::meta::Time;
use evenkeel_api::v1::V1;
use evenkeel_api::{GROUP, HubSpec, Kind, Object, Version, Wire};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The objects of one kind that a recorded server had sent so far, by name.
pub(super) struct Seen<S: HubSpec>(BTreeMap<String, Object<V1, S>>);

/// The text in place of the times that a recorded server had given.
const SOME_TIME: &str = "2024-01-02T03:04:05Z";

/// Some seconds after those times.
pub(super) fn now() -> Time {
    Time::from_unix_seconds(SOME_TIME.parse::<Time>().unwrap().unix_seconds() + 5)
}

/// Reads a recorded value, with something in the places of what the recorded server had made up.
pub(super) fn read<T: DeserializeOwned>(recorded: &Value) -> serde_json::Result<T> {
    fn fill_in(value: &mut Value) {
        match value {
            Value::String(text) if text.starts_with("{{time") => *text = SOME_TIME.to_owned(),
            Value::Array(elements) => elements.iter_mut().for_each(fill_in),
            Value::Object(members) => members.values_mut().for_each(fill_in),
            _ => {}
        }
    }
    let mut value = recorded.clone();
    fill_in(&mut value);
    serde_json::from_value(value)
}

/// The kind and version of a path, and the name, if it has one.
pub(super) fn parse_path(path: &str) -> Option<(Kind, Version, Option<&str>)> {
    let mut parts = path.strip_prefix("/apis/")?.strip_prefix(GROUP)?.strip_prefix('/')?.split('/');
    let version = parts.next()?.parse().ok()?;
    let resource = parts.next()?;
    let kind = Kind::ALL.into_iter().find(|kind| kind.resource() == resource)?;
    Some((kind, version, parts.next()))
}

// === impl Seen ===

impl<S: HubSpec> Default for Seen<S> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<S: HubSpec> Seen<S> {
    pub(super) fn get(&self, name: &str) -> Option<&Object<V1, S>> {
        self.0.get(name)
    }

    /// Remembers the objects of a response, if it is made of whole objects.
    pub(super) fn note(&mut self, version: Version, body: &Value) {
        let items = body["items"].as_array().map_or(std::slice::from_ref(body), Vec::as_slice);
        for item in items.iter().filter(|item| item["spec"].is_object() && item["metadata"]["uid"].is_string()) {
            let object = read_object::<S>(version, item);
            self.0.insert(object.name().to_owned(), object);
        }
    }

    /// Remembers what a write has made of the metadata of an object, if the response shows only that.
    pub(super) fn note_metadata(&mut self, body: &Value) {
        let name = body["metadata"]["name"].as_str().unwrap_or_default();
        if let Some(object) = self.0.get_mut(name).filter(|_| body["kind"] == "PartialObjectMetadata") {
            object.metadata = read(&body["metadata"]).unwrap();
        }
    }
}

/// Reads a recorded object.
pub(super) fn read_object<S: HubSpec>(version: Version, recorded: &Value) -> Object<V1, S> {
    fn hub<W: Wire>(recorded: &Value) -> Object<V1, W::HubSpec> {
        read::<W>(recorded).unwrap_or_else(|error| panic!("{error} in {recorded}")).into_hub()
    }
    match version {
        Version::V1 => hub::<S::V1>(recorded),
        Version::V1beta3 => hub::<S::V1beta3>(recorded),
        Version::V1beta2 => hub::<S::V1beta2>(recorded),
        Version::V1beta1 => hub::<S::V1beta1>(recorded),
    }
}
