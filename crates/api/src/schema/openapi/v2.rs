//! The same documents in the words of OpenAPI 2.0 (API-189).

use serde_json::{Map, Value, json};

use super::components::members;

const METHODS: &[&str] = &["get", "put", "post", "delete", "patch"];

/// The schemas of a version 3 document as definitions.
pub(super) fn definitions(schemas: &Value) -> Map<String, Value> {
    members(rewrite_references(schemas))
}

/// The paths of a version 3 document.
pub(super) fn paths(paths: &Value) -> Map<String, Value> {
    each(paths, path_item)
}

fn path_item(item: &Value) -> Value {
    let mut written = Map::new();
    for (member, value) in item.as_object().into_iter().flatten() {
        let value = match member.as_str() {
            "parameters" => parameters(value).into(),
            method if METHODS.contains(&method) => operation(value),
            _ => value.clone(),
        };
        written.insert(member.clone(), value);
    }
    written.into()
}

fn operation(operation: &Value) -> Value {
    let mut written = members(operation.clone());
    let mut parameters = parameters(&operation["parameters"]);
    if let Some(body) = written.remove("requestBody") {
        let (media_types, schema) = content(&body["content"]);
        parameters.push(json!({ "name": "body", "in": "body", "required": body["required"], "schema": schema }));
        written.insert("consumes".into(), media_types.into());
    }
    written.insert("parameters".into(), parameters.into());
    // The responses to a success come first: a digit sorts before `default`.
    if let Some(response) = operation["responses"].as_object().and_then(|responses| responses.values().next()) {
        written.insert("produces".into(), content(&response["content"]).0.into());
    }
    let responses = each(
        &operation["responses"],
        |response| json!({ "description": response["description"], "schema": content(&response["content"]).1 }),
    );
    written.insert("responses".into(), responses.into());
    written.into()
}

/// Parameters whose schema is no member of its own, but spread over the parameter.
fn parameters(parameters: &Value) -> Vec<Value> {
    let spread = |parameter: &Value| {
        let mut written = members(parameter.clone());
        let schema = written.remove("schema").map(members);
        written.extend(schema.unwrap_or_default());
        written.into()
    };
    parameters.as_array().into_iter().flatten().map(spread).collect()
}

/// The media types of a body, and the schema that they share.
fn content(content: &Value) -> (Vec<String>, Value) {
    let by_type = content.as_object();
    let media_types = by_type.into_iter().flatten().map(|(media_type, _)| media_type.clone()).collect();
    let schema = by_type.and_then(|by_type| by_type.values().next()).map(|entry| rewrite_references(&entry["schema"]));
    (media_types, schema.unwrap_or_default())
}

/// A copy in which references point to the definitions, and stand bare.
fn rewrite_references(value: &Value) -> Value {
    match value {
        Value::String(text) => text.replace("#/components/schemas/", "#/definitions/").into(),
        Value::Array(elements) => elements.iter().map(rewrite_references).collect(),
        Value::Object(object) => {
            let mut written = each(value, rewrite_references);
            if object.contains_key("allOf")
                && let Some(Value::Array(references)) = written.remove("allOf")
            {
                written.extend(references.into_iter().flat_map(members));
            }
            written.into()
        }
        plain => plain.clone(),
    }
}

fn each(object: &Value, rewrite: impl Fn(&Value) -> Value) -> Map<String, Value> {
    object.as_object().into_iter().flatten().map(|(name, value)| (name.clone(), rewrite(value))).collect()
}
