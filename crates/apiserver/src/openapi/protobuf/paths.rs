//! The paths of the document: which operations there are, with their parameters and responses. Older kubectls look there whether the
//! server knows `dryRun`, before `diff` and `--dry-run=server`.

use evenkeel_api::protobuf::Writer;
use serde_json::Value;

use super::{any, around, list, named, schema, text};

/// The numbers of the fields that are written.
mod field {
    pub(super) const PATHS_PATH: u32 = 2;

    pub(super) const PATH_PARAMETERS: u32 = 9;
    pub(super) const PATH_EXTENSION: u32 = 10;

    pub(super) const OPERATION_TAGS: u32 = 1;
    pub(super) const OPERATION_SUMMARY: u32 = 2;
    pub(super) const OPERATION_DESCRIPTION: u32 = 3;
    pub(super) const OPERATION_ID: u32 = 5;
    pub(super) const OPERATION_PRODUCES: u32 = 6;
    pub(super) const OPERATION_CONSUMES: u32 = 7;
    pub(super) const OPERATION_PARAMETERS: u32 = 8;
    pub(super) const OPERATION_RESPONSES: u32 = 9;
    pub(super) const OPERATION_DEPRECATED: u32 = 11;
    pub(super) const OPERATION_EXTENSION: u32 = 13;

    pub(super) const BODY_PARAMETER: u32 = 1;
    pub(super) const NON_BODY_PARAMETER: u32 = 2;
    pub(super) const BODY_DESCRIPTION: u32 = 1;
    pub(super) const BODY_NAME: u32 = 2;
    pub(super) const BODY_IN: u32 = 3;
    pub(super) const BODY_REQUIRED: u32 = 4;
    pub(super) const BODY_SCHEMA: u32 = 5;

    pub(super) const QUERY_PARAMETER: u32 = 3;
    pub(super) const PATH_PARAMETER: u32 = 4;
    pub(super) const PARAMETER_REQUIRED: u32 = 1;
    pub(super) const PARAMETER_IN: u32 = 2;
    pub(super) const PARAMETER_DESCRIPTION: u32 = 3;
    pub(super) const PARAMETER_NAME: u32 = 4;

    pub(super) const RESPONSES_CODE: u32 = 1;
    pub(super) const RESPONSE_DESCRIPTION: u32 = 1;
    pub(super) const RESPONSE_SCHEMA: u32 = 2;
}

/// The numbers of the fields of a parameter that differ by where it is.
#[derive(Debug, Clone, Copy)]
struct ParameterFields {
    kind: u32,
    format: u32,
    default: u32,
    values: u32,
    extension: u32,
}

const OF_QUERY: ParameterFields = ParameterFields { kind: 6, format: 7, default: 10, values: 21, extension: 23 };
const OF_PATH: ParameterFields = ParameterFields { kind: 5, format: 6, default: 9, values: 20, extension: 22 };

/// The message of all paths.
pub(super) fn paths(json: &Value) -> Writer {
    let mut all = Writer::default();
    for (path, item) in json.as_object().into_iter().flatten() {
        all.message(field::PATHS_PATH, &named(path, &path_item(item)));
    }
    all
}

fn path_item(json: &Value) -> Writer {
    let mut item = Writer::default();
    for (name, value) in json.as_object().into_iter().flatten() {
        let method = match name.as_str() {
            "get" => 2,
            "put" => 3,
            "post" => 4,
            "delete" => 5,
            "options" => 6,
            "head" => 7,
            "patch" => 8,
            "parameters" => {
                list(value).for_each(|value| item.message(field::PATH_PARAMETERS, &parameter(value)));
                continue;
            }
            extension => {
                item.message(field::PATH_EXTENSION, &named(extension, &any(value)));
                continue;
            }
        };
        item.message(method, &operation(value));
    }
    item
}

fn operation(json: &Value) -> Writer {
    let mut operation = Writer::default();
    for (name, value) in json.as_object().into_iter().flatten() {
        let mut texts = |field| list(value).for_each(|value| operation.text(field, text(value)));
        match name.as_str() {
            "tags" => texts(field::OPERATION_TAGS),
            "produces" => texts(field::OPERATION_PRODUCES),
            "consumes" => texts(field::OPERATION_CONSUMES),
            "summary" => operation.text(field::OPERATION_SUMMARY, text(value)),
            "description" => operation.text(field::OPERATION_DESCRIPTION, text(value)),
            "operationId" => operation.text(field::OPERATION_ID, text(value)),
            "deprecated" => flag(&mut operation, field::OPERATION_DEPRECATED, value),
            "parameters" => {
                list(value).for_each(|value| operation.message(field::OPERATION_PARAMETERS, &parameter(value)));
            }
            "responses" => operation.message(field::OPERATION_RESPONSES, &responses(value)),
            extension => operation.message(field::OPERATION_EXTENSION, &named(extension, &any(value))),
        }
    }
    operation
}

/// A parameter: the body, or one of the query or of the path.
fn parameter(json: &Value) -> Writer {
    let mut choice = Writer::default();
    match text(&json["in"]) {
        "body" => choice.message(field::BODY_PARAMETER, &body(json)),
        place => {
            let (field, fields) = match place {
                "path" => (field::PATH_PARAMETER, OF_PATH),
                _ => (field::QUERY_PARAMETER, OF_QUERY),
            };
            let mut placed = Writer::default();
            placed.message(field, &non_body(json, fields));
            choice.message(field::NON_BODY_PARAMETER, &placed);
        }
    }
    around(&choice)
}

fn body(json: &Value) -> Writer {
    let mut body = Writer::default();
    for (name, value) in json.as_object().into_iter().flatten() {
        match name.as_str() {
            "description" => body.text(field::BODY_DESCRIPTION, text(value)),
            "name" => body.text(field::BODY_NAME, text(value)),
            "in" => body.text(field::BODY_IN, text(value)),
            "required" => flag(&mut body, field::BODY_REQUIRED, value),
            "schema" => body.message(field::BODY_SCHEMA, &schema(value)),
            _ => {}
        }
    }
    body
}

fn non_body(json: &Value, fields: ParameterFields) -> Writer {
    let mut parameter = Writer::default();
    for (name, value) in json.as_object().into_iter().flatten() {
        match name.as_str() {
            "required" => flag(&mut parameter, field::PARAMETER_REQUIRED, value),
            "in" => parameter.text(field::PARAMETER_IN, text(value)),
            "description" => parameter.text(field::PARAMETER_DESCRIPTION, text(value)),
            "name" => parameter.text(field::PARAMETER_NAME, text(value)),
            "type" => parameter.text(fields.kind, text(value)),
            "format" => parameter.text(fields.format, text(value)),
            "default" => parameter.message(fields.default, &any(value)),
            "enum" => list(value).for_each(|value| parameter.message(fields.values, &any(value))),
            // An extension, or a word of JSON Schema that the message has no field for.
            extension if extension.starts_with("x-") => {
                parameter.message(fields.extension, &named(extension, &any(value)));
            }
            _ => {}
        }
    }
    parameter
}

fn responses(json: &Value) -> Writer {
    let mut all = Writer::default();
    for (code, value) in json.as_object().into_iter().flatten() {
        let mut response = Writer::default();
        response.text(field::RESPONSE_DESCRIPTION, text(&value["description"]));
        if value["schema"].is_object() {
            response.message(field::RESPONSE_SCHEMA, &around(&schema(&value["schema"])));
        }
        all.message(field::RESPONSES_CODE, &named(code, &around(&response)));
    }
    all
}

/// Writes a truth value; one that is not true is left out, as in all messages.
fn flag(message: &mut Writer, field: u32, value: &Value) {
    if value == &Value::Bool(true) {
        message.number(field, 1);
    }
}
