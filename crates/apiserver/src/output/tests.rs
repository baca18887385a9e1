//! What is written is what was recorded.

use proptest::prelude::*;
use serde_json::Value;

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
                .prop_map(|members| members.into_iter().collect::<serde_json::Map<_, _>>().into()),
        ]
    })
}
