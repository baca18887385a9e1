//! Whether an applied object fits the schema of its version (API-125).

use std::collections::BTreeSet;

use evenkeel_api::meta::Time;
use evenkeel_api::schema::{Field, ListType, Shape, TypeSchema};
use serde_json::{Map, Value};

use super::element::Element;
use crate::patch::printed;

/// How many problems are reported. A body can have as many as it has members.
const PROBLEMS_MAX: usize = 100;

/// The problems, each with its path.
#[derive(Default)]
struct Checker {
    problems: Vec<String>,
    path: String,
}

/// The fault of an object of this type, or nothing.
pub(crate) fn check(value: &Value, schema: &TypeSchema) -> Result<(), String> {
    let mut checker = Checker::default();
    checker.object(value, schema);
    match checker.problems.as_slice() {
        [] => Ok(()),
        [problem] => Err(problem.clone()),
        problems => Err(format!("errors:\n  {}", problems.join("\n  "))),
    }
}

// === impl Checker ===

impl Checker {
    fn problem(&mut self, problem: &str) {
        if self.problems.len() < PROBLEMS_MAX {
            let separator = if self.path.is_empty() { "" } else { ": " };
            self.problems.push(format!("{}{separator}{problem}", self.path));
        }
    }

    fn expected(&mut self, wanted: &str, value: &Value) {
        self.problem(&format!("expected {wanted}, got &{{{}}}", printed(value)));
    }

    /// Checks what is one step further down.
    fn below(&mut self, element: &Element, check: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        self.path += &element.to_string();
        check(self);
        self.path.truncate(length);
    }

    fn object(&mut self, value: &Value, schema: &TypeSchema) {
        let Some(members) = self.map(value) else { return };
        for (name, value) in members {
            self.below(&Element::Field(name.clone().into()), |checker| match schema.field(name) {
                Some(field) => checker.field(value, field),
                None => checker.problem("field not declared in schema"),
            });
        }
    }

    /// The members of a map; `null` has none.
    fn map<'a>(&mut self, value: &'a Value) -> Option<&'a Map<String, Value>> {
        match value {
            Value::Object(members) => return Some(members),
            Value::Null => {}
            _ => self.expected("map", value),
        }
        None
    }

    fn field(&mut self, value: &Value, field: &Field) {
        match field.shape {
            Shape::List(item) => self.list(value, *item, field.list_type),
            shape => self.value(value, shape),
        }
    }

    fn value(&mut self, value: &Value, shape: Shape) {
        match (shape, value) {
            (_, Value::Null)
            | (Shape::FieldSet, _)
            | (Shape::Boolean, Value::Bool(_))
            | (Shape::String | Shape::Choice(_), Value::String(_)) => {}
            (Shape::Boolean, _) => self.expected("boolean", value),
            (Shape::Int32 | Shape::Int64, _) => self.number(value, shape),
            (Shape::Time, Value::String(text)) => {
                if let Err(error) = text.parse::<Time>() {
                    self.problem(&error.to_string());
                }
            }
            (Shape::String | Shape::Choice(_) | Shape::Time, _) => self.expected("string", value),
            (Shape::StringMap, _) => {
                for (name, value) in self.map(value).into_iter().flatten() {
                    self.below(&Element::Field(name.clone().into()), |checker| checker.value(value, Shape::String));
                }
            }
            (Shape::Object(schema), _) => self.object(value, schema),
            (Shape::List(item), _) => self.list(value, *item, ListType::Atomic),
        }
    }

    fn number(&mut self, value: &Value, shape: Shape) {
        let fits = match shape {
            Shape::Int32 => value.as_i64().is_some_and(|number| i32::try_from(number).is_ok()),
            _ => value.is_i64(),
        };
        if !fits {
            self.expected("numeric (int or float)", value);
        }
    }

    fn list(&mut self, value: &Value, item_shape: Shape, list_type: ListType) {
        let items = match value {
            Value::Array(items) => items,
            Value::Null => return,
            _ => return self.expected("list", value),
        };
        let mut seen = BTreeSet::new();
        for (index, item) in (0_i64..).zip(items) {
            let element = match list_type {
                ListType::Set => set_element(item),
                ListType::Map(key) => list_member(item, key),
                _ => Ok(Element::Index(index)),
            };
            let element = match element {
                Ok(element) => element,
                Err(problem) => return self.problem(&format!("element {index}: {problem}")),
            };
            if list_type != ListType::Atomic && !seen.insert(element.clone()) {
                self.problem(&format!("duplicate entries for key {element}"));
            }
            self.below(&element, |checker| checker.value(item, item_shape));
        }
    }
}

fn set_element(item: &Value) -> Result<Element, String> {
    let found = match item {
        Value::Null => "an explicit null",
        Value::Array(_) => "a list type",
        Value::Object(_) => "a map type",
        _ => return Ok(Element::value(item)),
    };
    Err(format!("associative list without keys has an element that's {found}"))
}

fn list_member(item: &Value, key: &str) -> Result<Element, String> {
    match item {
        Value::Null => Err("associative list with keys may not have a null element".to_owned()),
        Value::Object(members) => match members.get(key) {
            Some(value) if !value.is_null() => Ok(Element::key(key, value)),
            _ => Err(format!(
                "associative list with keys has an element that omits all key fields [{key:?}] (and doesn't have default \
                 values for any key fields)"
            )),
        },
        _ => Err("associative list with keys may not have non-map elements".to_owned()),
    }
}
