//! The bar of the objects: decoding, defaulting and validating the full set of bootstrap objects, in one thread.

use std::hint::black_box;

use evenkeel_api::decode::{Document, Manifest, Strictness, parse_json, parse_protobuf};
use evenkeel_api::protobuf::Envelope;
use evenkeel_api::v1::{FlowSchemaSpec, PriorityLevelConfigurationSpec};
use evenkeel_api::{AnyObject, HubSpec, Kind, Version, bootstrap, schema, validate};
use evenkeel_bars::{Bar, Bars, nanos_per_operation};
use serde_json::Value;

const BAR: Bar = Bar::AtLeast(20_000.0, "a second");

fn main() {
    let objects: Vec<_> = bootstrap::all().to_objects().collect();
    let mut bars = Bars::default();
    bars.add("bootstrap objects from JSON", per_second(from_json(&objects)), "a second", BAR);
    bars.add("bootstrap objects from protobuf", per_second(from_protobuf(&objects)), "a second", BAR);
    bars.add("bootstrap objects from YAML", per_second(from_yaml(&objects)), "a second", BAR);
    bars.print("The objects");
}

/// Each object alone, as it comes in the body of a request.
fn from_json(objects: &[AnyObject]) -> f64 {
    let texts: Vec<_> = objects.iter().map(|object| (object.kind(), json(object).to_string().into_bytes())).collect();
    nanos_per_operation(count(objects), || {
        for (kind, text) in &texts {
            match kind {
                Kind::FlowSchema => decode_and_validate::<FlowSchemaSpec>(text),
                Kind::PriorityLevelConfiguration => decode_and_validate::<PriorityLevelConfigurationSpec>(text),
            }
        }
    })
}

/// The same from those who send protobuf.
fn from_protobuf(objects: &[AnyObject]) -> f64 {
    let bodies: Vec<_> = objects.iter().map(|object| (object.kind(), protobuf(object))).collect();
    nanos_per_operation(count(objects), || {
        for (kind, body) in &bodies {
            let envelope = Envelope::open(black_box(body)).expect("an envelope");
            let document = parse_protobuf(&envelope, schema::object_type(Version::V1, *kind)).expect("a message");
            match kind {
                Kind::FlowSchema => validate_decoded::<FlowSchemaSpec>(&document),
                Kind::PriorityLevelConfiguration => validate_decoded::<PriorityLevelConfigurationSpec>(&document),
            }
        }
    })
}

/// All objects in one manifest, as they come in a file.
fn from_yaml(objects: &[AnyObject]) -> f64 {
    let texts: Vec<_> = objects.iter().map(|object| yaml(&json(object))).collect();
    let text = texts.join("---\n");
    nanos_per_operation(count(objects), || {
        let manifest = Manifest::read("bootstrap.yaml", black_box(text.as_bytes()), Strictness::Strict);
        assert_eq!(manifest.expect("bootstrap objects are valid").entries.len(), objects.len());
    })
}

fn decode_and_validate<S: HubSpec + validate::ValidSpec>(text: &[u8]) {
    validate_decoded::<S>(&parse_json(black_box(text)).expect("JSON"));
}

fn validate_decoded<S: HubSpec + validate::ValidSpec>(document: &Document) {
    let decoded = document.decode::<S>(Version::V1).expect("an object");
    assert!(decoded.dropped.is_empty());
    validate::create(&decoded.object, Version::V1).expect("a valid object");
    black_box(decoded);
}

fn count(objects: &[AnyObject]) -> u32 {
    u32::try_from(objects.len()).expect("a few objects")
}

fn per_second(nanos: f64) -> f64 {
    1e9 / nanos
}

fn json(object: &AnyObject) -> Value {
    match object {
        AnyObject::FlowSchema(schema) => serde_json::to_value(schema),
        AnyObject::PriorityLevelConfiguration(level) => serde_json::to_value(level),
    }
    .expect("an object is always written")
}

fn protobuf(object: &AnyObject) -> Vec<u8> {
    match object {
        AnyObject::FlowSchema(schema) => schema.to_protobuf(),
        AnyObject::PriorityLevelConfiguration(level) => level.to_protobuf(),
    }
}

/// The object in block style, as people write it.
fn yaml(object: &Value) -> String {
    let mut text = String::new();
    write_yaml(object, 0, &mut text);
    text + "\n"
}

fn write_yaml(value: &Value, indent: usize, text: &mut String) {
    let margin = " ".repeat(indent);
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (name, value) in members {
                text.push_str(&format!("\n{margin}{name}: "));
                write_yaml(value, indent + 2, text);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                text.push_str(&format!("\n{margin}- "));
                write_yaml(item, indent + 2, text);
            }
        }
        plain => text.push_str(&plain.to_string()),
    }
}
