//! The section of the reference on one type.

use crate::schema::reachable::type_name;
use crate::schema::{Choice, Field, ListType, SetBy, Shape, TypeSchema};
use crate::{Kind, Version};

/// The section on a type.
pub(super) fn section(heading: &str, shape: Shape, version: Version, kind: Kind) -> String {
    let name = type_name(shape, kind).unwrap_or_default();
    let text = match (shape, shape.definition()) {
        (Shape::Choice(choice), _) => choice_text(choice),
        (_, Some(schema)) => type_text(schema, version, kind),
        _ => String::new(),
    };
    format!("\n{heading} {name}\n\n{text}")
}

/// How a field's list is merged in a version, or nothing if it is no list.
pub(super) fn merging(field: &Field, version: Version) -> String {
    let applied = match field.list_type {
        ListType::Unspecified => return String::new(),
        ListType::Atomic => return "as a whole".to_owned(),
        ListType::Set => "by value".to_owned(),
        ListType::Map(key) => format!("by `{key}`"),
    };
    if field.is_merged(version) {
        return applied;
    }
    format!("{applied} in apply, as a whole in strategic merge patch")
}

/// The type of a value, with a link to the section on it.
pub(super) fn value_type(shape: Shape, kind: Kind) -> String {
    match shape {
        Shape::Boolean => "boolean".to_owned(),
        Shape::Int32 => "integer (32 bits)".to_owned(),
        Shape::Int64 => "integer (64 bits)".to_owned(),
        Shape::String => "string".to_owned(),
        Shape::StringMap => "map of strings".to_owned(),
        Shape::List(Shape::String) => "list of strings".to_owned(),
        Shape::List(element) => format!("list of {}", value_type(*element, kind)),
        Shape::Choice(_) | Shape::Time | Shape::Object(_) | Shape::FieldSet => {
            let name = type_name(shape, kind).unwrap_or_default();
            format!("[{name}](#{})", name.to_ascii_lowercase())
        }
    }
}

fn choice_text(choice: &Choice) -> String {
    let row = |(value, meaning): (&str, String)| format!("| `{value}` | {} |\n", cell(&meaning));
    let rows: Vec<_> = choice.meanings().map(row).collect();
    format!("{}\n\n| value | meaning |\n|---|---|\n{}", choice.description(), rows.concat())
}

fn type_text(schema: &TypeSchema, version: Version, kind: Kind) -> String {
    let description = schema.description();
    if schema.fields.is_empty() {
        return format!("{description}\n");
    }
    let is_object = schema.name(kind) == kind.name();
    let rows: String = schema.fields.iter().map(|field| row(field, is_object, version, kind)).collect();
    format!(
        "{description}\n\n| field | type | required | default | merging | description |\n|---|---|---|---|---|---|\n{rows}"
    )
}

fn row(field: &Field, is_of_object: bool, version: Version, kind: Kind) -> String {
    let constant = match field.name {
        "apiVersion" if is_of_object => format!(", always `{}`", version.api_version()),
        "kind" if is_of_object => format!(", always `{kind}`"),
        _ => String::new(),
    };
    // A manifest without these is refused; what the table says of the parts is what the API's own schema says.
    let is_required = field.required || is_of_object;
    format!(
        "| `{}` | {} | {} | {} | {} | {} |\n",
        field.name,
        value_type(field.shape, kind) + &constant,
        if field.set_by == SetBy::Server {
            "read-only"
        } else if is_required {
            "yes"
        } else {
            ""
        },
        field.default.map(|default| default.to_string()).unwrap_or_default(),
        merging(field, version),
        cell(&field.description()),
    )
}

/// A text that does not end its cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
