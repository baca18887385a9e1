//! The OpenAPI v2 document in protobuf (API-189): what kubectl checks the items of a `List` against, before it sends them.
//!
//! The messages are those of `openapi.v2` in gnostic, of which only the definitions are written: kubectl reads nothing else.
//! Extensions of a schema are JSON inside of a message, as readers expect.

use evenkeel_api::protobuf::Writer;
use serde_json::Value;

/// The numbers of the fields that are written. Whatever is a list of one thing, or of pairs, has it in its first field.
mod field {
    pub(super) const ONLY: u32 = 1;
    pub(super) const NAME: u32 = 1;
    pub(super) const VALUE: u32 = 2;

    pub(super) const DOCUMENT_SWAGGER: u32 = 1;
    pub(super) const DOCUMENT_INFO: u32 = 2;
    pub(super) const DOCUMENT_PATHS: u32 = 8;
    pub(super) const DOCUMENT_DEFINITIONS: u32 = 9;

    pub(super) const INFO_TITLE: u32 = 1;
    pub(super) const INFO_VERSION: u32 = 2;

    pub(super) const ANY_YAML: u32 = 2;

    pub(super) const REFERENCE: u32 = 1;
    pub(super) const FORMAT: u32 = 2;
    pub(super) const DESCRIPTION: u32 = 4;
    pub(super) const DEFAULT: u32 = 5;
    pub(super) const REQUIRED: u32 = 19;
    pub(super) const ENUM: u32 = 20;
    pub(super) const ADDITIONAL_PROPERTIES: u32 = 21;
    pub(super) const TYPE: u32 = 22;
    pub(super) const ITEMS: u32 = 23;
    pub(super) const PROPERTIES: u32 = 25;
    pub(super) const EXTENSION: u32 = 31;
}

/// The bytes of the document that is given as JSON.
pub(super) fn document(json: &Value) -> Vec<u8> {
    let mut info = Writer::default();
    info.text(field::INFO_TITLE, text(&json["info"]["title"]));
    info.text(field::INFO_VERSION, text(&json["info"]["version"]));
    let mut document = Writer::default();
    document.text(field::DOCUMENT_SWAGGER, text(&json["swagger"]));
    document.message(field::DOCUMENT_INFO, &info);
    document.message(field::DOCUMENT_PATHS, &Writer::default());
    document.message(field::DOCUMENT_DEFINITIONS, &named_schemas(&json["definitions"]));
    document.into_bytes()
}

fn schema(json: &Value) -> Writer {
    let mut schema = Writer::default();
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
                let mut types = Writer::default();
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
fn named_schemas(json: &Value) -> Writer {
    let mut all = Writer::default();
    for (name, value) in json.as_object().into_iter().flatten() {
        all.message(field::ONLY, &named(name, &schema(value)));
    }
    all
}

fn named(name: &str, value: &Writer) -> Writer {
    let mut pair = Writer::default();
    pair.text(field::NAME, name);
    pair.message(field::VALUE, value);
    pair
}

/// A message with nothing but another one in it.
fn around(inner: &Writer) -> Writer {
    let mut outer = Writer::default();
    outer.message(field::ONLY, inner);
    outer
}

/// Any value, written as YAML, of which JSON is a part.
fn any(value: &Value) -> Writer {
    let mut any = Writer::default();
    any.text(field::ANY_YAML, &value.to_string());
    any
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
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
}
