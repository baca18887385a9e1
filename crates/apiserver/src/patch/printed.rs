//! Values as the messages of some patches show them: `map[spec:map[limited:x]]` (API-83, API-122).

use std::fmt::Write as _;

use serde_json::Value;

/// The value in that form, the keys of maps sorted.
pub(crate) fn printed(value: &Value) -> String {
    let mut text = String::new();
    print(value, &mut text);
    text
}

fn print(value: &Value, text: &mut String) {
    match value {
        Value::Null => text.push_str("<nil>"),
        Value::String(string) => text.push_str(string),
        Value::Bool(_) | Value::Number(_) => {
            // Writing to a text cannot fail.
            let _ = write!(text, "{value}");
        }
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(' ');
                }
                print(item, text);
            }
            text.push(']');
        }
        Value::Object(members) => {
            text.push_str("map[");
            for (index, (name, value)) in members.iter().enumerate() {
                let _ = write!(text, "{}{name}:", if index > 0 { " " } else { "" });
                print(value, text);
            }
            text.push(']');
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn api_122_values_are_shown_with_their_keys_sorted() {
        let value = json!({"spec": {"b": [1, "x", null], "a": true}, "metadata": {}});
        assert_eq!(printed(&value), "map[metadata:map[] spec:map[a:true b:[1 x <nil>]]]");
    }
}
