//! Replays the writes and reads of recorded conversations on a store of hub objects.

use std::collections::BTreeMap;

use evenkeel_api::{AnyObject, Defaulted, Kind, Version, Wire, v1, v1beta1, v1beta2, v1beta3};
use evenkeel_recorded::{Body, Mismatch, Request, Response, compare, compared, transcripts};
use serde_json::Value;

/// Checks that the specification and the annotations of every object in an answer are as recorded, given what was
/// written before; and that there are such objects.
pub(crate) fn objects_are_shown_as_recorded(prefixes: &[&str]) {
    let Some(transcripts) = transcripts(prefixes) else { return };
    let mut objects = 0;
    for transcript in transcripts {
        let mut stored = BTreeMap::new();
        for step in &transcript.steps {
            if let (Some(request), Some(response)) = (&step.request, &step.response) {
                objects += usize::from(replay(&mut stored, request, response, &transcript.name));
            }
        }
    }
    compared("defaulted and converted objects", objects);
}

/// Whether the answer was one object, which was compared.
fn replay(stored: &mut BTreeMap<String, AnyObject>, request: &Request, response: &Response, what: &str) -> bool {
    let Some((kind, version, name)) = object_of_path(&request.path) else { return false };
    let Some(recorded) = response.body.as_ref().filter(|body| response.status < 300 && body["kind"] == kind.name())
    else {
        return false;
    };
    let name = name.or(recorded["metadata"]["name"].as_str()).unwrap().to_owned();
    match (request.method.as_str(), request.body()) {
        ("POST" | "PUT", Some(Body::Json(body))) => {
            stored.insert(name.clone(), read(kind, version, body));
        }
        ("GET", _) => {}
        // Patches are not this crate's to apply.
        _ => {
            stored.remove(&name);
        }
    }
    let Some(object) = stored.get(&name) else { return false };
    let shown = write(object.clone(), version);
    for part in ["/spec", "/metadata/annotations"] {
        if response.mode == "subset" && recorded.pointer(part).is_none() {
            continue;
        }
        let found = compare(
            &format!("{what}: {} {}{part}", request.method, request.path),
            recorded.pointer(part).unwrap_or(&Value::Null),
            shown.pointer(part).unwrap_or(&Value::Null),
        );
        let found: Vec<_> = found.iter().map(Mismatch::to_string).collect();
        assert!(found.is_empty(), "{}", found.join("\n"));
    }
    true
}

/// The kind, the version and the name in a path, if the path is one of an object or a collection.
fn object_of_path(path: &str) -> Option<(Kind, Version, Option<&str>)> {
    let mut parts = path.strip_prefix("/apis/flowcontrol.apiserver.k8s.io/")?.split('/');
    let version = parts.next()?.parse().ok()?;
    let kind = match parts.next()? {
        "flowschemas" => Kind::FlowSchema,
        "prioritylevelconfigurations" => Kind::PriorityLevelConfiguration,
        _ => return None,
    };
    Some((kind, version, parts.next()))
}

/// What is stored of a body sent in that version.
fn read(kind: Kind, version: Version, body: Value) -> AnyObject {
    fn hub<W: Wire + Defaulted>(body: Value) -> AnyObject
    where
        AnyObject: From<evenkeel_api::Object<v1::V1, W::HubSpec>>,
    {
        let mut body = body;
        // Recorded times and numbers are placeholders, and nothing that is compared here.
        body["metadata"] = serde_json::json!({"annotations": body["metadata"]["annotations"].take()});
        let mut object: W = serde_json::from_value(body).unwrap();
        object.apply_defaults();
        object.into_hub().into()
    }

    match (kind, version) {
        (Kind::FlowSchema, Version::V1) => hub::<v1::FlowSchema>(body),
        (Kind::FlowSchema, Version::V1beta3) => hub::<v1beta3::FlowSchema>(body),
        (Kind::FlowSchema, Version::V1beta2) => hub::<v1beta2::FlowSchema>(body),
        (Kind::FlowSchema, Version::V1beta1) => hub::<v1beta1::FlowSchema>(body),
        (Kind::PriorityLevelConfiguration, Version::V1) => hub::<v1::PriorityLevelConfiguration>(body),
        (Kind::PriorityLevelConfiguration, Version::V1beta3) => hub::<v1beta3::PriorityLevelConfiguration>(body),
        (Kind::PriorityLevelConfiguration, Version::V1beta2) => hub::<v1beta2::PriorityLevelConfiguration>(body),
        (Kind::PriorityLevelConfiguration, Version::V1beta1) => hub::<v1beta1::PriorityLevelConfiguration>(body),
    }
}

/// The object as that version writes it.
fn write(object: AnyObject, version: Version) -> Value {
    match (object, version) {
        (AnyObject::FlowSchema(schema), Version::V1) => serde_json::to_value(schema),
        (AnyObject::FlowSchema(schema), Version::V1beta3) => {
            serde_json::to_value(v1beta3::FlowSchema::from_hub(schema))
        }
        (AnyObject::FlowSchema(schema), Version::V1beta2) => {
            serde_json::to_value(v1beta2::FlowSchema::from_hub(schema))
        }
        (AnyObject::FlowSchema(schema), Version::V1beta1) => {
            serde_json::to_value(v1beta1::FlowSchema::from_hub(schema))
        }
        (AnyObject::PriorityLevelConfiguration(level), Version::V1) => serde_json::to_value(level),
        (AnyObject::PriorityLevelConfiguration(level), Version::V1beta3) => {
            serde_json::to_value(v1beta3::PriorityLevelConfiguration::from_hub(level))
        }
        (AnyObject::PriorityLevelConfiguration(level), Version::V1beta2) => {
            serde_json::to_value(v1beta2::PriorityLevelConfiguration::from_hub(level))
        }
        (AnyObject::PriorityLevelConfiguration(level), Version::V1beta1) => {
            serde_json::to_value(v1beta1::PriorityLevelConfiguration::from_hub(level))
        }
    }
    .unwrap()
}
