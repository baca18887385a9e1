//! Which settings differ between two configurations.

use serde_json::Value;

use super::Config;

// === impl Config ===

impl Config {
    /// The names of the settings that are different, as `timeouts.idle` or `upstreams`.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let mut found = Vec::new();
        // Every value of these types can be written as JSON.
        let value = |config: &Self| serde_json::to_value(config).unwrap_or_default();
        compare(&value(self), &value(other), "", &mut found);
        found
    }
}

fn compare(one: &Value, other: &Value, name: &str, found: &mut Vec<String>) {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let names = one.keys().chain(other.keys().filter(|name| !one.contains_key(*name)));
            for member in names {
                let name = if name.is_empty() { member.clone() } else { format!("{name}.{member}") };
                let of = |members: &serde_json::Map<String, Value>| members.get(member).cloned().unwrap_or_default();
                compare(&of(one), &of(other), &name, found);
            }
        }
        (one, other) if one != other => found.push(name.to_owned()),
        _ => {}
    }
}
