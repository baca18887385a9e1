//! What is written is what was recorded, and what serde writes.

mod recorded_events;
mod recorded_responses;
mod seen;
mod tables;
mod written;

use evenkeel_api::decode::{Value as Read, parse_yaml};
use proptest::prelude::*;
use serde_json::{Map, Value};

/// Any JSON value, with texts of all sorts and numbers that are whole.
pub(crate) fn any_json() -> impl Strategy<Value = Value> {
    let text = prop_oneof!["[a-z :#-]{0,8}", any::<String>(), Just("true".to_owned()), "[0-9:.eE+-]{1,6}"];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        text.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 60, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::btree_map(text.clone(), inner, 0..6)
                .prop_map(|members| members.into_iter().collect::<Map<_, _>>().into()),
        ]
    })
}

/// The value of a text in YAML, as requests are read.
pub(crate) fn read_yaml(text: &str) -> Value {
    let documents = parse_yaml(text.as_bytes()).unwrap_or_else(|error| panic!("{error:?} in\n{text}"));
    assert_eq!(documents.len(), 1, "{text}");
    value(&documents[0].root.value)
}

fn value(read: &Read) -> Value {
    match read {
        Read::Null => Value::Null,
        Read::Bool(truth) => (*truth).into(),
        Read::Number(literal) => serde_json::from_str(literal).unwrap(),
        Read::String(text) => text.as_str().into(),
        Read::List(nodes) => nodes.iter().map(|node| value(&node.value)).collect(),
        Read::Map(members) => {
            members.iter().map(|member| (member.key.clone(), value(&member.value.value))).collect::<Map<_, _>>().into()
        }
    }
}
