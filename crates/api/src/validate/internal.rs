//! Parts of a specification as messages of API-38 and API-52 show them: JSON in which every member is there and is
//! named as inside the reference server.

use serde::Serialize;
use serde_json::Value as Json;

use super::{EmptyRules, value};
use crate::schema::{Described, Field, Shape};

/// The value as JSON under those names.
pub(super) fn json<T: Serialize + Described>(value: &T, empty_rules: EmptyRules) -> String {
    // Turning one of our types into JSON cannot fail.
    let mut wire = serde_json::to_value(value).unwrap_or_default();
    // Rules that are empty are left out of JSON. What the type does not have is not written below.
    if let (EmptyRules::List, Some(members)) = (empty_rules, wire.as_object_mut()) {
        members.entry("rules").or_insert_with(|| Json::Array(Vec::new()));
    }
    let mut written = String::new();
    write(&mut written, T::SHAPE, Some(&wire));
    written
}

fn write(out: &mut String, shape: Shape, wire: Option<&Json>) {
    match (shape, wire) {
        (Shape::Object(schema), Some(Json::Object(members))) => {
            let members = schema.fields.iter().map(|field| (field, members.get(field.name)));
            write_all(out, ('{', '}'), members, |out, (field, wire)| write_member(out, field, wire));
        }
        (Shape::List(element), Some(Json::Array(elements))) => {
            write_all(out, ('[', ']'), elements, |out, wire| write(out, *element, Some(wire)));
        }
        (Shape::Boolean, None) => out.push_str("false"),
        (_, None) => out.push_str("null"),
        (_, Some(leaf)) => out.push_str(&value::json(leaf)),
    }
}

fn write_member(out: &mut String, field: &Field, wire: Option<&Json>) {
    // The only name in which more than the first letter changes.
    if field.name == "apiGroups" {
        out.push_str("\"APIGroups\":");
    } else {
        let (first, rest) = field.name.split_at(1);
        out.extend(["\"", &first.to_ascii_uppercase(), rest, "\":"]);
    }
    write(out, field.shape, wire);
}

fn write_all<T>(
    out: &mut String,
    (open, close): (char, char),
    items: impl IntoIterator<Item = T>,
    write_one: impl Fn(&mut String, T),
) {
    out.push(open);
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_one(out, item);
    }
    out.push(close);
}
