//! Objects, lists, statuses, options and watch events are read and written byte for byte as recorded (PB-1 to PB-6).

use evenkeel_api::decode::{Node, Value as Tree, parse_protobuf};
use evenkeel_api::protobuf::{self, Envelope};
use evenkeel_api::schema::{self, TypeSchema};
use evenkeel_api::{Kind, List, Object, Version, v1, v1beta1, v1beta2, v1beta3};
use evenkeel_recorded::{Encoding, compared, encodings};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The type of an object that says what it is.
fn schema_of(json: &Value) -> &'static TypeSchema {
    let kind = json["kind"].as_str().unwrap();
    match kind {
        "Status" => return &schema::STATUS,
        "DeleteOptions" => return &schema::DELETE_OPTIONS,
        _ => {}
    }
    let version = Version::from_api_version(json["apiVersion"].as_str().unwrap()).unwrap();
    match kind.strip_suffix("List") {
        Some(item) => schema::list_type(version, item.parse().unwrap()),
        None => schema::object_type(version, kind.parse().unwrap()),
    }
}

/// The object in its envelope, made from JSON.
fn encoded(json: &Value) -> Vec<u8> {
    let message = protobuf::encode(json, schema_of(json)).unwrap();
    protobuf::sealed(json["apiVersion"].as_str().unwrap(), json["kind"].as_str().unwrap(), &message)
}

/// The same tree as JSON.
fn json(node: &Node) -> Value {
    match &node.value {
        Tree::Null => Value::Null,
        Tree::Bool(value) => (*value).into(),
        Tree::Number(literal) => serde_json::from_str(literal).unwrap(),
        Tree::String(text) => text.as_str().into(),
        Tree::List(items) => items.iter().map(json).collect(),
        Tree::Map(members) => members.iter().map(|member| (member.key.clone(), json(&member.value))).collect(),
    }
}

/// Without what means nothing: absent members that are written as `null`, and empty lists.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let means_something =
                |value: &Value| !value.is_null() && value.as_array().is_none_or(|items| !items.is_empty());
            let set = members.iter().filter(|(_, value)| means_something(value));
            set.map(|(name, value)| (name.clone(), without_nulls(value))).collect()
        }
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}

/// The recorded object and its bytes in an envelope.
fn object(recorded: &Encoding) -> (&Value, &[u8]) {
    let bytes = match recorded.what.as_str() {
        "watchEvent" => {
            let at = recorded.protobuf.windows(4).position(|window| window == protobuf::MAGIC).unwrap();
            &recorded.protobuf[at..]
        }
        _ => &recorded.protobuf,
    };
    (&recorded.json, bytes)
}

#[test]
fn pb_2_what_is_recorded_is_written_byte_for_byte() {
    let recorded = encodings();
    for recorded in &recorded {
        let mut found = encoded(&recorded.json);
        if recorded.what == "watchEvent" {
            let frame = protobuf::watch_event(&recorded.event, &found);
            let (length, message) = frame.split_at(4);
            assert_eq!(length, u32::try_from(message.len()).unwrap().to_be_bytes());
            found = message.to_vec();
        }
        assert!(found == recorded.protobuf, "{} {}", recorded.what, recorded.json);
    }
    compared("protobuf encodings (written)", recorded.len());
}

#[test]
fn pb_2_what_is_recorded_is_read() {
    let recorded = encodings();
    for recorded in &recorded {
        let (expected, bytes) = object(recorded);
        let envelope = Envelope::open(bytes).unwrap();
        let document = parse_protobuf(&envelope, schema_of(expected)).unwrap();
        assert_eq!(without_nulls(&json(&document.root)), without_nulls(expected), "{}", recorded.what);
    }
    compared("protobuf encodings (read)", recorded.len());
}

/// What the types keep of a recorded object: neither `namespace` nor `selfLink`.
fn kept(mut json: Value) -> Value {
    fn drop_from(metadata: &mut Value) {
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.retain(|name, _| name != "namespace" && name != "selfLink");
        }
    }
    drop_from(&mut json["metadata"]);
    for item in json.get_mut("items").and_then(Value::as_array_mut).into_iter().flatten() {
        drop_from(&mut item["metadata"]);
    }
    json
}

/// The object through its Rust type: read from JSON, written in protobuf.
fn typed<T: DeserializeOwned + Serialize>(json: &Value, write: impl Fn(&T) -> Vec<u8>) -> (Value, Vec<u8>) {
    let object: T = serde_json::from_value(json.clone()).unwrap();
    (serde_json::to_value(&object).unwrap(), write(&object))
}

#[test]
fn pb_2_the_types_are_written_as_what_they_keep() {
    let recorded = encodings();
    let mut count = 0;
    for recorded in recorded.iter().filter(|recorded| recorded.what == "object") {
        let expected = kept(recorded.json.clone());
        let version = Version::from_api_version(expected["apiVersion"].as_str().unwrap()).unwrap();
        macro_rules! typed_in {
            ($module:ident) => {
                match expected["kind"].as_str().unwrap() {
                    "FlowSchema" => typed(&expected, $module::FlowSchema::to_protobuf),
                    "FlowSchemaList" => typed(&expected, $module::FlowSchemaList::to_protobuf),
                    "PriorityLevelConfiguration" => typed(&expected, $module::PriorityLevelConfiguration::to_protobuf),
                    "PriorityLevelConfigurationList" => {
                        typed(&expected, $module::PriorityLevelConfigurationList::to_protobuf)
                    }
                    other => panic!("{other}"),
                }
            };
        }
        let (json, bytes) = match version {
            Version::V1 => typed_in!(v1),
            Version::V1beta3 => typed_in!(v1beta3),
            Version::V1beta2 => typed_in!(v1beta2),
            Version::V1beta1 => typed_in!(v1beta1),
        };
        assert_eq!(without_nulls(&json), without_nulls(&expected));
        assert!(bytes == encoded(&expected), "{expected}");
        count += 1;
    }
    compared("protobuf encodings (typed)", count);
}

#[test]
fn pb_1_field_numbers_are_unique_and_complete() {
    fn check(schema: &TypeSchema) {
        let mut numbers: Vec<_> = schema.fields.iter().filter_map(|field| field.number).collect();
        numbers.sort_unstable();
        assert!(numbers.is_sorted_by(|one, other| one < other), "{:?}: {numbers:?}", schema.name);
        for field in schema.fields {
            let is_in_envelope = matches!(field.name, "kind" | "apiVersion");
            assert!(field.number.is_some() || is_in_envelope, "{:?}.{} has no number", schema.name, field.name);
            if let schema::Shape::Object(inner) = field.shape.element() {
                check(inner);
            }
        }
    }
    for version in Version::ALL {
        for kind in Kind::ALL {
            check(schema::object_type(version, kind));
            check(schema::list_type(version, kind));
        }
    }
    for schema in [&schema::STATUS, &schema::DELETE_OPTIONS, &schema::PARTIAL_OBJECT_METADATA_LIST] {
        check(schema);
    }
}

#[test]
fn pb_6_fields_that_come_again_are_merged_and_unknown_ones_skipped() {
    fn read(message: &[u8]) -> v1::FlowSchema {
        let envelope = Envelope { message, ..Envelope::default() };
        let document = parse_protobuf(&envelope, &v1::FlowSchema::SCHEMA).unwrap();
        document.decode::<v1::FlowSchemaSpec>(Version::V1).unwrap().object
    }
    // metadata {name: a, labels: {x: 1}} metadata {unknown 200, labels: {x: 2}, labels: {y: 3}} spec {precedence 5}
    let message = b"\x0a\x0b\x0a\x01a\x5a\x06\x0a\x01x\x12\x011\
        \x0a\x13\xc0\x0c\x05\x5a\x06\x0a\x01x\x12\x012\x5a\x06\x0a\x01y\x12\x013\
        \x12\x02\x10\x05\x12\x04\x0a\x02\x0a\x00\xa2\x06\x00";
    let schema = read(message);
    assert_eq!(schema.name(), "a");
    let labels: Vec<_> = schema.metadata.labels.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    assert_eq!(labels, [("x", "2"), ("y", "3")]);
    assert_eq!(schema.spec.matching_precedence, 5);
}

#[test]
fn pb_6_errors_name_fields_as_the_reference_does() {
    for (message, words) in [
        (&b"\x08\x01"[..], "proto: wrong wireType = 0 for field ObjectMeta"),
        (b"\x0a\x02\x28\x01", "proto: wrong wireType = 0 for field UID"),
        (b"\x12\x02\x12\x00", "proto: wrong wireType = 2 for field MatchingPrecedence"),
        (b"\x1a\x01\x04", "proto: FlowSchemaStatus: wiretype end group for non-group"),
        (b"\x12\x02\x00\x00", "proto: FlowSchemaSpec: illegal tag 0 (wire type 0)"),
        (b"\x12\x08\x22\x06\x12\x04\x10\x01\x12\x00", "proto: wrong wireType = 0 for field APIGroups"),
        (b"\x0a\x05\x0a", "unexpected EOF"),
    ] {
        let envelope = Envelope { kind: "FlowSchema".into(), message, ..Envelope::default() };
        let error = parse_protobuf(&envelope, &v1::FlowSchema::SCHEMA).unwrap_err();
        assert_eq!(error.to_string(), words, "{message:?}");
    }
}

#[test]
fn pb_6_memory_is_in_proportion_and_keys_are_found_in_time() {
    let envelope = |message| Envelope { message, ..Envelope::default() };
    // Empty rules take two bytes each, and there may be as many of them as JSON may hold values.
    let rules = b"\x22\x00".repeat(1 << 21);
    let mut message = protobuf::Writer::default();
    message.bytes(2, &rules);
    let message = message.into_bytes();
    let error = parse_protobuf(&envelope(&message), &v1::FlowSchema::SCHEMA).unwrap_err();
    assert_eq!(error.to_string(), "the message holds more than 1048576 values");
    // A map in many pieces, between as many messages: quadratic work would take minutes.
    let mut message = Vec::new();
    for index in 0..100_000 {
        let mut entry = protobuf::Writer::default();
        entry.text(1, &index.to_string());
        let mut metadata = protobuf::Writer::default();
        metadata.message(11, &entry);
        let mut object = protobuf::Writer::default();
        object.message(1, &metadata);
        message.extend_from_slice(&object.into_bytes());
    }
    let document = parse_protobuf(&envelope(&message), &v1::FlowSchema::SCHEMA).unwrap();
    let object = document.decode::<v1::FlowSchemaSpec>(Version::V1).unwrap().object;
    assert_eq!(object.metadata.labels.len(), 100_000);
}

/// Both have `to_protobuf`; this keeps the two generic types in the test's sight.
#[test]
fn pb_4_a_list_holds_its_items() {
    let item: Object<v1::V1, _> = v1::FlowSchema::builder("a").priority_level("low").build();
    let list: List<v1::V1, _> = [item.clone()].into_iter().collect();
    let bytes = list.to_protobuf();
    let inner = Envelope::open(&bytes).unwrap().message.to_vec();
    let item = item.to_protobuf();
    let item = Envelope::open(&item).unwrap().message;
    assert!(inner.ends_with(item), "the item is written as the object is");
}
