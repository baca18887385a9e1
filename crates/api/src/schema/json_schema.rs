//! JSON Schemas of the two kinds, for editors to check and complete manifests with.

use serde_json::{Map, Value, json};

use super::object_types::object_type;
use super::reachable::{reachable_types, type_name};
use super::{Choice, Field, SetBy, Shape, TypeSchema};
use crate::{Kind, Version};

const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";

/// The JSON Schema (draft 2020-12) of an object of one kind in one version. It needs no other document.
///
/// It is for manifests: unlike a server, it insists on `apiVersion` and `kind`, and refuses unknown members. What is required, what the
/// server sets (`readOnly`) and what is constant is marked.
///
/// ```
/// use evenkeel_api::{Kind, Version, schema};
///
/// let schema = schema::json_schema(Version::V1, Kind::FlowSchema);
/// assert_eq!(schema["properties"]["kind"]["const"], "FlowSchema");
/// assert_eq!(schema["$defs"]["SubjectKind"]["enum"][0], "User");
/// ```
pub fn json_schema(version: Version, kind: Kind) -> Value {
    let object = object_type(version, kind);
    let mut schema = object_definition(object, kind);
    schema["$schema"] = DRAFT.into();
    schema["title"] = format!("{kind} ({})", version.api_version()).into();
    for (member, text) in [("apiVersion", version.api_version()), ("kind", kind.name())] {
        schema["properties"][member]["const"] = text.into();
    }
    schema["required"] = json!(["apiVersion", "kind", "metadata", "spec"]);
    let parts = reachable_types(object, kind).into_iter().skip(1);
    schema["$defs"] = parts
        .filter_map(|shape| Some((type_name(shape, kind)?, definition(shape, kind))))
        .collect::<Map<_, _>>()
        .into();
    // A new object needs a name, or the beginning of one.
    schema["$defs"]["ObjectMeta"]["anyOf"] = json!([{ "required": ["name"] }, { "required": ["generateName"] }]);
    schema
}

/// The JSON Schema of objects of either kind in one version.
///
/// ```
/// use evenkeel_api::{Version, schema};
///
/// let schema = schema::json_schema_of_all(Version::V1);
/// assert_eq!(schema["oneOf"][0]["$ref"], "#/$defs/FlowSchema");
/// ```
pub fn json_schema_of_all(version: Version) -> Value {
    let mut definitions = Map::new();
    let mut references = Vec::new();
    for kind in Kind::ALL {
        let mut schema = json_schema(version, kind);
        if let Some(object) = schema.as_object_mut() {
            object.remove("$schema");
            // The parts that both kinds have are the same in both.
            if let Some(Value::Object(parts)) = object.remove("$defs") {
                definitions.extend(parts);
            }
        }
        definitions.insert(kind.name().to_owned(), schema);
        references.push(json!({ "$ref": format!("#/$defs/{kind}") }));
    }
    json!({ "$schema": DRAFT, "title": version.api_version(), "oneOf": references, "$defs": definitions })
}

fn definition(shape: Shape, kind: Kind) -> Value {
    match (shape, shape.definition()) {
        (Shape::Choice(choice), _) => choice_definition(choice),
        (Shape::Time, Some(schema)) => {
            // Many programs write a time that is not set as `null`, which means the same as nothing (API-16).
            titled("Time", schema.description(), json!({ "type": ["string", "null"], "format": "date-time" }))
        }
        (Shape::FieldSet, Some(schema)) => titled("FieldsV1", schema.description(), json!({ "type": "object" })),
        (_, Some(schema)) => object_definition(schema, kind),
        (_, None) => value(shape, kind),
    }
}

fn object_definition(schema: &TypeSchema, kind: Kind) -> Value {
    let properties: Map<_, _> =
        schema.fields.iter().map(|field| (field.name.to_owned(), property(field, kind))).collect();
    let required: Vec<_> = schema.fields.iter().filter(|field| field.required).map(|field| field.name).collect();
    let mut definition = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !required.is_empty() {
        definition["required"] = required.into();
    }
    titled(&schema.name(kind), schema.description(), definition)
}

fn choice_definition(choice: &Choice) -> Value {
    let (values, meanings): (Vec<_>, Vec<_>) = choice.meanings().unzip();
    let mut description = choice.description();
    description.extend(values.iter().zip(&meanings).map(|(value, meaning)| format!("\n- `{value}`: {meaning}")));
    // Some editors show the meaning beside each value that they offer; the others show the whole description.
    titled(choice.name, description, json!({ "type": "string", "enum": values, "enumDescriptions": meanings }))
}

fn property(field: &Field, kind: Kind) -> Value {
    let mut property = value(field.shape, kind);
    // A server writes `null` when such a list is empty, and what it writes must be fit to be sent again.
    if field.always_written && matches!(field.shape, Shape::List(_)) {
        property["type"] = json!(["array", "null"]);
    }
    property["description"] = field.description().into();
    if let Some(default) = field.default {
        property["default"] = default.into();
    }
    match field.set_by {
        SetBy::Client => {}
        SetBy::Server => property["readOnly"] = true.into(),
        SetBy::Nobody => property["deprecated"] = true.into(),
    }
    property
}

fn value(shape: Shape, kind: Kind) -> Value {
    match shape {
        Shape::Boolean => json!({ "type": "boolean" }),
        Shape::Int32 => json!({ "type": "integer", "minimum": i32::MIN, "maximum": i32::MAX }),
        Shape::Int64 => json!({ "type": "integer" }),
        Shape::String => json!({ "type": "string" }),
        Shape::StringMap => json!({ "type": "object", "additionalProperties": { "type": "string" } }),
        Shape::List(element) => json!({ "type": "array", "items": value(*element, kind) }),
        Shape::Choice(_) | Shape::Time | Shape::Object(_) | Shape::FieldSet => {
            json!({ "$ref": format!("#/$defs/{}", type_name(shape, kind).unwrap_or_default()) })
        }
    }
}

fn titled(title: &str, description: String, mut schema: Value) -> Value {
    schema["title"] = title.into();
    schema["description"] = description.into();
    schema
}
