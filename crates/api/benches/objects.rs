//! How long it takes to decode, default and validate the full set of bootstrap objects, from JSON and from YAML.
//!
//! The bar is 20,000 objects per second in one thread.

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use evenkeel_api::decode::{Manifest, Strictness, parse_json};
use evenkeel_api::v1::{FlowSchemaSpec, PriorityLevelConfigurationSpec};
use evenkeel_api::{AnyObject, HubSpec, Kind, Version, bootstrap, validate};

fn main() {
    divan::main();
}

/// Each object alone, as it comes in the body of a request.
#[divan::bench]
fn from_json(bencher: Bencher) {
    let objects: Vec<_> = bootstrap::all().to_objects().collect();
    let texts: Vec<_> = objects.iter().map(|object| (object.kind(), json(object).into_bytes())).collect();
    bencher.counter(ItemsCount::new(texts.len())).bench(|| {
        for (kind, text) in &texts {
            match kind {
                Kind::FlowSchema => decode_and_validate::<FlowSchemaSpec>(text),
                Kind::PriorityLevelConfiguration => decode_and_validate::<PriorityLevelConfigurationSpec>(text),
            }
        }
    });
}

/// All objects in one manifest, as they come in a file.
#[divan::bench]
fn from_yaml(bencher: Bencher) {
    let objects: Vec<_> = bootstrap::all().to_objects().collect();
    let texts: Vec<_> = objects.iter().map(yaml).collect();
    let text = texts.join("---\n");
    bencher.counter(ItemsCount::new(objects.len())).bench(|| {
        let manifest = Manifest::read("bootstrap.yaml", black_box(text.as_bytes()), Strictness::Strict);
        assert_eq!(manifest.expect("bootstrap objects are valid").entries.len(), objects.len());
    });
}

fn decode_and_validate<S: HubSpec + validate::ValidSpec>(text: &[u8]) {
    let document = parse_json(black_box(text)).expect("JSON");
    let decoded = document.decode::<S>(Version::V1).expect("an object");
    assert!(decoded.dropped.is_empty());
    validate::create(&decoded.object, Version::V1).expect("a valid object");
    black_box(decoded);
}

fn json(object: &AnyObject) -> String {
    match object {
        AnyObject::FlowSchema(schema) => serde_json::to_string(schema),
        AnyObject::PriorityLevelConfiguration(level) => serde_json::to_string(level),
    }
    .expect("an object is always written")
}

/// The object in block style, as people write it.
fn yaml(object: &AnyObject) -> String {
    let mut text = String::new();
    write_yaml(&serde_json::from_str(&json(object)).expect("JSON"), 0, &mut text);
    text
}

fn write_yaml(value: &serde_json::Value, indent: usize, text: &mut String) {
    let margin = " ".repeat(indent);
    match value {
        serde_json::Value::Object(members) if !members.is_empty() => {
            for (name, value) in members {
                text.push_str(&format!("\n{margin}{name}: "));
                write_yaml(value, indent + 2, text);
            }
        }
        serde_json::Value::Array(items) if !items.is_empty() => {
            for item in items {
                text.push_str(&format!("\n{margin}- "));
                write_yaml(item, indent + 2, text);
            }
        }
        plain => text.push_str(&plain.to_string()),
    }
    if indent == 0 {
        text.push('\n');
    }
}
