//! The OpenAPI v2 document in protobuf (API-189): what kubectl checks the items of a `List` against, before it sends them.
//!
//! The messages are those of `openapi.v2` in gnostic, of which only the definitions are written: who reads this looks at
//! nothing else. What a schema says in words of its own is JSON inside of a message, which is what readers expect.

use serde_json::Value;

/// A message that is being written.
#[derive(Debug, Default)]
struct Message(Vec<u8>);

/// The type of a field whose length is written before it: text, or another message.
const LENGTH_DELIMITED: u64 = 2;

/// The numbers of the fields that are written. Whatever is a list of one thing, or of pairs, has it in its first field.
mod field {
    pub(super) const ONLY: u64 = 1;
    pub(super) const NAME: u64 = 1;
    pub(super) const VALUE: u64 = 2;

    pub(super) const DOCUMENT_SWAGGER: u64 = 1;
    pub(super) const DOCUMENT_INFO: u64 = 2;
    pub(super) const DOCUMENT_PATHS: u64 = 8;
    pub(super) const DOCUMENT_DEFINITIONS: u64 = 9;

    pub(super) const INFO_TITLE: u64 = 1;
    pub(super) const INFO_VERSION: u64 = 2;

    pub(super) const ANY_YAML: u64 = 2;

    pub(super) const REFERENCE: u64 = 1;
    pub(super) const FORMAT: u64 = 2;
    pub(super) const DESCRIPTION: u64 = 4;
    pub(super) const DEFAULT: u64 = 5;
    pub(super) const REQUIRED: u64 = 19;
    pub(super) const ENUM: u64 = 20;
    pub(super) const ADDITIONAL_PROPERTIES: u64 = 21;
    pub(super) const TYPE: u64 = 22;
    pub(super) const ITEMS: u64 = 23;
    pub(super) const PROPERTIES: u64 = 25;
    pub(super) const EXTENSION: u64 = 31;
}

/// The bytes of the document that is given as JSON.
pub(super) fn document(json: &Value) -> Vec<u8> {
    let mut info = Message::default();
    info.text(field::INFO_TITLE, text(&json["info"]["title"]));
    info.text(field::INFO_VERSION, text(&json["info"]["version"]));
    let mut document = Message::default();
    document.text(field::DOCUMENT_SWAGGER, text(&json["swagger"]));
    document.message(field::DOCUMENT_INFO, &info);
    document.message(field::DOCUMENT_PATHS, &Message::default());
    document.message(field::DOCUMENT_DEFINITIONS, &named_schemas(&json["definitions"]));
    document.0
}

fn schema(json: &Value) -> Message {
    let mut schema = Message::default();
    for (name, value) in json.as_object().into_iter().flatten() {
        match name.as_str() {
            "$ref" => schema.text(field::REFERENCE, text(value)),
            "format" => schema.text(field::FORMAT, text(value)),
            "description" => schema.text(field::DESCRIPTION, text(value)),
            "default" => schema.message(field::DEFAULT, &any(value)),
            "required" => list(value).for_each(|value| schema.text(field::REQUIRED, text(value))),
            "enum" => list(value).for_each(|value| schema.message(field::ENUM, &any(value))),
            "additionalProperties" => schema.message(field::ADDITIONAL_PROPERTIES, &around(&self::schema(value))),
            "type" => {
                let mut types = Message::default();
                types.text(field::ONLY, text(value));
                schema.message(field::TYPE, &types);
            }
            "items" => schema.message(field::ITEMS, &around(&self::schema(value))),
            "properties" => schema.message(field::PROPERTIES, &named_schemas(value)),
            extension => schema.message(field::EXTENSION, &named(extension, &any(value))),
        }
    }
    schema
}

/// Schemas by name, as a list of pairs.
fn named_schemas(json: &Value) -> Message {
    let mut all = Message::default();
    for (name, value) in json.as_object().into_iter().flatten() {
        all.message(field::ONLY, &named(name, &schema(value)));
    }
    all
}

fn named(name: &str, value: &Message) -> Message {
    let mut pair = Message::default();
    pair.text(field::NAME, name);
    pair.message(field::VALUE, value);
    pair
}

/// A message with nothing but another one in it.
fn around(inner: &Message) -> Message {
    let mut outer = Message::default();
    outer.message(field::ONLY, inner);
    outer
}

/// Any value: it is written as YAML, which JSON is too.
fn any(value: &Value) -> Message {
    let mut any = Message::default();
    any.text(field::ANY_YAML, &value.to_string());
    any
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

// === impl Message ===

impl Message {
    fn text(&mut self, field: u64, text: &str) {
        self.bytes(field, text.as_bytes());
    }

    fn message(&mut self, field: u64, message: &Self) {
        self.bytes(field, &message.0);
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.number((field << 3) | LENGTH_DELIMITED);
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// Seven bits at a time, the lowest first; all but the last byte have their highest bit set.
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            let [low, ..] = number.to_le_bytes();
            self.0.push(low | 0x80);
            number >>= 7;
        }
        let [last, ..] = number.to_le_bytes();
        self.0.push(last);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_have_a_number_a_length_and_what_is_in_them() {
        let json = json!({
            "swagger": "2.0", "info": {"title": "T", "version": "1"},
            "definitions": {"D": {"type": "object", "properties": {"p": {"$ref": "#/definitions/E"}}, "x-y": [1]}},
        });
        let expected: &[&[u8]] = &[
            b"\x0a\x032.0",
            b"\x12\x06\x0a\x01T\x12\x011",
            b"\x42\x00",
            b"\x4a\x3c\x0a\x3a\x0a\x01D\x12\x35",
            b"\xca\x01\x18\x0a\x16\x0a\x01p\x12\x11\x0a\x0f#/definitions/E",
            b"\xb2\x01\x08\x0a\x06object",
            b"\xfa\x01\x0c\x0a\x03x-y\x12\x05\x12\x03[1]",
        ];
        assert_eq!(document(&json).escape_ascii().to_string(), expected.concat().escape_ascii().to_string());
    }

    #[test]
    fn long_numbers_take_several_bytes() {
        let mut message = Message::default();
        message.number(300);
        message.number(127);
        assert_eq!(message.0, [0xac, 0x02, 0x7f]);
    }
}
