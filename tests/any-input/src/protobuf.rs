//! Protobuf: any bytes give an object or an error, and what was read is written and read back.

use evenkeel_api::decode::{Document, Node, Value, parse_protobuf};
use evenkeel_api::protobuf::{self, Envelope};
use evenkeel_api::schema::{self, TypeSchema};
use evenkeel_api::v1::{FlowSchemaSpec, PriorityLevelConfigurationSpec};
use evenkeel_api::{HubSpec, Kind, Version};

/// Reads the bytes as a body, or as a bare message if they are none, of every type that is sent.
///
/// # Panics
/// If what was read is not the same when it is written and read again.
pub fn protobuf(input: &[u8]) {
    let envelope = Envelope::open(input).unwrap_or(Envelope { message: input, ..Envelope::default() });
    for version in Version::ALL {
        for kind in Kind::ALL {
            tree_is_read_back(&envelope, schema::list_type(version, kind));
            let Some(document) = tree_is_read_back(&envelope, schema::object_type(version, kind)) else { continue };
            match kind {
                Kind::FlowSchema => object_is_read_back::<FlowSchemaSpec>(&document, version),
                Kind::PriorityLevelConfiguration => {
                    object_is_read_back::<PriorityLevelConfigurationSpec>(&document, version);
                }
            }
        }
    }
    for schema in [
        &schema::STATUS,
        &schema::DELETE_OPTIONS,
        &schema::PARTIAL_OBJECT_METADATA,
        &schema::PARTIAL_OBJECT_METADATA_LIST,
        &schema::PARTIAL_OBJECT_METADATA_LIST_V1BETA1,
    ] {
        tree_is_read_back(&envelope, schema);
    }
}

fn tree_is_read_back(envelope: &Envelope<'_>, schema: &'static TypeSchema) -> Option<Document> {
    let document = parse_protobuf(envelope, schema).ok()?;
    let message = protobuf::encode(&json(&document.root), schema).expect("what was read fits its schema");
    let again = parse_protobuf(&Envelope { message: &message, ..envelope.clone() }, schema);
    let again = again.expect("what is written is read");
    let rewritten = protobuf::encode(&json(&again.root), schema).expect("what was read fits its schema");
    assert_eq!(rewritten, message, "{:?}", schema.name);
    Some(document)
}

fn object_is_read_back<S: HubSpec>(document: &Document, version: Version) {
    let Ok(decoded) = document.decode::<S>(version) else { return };
    assert!(decoded.dropped.is_empty(), "there is nothing to drop: {:?}", decoded.dropped);
    let bytes = decoded.object.in_version(version).to_protobuf();
    let envelope = Envelope::open(&bytes).expect("what is written is in an envelope");
    let again = parse_protobuf(&envelope, schema::object_type(version, S::KIND)).expect("what is written is read");
    let again = again.decode::<S>(version).expect("what is written is an object");
    assert_eq!(again.object, decoded.object, "{version}");
}

/// The same tree as JSON.
fn json(node: &Node) -> serde_json::Value {
    match &node.value {
        Value::Null => serde_json::Value::Null,
        Value::Bool(value) => (*value).into(),
        Value::Number(literal) => literal
            .parse()
            .map_or_else(|_| serde_json::from_str(literal).unwrap_or_default(), |number: i64| number.into()),
        Value::String(text) => text.as_str().into(),
        Value::List(items) => items.iter().map(json).collect(),
        Value::Map(members) => members.iter().map(|member| (member.key.clone(), json(&member.value))).collect(),
    }
}
