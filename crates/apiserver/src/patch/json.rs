//! From the tree that a text was read into to plain JSON.

use evenkeel_api::decode::{Node, Value as NodeValue};
use serde_json::{Number, Value};

/// The JSON of a tree, or the literal of a number that is too large for JSON as we keep it.
pub(crate) fn json_of(node: &Node) -> Result<Value, String> {
    Ok(match &node.value {
        NodeValue::Null => Value::Null,
        NodeValue::Bool(value) => Value::Bool(*value),
        NodeValue::Number(literal) => Value::Number(number(literal).ok_or_else(|| literal.to_string())?),
        NodeValue::String(text) => Value::String(text.clone()),
        NodeValue::List(items) => Value::Array(items.iter().map(json_of).collect::<Result<_, _>>()?),
        NodeValue::Map(members) => {
            let member = |member: &evenkeel_api::decode::Member| Ok((member.key.clone(), json_of(&member.value)?));
            Value::Object(members.iter().map(member).collect::<Result<_, String>>()?)
        }
    })
}

fn number(literal: &str) -> Option<Number> {
    if let Ok(whole) = literal.parse::<i64>() {
        return Some(whole.into());
    }
    if let Ok(whole) = literal.parse::<u64>() {
        return Some(whole.into());
    }
    Number::from_f64(literal.parse().ok()?)
}
