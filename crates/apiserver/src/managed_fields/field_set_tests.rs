//! What holds for all sets of fields.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::element::Element;
use super::field_set::FieldSet;

/// Any set, as `fieldsV1` writes it.
fn fields_v1() -> impl Strategy<Value = Value> {
    let element = prop::sample::select(vec![
        ".",
        "f:a",
        "f:b",
        "f:é.x",
        "f:",
        "i:3",
        r#"k:{"type":"A"}"#,
        r#"k:{"type":"B"}"#,
        r#"v:"a""#,
        "v:1",
    ]);
    let leaf = Just(json!({})).boxed();
    let tree = leaf.prop_recursive(4, 24, 4, move |below| {
        prop::collection::btree_map(element.clone(), below, 0..4).prop_map(|members| {
            let members: Map<String, Value> = members
                .into_iter()
                .map(|(name, value)| (name.to_owned(), if name == "." { json!({}) } else { value }))
                .collect();
            Value::Object(members)
        })
    });
    tree.boxed()
}

fn set() -> impl Strategy<Value = FieldSet> {
    fields_v1().prop_map(|fields| FieldSet::from_fields_v1(&fields).unwrap())
}

fn united(one: &FieldSet, other: &FieldSet) -> FieldSet {
    let mut union = one.clone();
    union.unite(other.clone());
    union
}

fn without(one: &FieldSet, other: &FieldSet) -> FieldSet {
    let mut rest = one.clone();
    rest.subtract(other);
    rest
}

proptest! {
    #[test]
    fn api_135_what_is_written_is_read_back(set in set()) {
        prop_assert_eq!(FieldSet::from_fields_v1(&set.to_fields_v1()), Ok(set));
    }

    #[test]
    fn sets_are_sets(one in set(), other in set()) {
        let (union, both) = (united(&one, &other), one.intersection(&other));
        prop_assert_eq!(&united(&other, &one), &union);
        prop_assert_eq!(&other.intersection(&one), &both);
        prop_assert_eq!(&united(&without(&one, &other), &both), &one);
        prop_assert_eq!(&united(&without(&union, &other), &other), &union);
        prop_assert!(without(&one, &one).is_empty());
        prop_assert!(without(&both, &one).is_empty());
        prop_assert_eq!(union.paths().len() + both.paths().len(), one.paths().len() + other.paths().len());
    }

    #[test]
    fn any_json_is_a_set_or_none(text in "[.fikv:{}\"\\[\\],a1 ]{0,40}") {
        let set = serde_json::from_str(&text).ok().and_then(|value| FieldSet::from_fields_v1(&value).ok());
        if let Some(set) = set {
            prop_assert_eq!(FieldSet::from_fields_v1(&set.to_fields_v1()).ok(), Some(set));
        }
        // What is an element begins with a letter and a colon.
        prop_assert!(Element::parse(&text).is_none() || text.as_bytes().get(1) == Some(&b':'), "{}", text);
    }
}

#[test]
fn api_135_a_node_with_nothing_but_itself_is_written_without_a_dot() {
    let fields = json!({"f:labels": {".": {}}, "f:spec": {".": {}, "f:type": {}}});
    let set = FieldSet::from_fields_v1(&fields).unwrap();
    assert_eq!(set.to_fields_v1(), json!({"f:labels": {}, "f:spec": {".": {}, "f:type": {}}}));
}

#[test]
fn api_129_paths_are_told_level_by_level() {
    let fields = json!({
        "f:metadata": {"f:finalizers": {"v:\"x\"": {}}, "f:labels": {".": {}, "f:a.b": {}}},
        "f:spec": {"f:limited": {"f:type": {}}, "f:type": {}},
        "f:status": {"f:conditions": {"k:{\"type\": \"A\"}": {".": {}, "f:status": {}}}},
    });
    let expected = [
        ".metadata.labels",
        ".metadata.finalizers[=\"x\"]",
        ".metadata.labels.a.b",
        ".spec.type",
        ".spec.limited.type",
        ".status.conditions[type=\"A\"]",
        ".status.conditions[type=\"A\"].status",
    ];
    assert_eq!(FieldSet::from_fields_v1(&fields).unwrap().paths(), expected);
}

#[test]
fn sets_that_are_too_deep_or_not_sets_are_refused() {
    let mut deep = json!({});
    for _ in 0..70 {
        deep = json!({"f:a": deep});
    }
    for value in [deep, json!(5), json!([]), json!({"nonsense": {}}), json!({"f:a": 1}), json!({"k:[]": {}})] {
        assert!(FieldSet::from_fields_v1(&value).is_err(), "{value}");
    }
}
