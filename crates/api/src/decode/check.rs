//! Checks a tree against the schema table: unknown fields, and values of the wrong type.

use super::finding::{Mismatch, Unknown};
use super::{Node, Value};
use crate::meta::Time;
use crate::path::Path;
use crate::schema::{Field, Package, Shape, TypeSchema};
use crate::{Kind, Version};

/// The findings in one object.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// Nested ones before those of the object around them, in the order of the table (API-82).
    pub(super) unknown: Vec<Unknown>,
    /// In the order of the text.
    pub(super) mismatches: Vec<Mismatch>,
}

/// Checks an object of that type. `path` is where it stands in the text.
pub(super) fn check(shape: Shape, node: &Node, path: &Path<'_>, kind: Kind, version: Version) -> Findings {
    let mut checker = Checker { kind, version, findings: Findings::default() };
    match (shape, &node.value) {
        (Shape::Object(schema), Value::Map(_) | Value::Null) => checker.object(schema, node, path),
        _ => {
            let found = wire_name(&node.value);
            let message = format!("json: cannot unmarshal {found} into Go value of type {version}.{kind}");
            checker.mismatch(node, path, message, expected(plain_name(shape), node));
        }
    }
    checker.findings.mismatches.sort_by_key(|mismatch| mismatch.at);
    checker.findings
}

struct Checker {
    kind: Kind,
    version: Version,
    findings: Findings,
}

/// The field that a value belongs to, and the type that the field belongs to: what messages name.
#[derive(Clone, Copy)]
struct FieldOwner<'a> {
    schema: &'a TypeSchema,
    field: &'a Field,
}

// === impl Checker ===

impl Checker {
    fn object(&mut self, schema: &TypeSchema, node: &Node, path: &Path<'_>) {
        let Value::Map(members) = &node.value else { return };
        for field in schema.fields {
            if let Some(member) = members.iter().find(|member| member.key == field.name) {
                let owner = FieldOwner { schema, field };
                self.value(field.shape, &member.value, &path.child(&member.key), owner);
            }
        }
        for member in members {
            if schema.field(&member.key).is_none() {
                let path = path.child(&member.key).to_string();
                self.findings.unknown.push(Unknown { path, at: member.key_at });
            }
        }
    }

    fn value(&mut self, shape: Shape, node: &Node, path: &Path<'_>, owner: FieldOwner<'_>) {
        match (shape, &node.value) {
            (_, Value::Null)
            | (Shape::FieldSet, _)
            | (Shape::Boolean, Value::Bool(_))
            | (Shape::String | Shape::Choice(_), Value::String(_)) => {}
            (Shape::Int32, Value::Number(literal)) if literal.parse::<i32>().is_ok() => {}
            (Shape::Int64, Value::Number(literal)) if literal.parse::<i64>().is_ok() => {}
            (Shape::Time, Value::String(text)) => {
                if let Err(error) = text.parse::<Time>() {
                    self.mismatch(node, path, error.to_string(), error.to_string());
                }
            }
            (Shape::Time, _) => {
                let message = format!("json: cannot unmarshal {} into Go value of type string", wire_name(&node.value));
                self.mismatch(node, path, message, expected("a time such as 2024-01-02T03:04:05Z", node));
            }
            (Shape::StringMap, Value::Map(members)) => {
                for member in members {
                    if !matches!(member.value.value, Value::String(_) | Value::Null) {
                        // The message names the map; the position is that of the value.
                        let message = self.wire_message(Shape::String, &member.value, path, owner);
                        let path = path.child(&member.key);
                        self.mismatch(
                            &member.value,
                            &path,
                            message,
                            expected(plain_name(Shape::String), &member.value),
                        );
                    }
                }
            }
            (Shape::List(item_shape), Value::List(items)) => {
                for (index, item) in items.iter().enumerate() {
                    self.value(*item_shape, item, &path.index(index), owner);
                }
            }
            (Shape::Object(schema), Value::Map(_)) => self.object(schema, node, path),
            _ => {
                let message = self.wire_message(shape, node, path, owner);
                self.mismatch(node, path, message, expected(plain_name(shape), node));
            }
        }
    }

    fn mismatch(&mut self, node: &Node, path: &Path<'_>, wire_message: String, message: String) {
        let path = path.to_string();
        self.findings.mismatches.push(Mismatch { path, at: node.at, wire_message, message });
    }

    /// The text of API-20.
    fn wire_message(&self, shape: Shape, node: &Node, path: &Path<'_>, owner: FieldOwner<'_>) -> String {
        let found = match (shape, &node.value) {
            (Shape::Int32 | Shape::Int64, Value::Number(literal)) => format!("number {literal}"),
            _ => wire_name(&node.value).to_owned(),
        };
        let (schema, path) = (owner.schema.name(self.kind), path.names());
        let wanted = self.type_name(shape, owner.field);
        format!("json: cannot unmarshal {found} into Go struct field {schema}.{path} of type {wanted}")
    }

    fn type_name(&self, shape: Shape, field: &Field) -> String {
        let version = self.version;
        match shape {
            Shape::Boolean => "bool".to_owned(),
            Shape::Int32 => "int32".to_owned(),
            Shape::Int64 => "int64".to_owned(),
            Shape::String | Shape::Time | Shape::FieldSet => match field.text_type {
                Some(name) => format!("{version}.{}", name.in_kind(self.kind)),
                None => "string".to_owned(),
            },
            Shape::Choice(choice) => format!("{version}.{}", choice.name),
            Shape::StringMap => "map[string]string".to_owned(),
            Shape::List(item) => format!("[]{}", self.type_name(*item, field)),
            Shape::Object(schema) => match schema.package {
                Package::Flowcontrol => format!("{version}.{}", schema.name(self.kind)),
                Package::Meta => format!("v1.{}", schema.name(self.kind)),
                Package::Runtime => format!("runtime.{}", schema.name(self.kind)),
            },
        }
    }
}

/// The name of a value's type in API-20.
fn wire_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::List(_) => "array",
        Value::Map(_) => "object",
    }
}

/// The name of a type for people.
fn plain_name(shape: Shape) -> &'static str {
    match shape {
        Shape::Boolean => "true or false",
        Shape::Int32 => "a whole number of 32 bits",
        Shape::Int64 => "a whole number of 64 bits",
        Shape::String | Shape::Choice(_) => "a text",
        Shape::Time => "a time",
        Shape::StringMap => "a map of texts",
        Shape::List(_) => "a list",
        Shape::Object(_) | Shape::FieldSet => "a map",
    }
}

fn expected(wanted: &str, node: &Node) -> String {
    let found = match &node.value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(literal) => literal.to_string(),
        Value::String(_) => "a text".to_owned(),
        Value::List(_) => "a list".to_owned(),
        Value::Map(_) => "a map".to_owned(),
    };
    // The usual cause is a word or a number that YAML does not read as a text.
    let quote = wanted == "a text" && matches!(node.value, Value::Bool(_) | Value::Number(_));
    let advice = if quote { " (put it in quotes)" } else { "" };
    format!("expected {wanted}, found {found}{advice}")
}
