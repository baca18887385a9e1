//! The OpenAPI v2 document in protobuf (API-189): what kubectl checks the items of a `List` against, before it sends them, and where it
//! looks up what the server can do.
//!
//! The messages are those of `openapi.v2` in gnostic. Extensions are JSON inside of a message, as readers expect.

mod paths;

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
    document.message(field::DOCUMENT_PATHS, &paths::paths(&json["paths"]));
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

    /// The fields of a message: their numbers, and what is in them. Numbers and truth values have no bytes.
    fn fields(mut bytes: &[u8]) -> Vec<(u64, &[u8])> {
        fn varint(bytes: &mut &[u8]) -> u64 {
            let mut number = 0;
            for shift in (0..64).step_by(7) {
                let (byte, rest) = bytes.split_first().expect("a whole number");
                *bytes = rest;
                number |= u64::from(byte & 0x7f) << shift;
                if byte & 0x80 == 0 {
                    break;
                }
            }
            number
        }
        let mut found = Vec::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            let (value, rest) = match key & 7 {
                0 => {
                    varint(&mut bytes);
                    (&[][..], bytes)
                }
                2 => {
                    let length = usize::try_from(varint(&mut bytes)).unwrap();
                    bytes.split_at(length)
                }
                other => panic!("wire type {other}"),
            };
            bytes = rest;
            found.push((key >> 3, value));
        }
        found
    }

    /// The contents of all fields that a path of numbers leads to.
    fn at<'b>(bytes: &'b [u8], path: &[u64]) -> Vec<&'b [u8]> {
        path.iter().fold(vec![bytes], |messages, number| {
            let inner = messages.iter().flat_map(|message| fields(message));
            inner.filter(|(found, _)| found == number).map(|(_, value)| value).collect()
        })
    }

    /// kubectl before 1.27 asks so whether the server knows `dryRun`: by the patch of the path that is about the kind.
    #[test]
    fn api_189_older_kubectls_find_out_that_objects_know_dry_runs() {
        let bytes = document(&evenkeel_api::schema::openapi_v2());
        let (path_item, patch) = ([8, 2, 2], [8]);
        let (extension, parameter_name) = ([13], [8, 1, 2, 3, 4]);
        for version in evenkeel_api::Version::ALL {
            for kind in [evenkeel_api::Kind::FlowSchema, evenkeel_api::Kind::PriorityLevelConfiguration] {
                let wanted = json!({"group": evenkeel_api::GROUP, "version": version.name(), "kind": kind.name()});
                let patches = at(&bytes, &[&path_item[..], &patch].concat());
                let is_about = |patch: &&[u8]| {
                    at(patch, &extension).into_iter().any(|pair| {
                        let yaml = at(pair, &[2, 2])[0];
                        at(pair, &[1])[0] == b"x-kubernetes-group-version-kind"
                            && serde_json::from_slice::<Value>(yaml).unwrap() == wanted
                    })
                };
                let found = patches.into_iter().find(is_about).unwrap_or_else(|| panic!("{wanted}"));
                assert!(at(found, &parameter_name).contains(&&b"dryRun"[..]), "{wanted}");
            }
        }
        let paths = at(&bytes, &[8, 2, 1]).len();
        assert_eq!(paths, evenkeel_api::schema::openapi_v2()["paths"].as_object().unwrap().len());
    }

    #[test]
    fn an_operation_has_its_parameters_and_responses() {
        let json = json!({"/a/{name}": {
            "parameters": [{"name": "name", "in": "path", "required": true, "type": "string"}],
            "put": {
                "operationId": "o", "deprecated": true, "consumes": ["application/json"],
                "parameters": [{"name": "body", "in": "body", "required": true, "schema": {"$ref": "#/definitions/D"}}],
                "responses": {"200": {"description": "OK", "schema": {"type": "string"}}},
            },
        }});
        let bytes = document(&json!({"swagger": "2.0", "paths": json}));
        let texts = |path: &[u64]| -> Vec<String> {
            at(&bytes, path).iter().map(|text| String::from_utf8_lossy(text).into_owned()).collect()
        };
        assert_eq!(texts(&[8, 2, 1]), ["/a/{name}"]);
        assert_eq!(texts(&[8, 2, 2, 9, 1, 2, 4, 4]), ["name"], "a parameter of the path");
        assert_eq!(texts(&[8, 2, 2, 9, 1, 2, 4, 5]), ["string"]);
        assert_eq!(texts(&[8, 2, 2, 9, 1, 2, 4, 1]).len(), 1, "which is required");
        let put = [8, 2, 2, 3];
        let of_put = |path: &[u64]| texts(&[&put[..], path].concat());
        assert_eq!(
            (of_put(&[5]), of_put(&[7]), of_put(&[11]).len()),
            (vec!["o".into()], vec!["application/json".into()], 1)
        );
        assert_eq!(of_put(&[8, 1, 1, 5, 1]), ["#/definitions/D"]);
        assert_eq!((of_put(&[9, 1, 1]), of_put(&[9, 1, 2, 1, 1])), (vec!["200".into()], vec!["OK".into()]));
        assert_eq!(of_put(&[9, 1, 2, 1, 2, 1, 22, 1]), ["string"]);
    }

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
