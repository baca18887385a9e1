//! The schema table and the Rust types say the same: an object with everything set is written as the table lists it.

use std::fmt;

use evenkeel_api::schema::{self, Described, SetBy, Shape, TypeSchema};
use evenkeel_api::{Kind, Version, v1, v1beta1, v1beta2, v1beta3};
use serde::de::{self, DeserializeOwned, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};

/// A JSON value that remembers the order of its members.
#[derive(Debug, PartialEq)]
enum Written {
    Object(Vec<(String, Written)>),
    List(Vec<Written>),
    Plain,
}

/// A value of that shape in which everything is set.
fn sample(shape: Shape) -> Value {
    match shape {
        Shape::Boolean => json!(true),
        Shape::Int32 | Shape::Int64 => json!(7),
        Shape::String => json!("text"),
        Shape::Choice(choice) => json!(choice.values[0].0),
        Shape::Time => json!("2024-01-02T03:04:05Z"),
        Shape::StringMap => json!({ "key": "value" }),
        Shape::FieldSet => json!({ "f:spec": {} }),
        Shape::List(element) => json!([sample(*element)]),
        Shape::Object(schema) => sample_object(schema).into(),
    }
}

fn sample_object(schema: &TypeSchema) -> Map<String, Value> {
    schema.fields.iter().map(|field| (field.name.to_owned(), sample(field.shape))).collect()
}

/// What the table says that such a value looks like.
fn as_the_table_has_it(shape: Shape) -> Written {
    match shape {
        Shape::Object(schema) => {
            let kept = schema.fields.iter().filter(|field| field.set_by != SetBy::Nobody);
            Written::Object(kept.map(|field| (field.name.to_owned(), as_the_table_has_it(field.shape))).collect())
        }
        Shape::List(element) => Written::List(vec![as_the_table_has_it(*element)]),
        Shape::StringMap => Written::Object(vec![("key".to_owned(), Written::Plain)]),
        Shape::FieldSet => Written::Object(vec![("f:spec".to_owned(), Written::Object(Vec::new()))]),
        _ => Written::Plain,
    }
}

fn assert_agrees<T: Described + Serialize + DeserializeOwned>(version: Version, kind: Kind) {
    let mut object = sample(T::SHAPE);
    object["apiVersion"] = version.api_version().into();
    object["kind"] = kind.name().into();
    let read: T = serde_json::from_value(object).expect("a sample that can be read");
    let text = serde_json::to_string(&read).expect("an object that can be written");
    let written: Written = serde_json::from_str(&text).expect("JSON");
    assert_eq!(written, as_the_table_has_it(T::SHAPE), "{version} {kind}");

    let listed = schema::object_type(version, kind);
    assert_eq!(written, as_the_table_has_it(Shape::Object(listed)), "{version} {kind}");
    assert_eq!(listed.name(kind), kind.name());
}

#[test]
fn objects_are_written_as_the_table_lists_them() {
    assert_agrees::<v1::FlowSchema>(Version::V1, Kind::FlowSchema);
    assert_agrees::<v1beta3::FlowSchema>(Version::V1beta3, Kind::FlowSchema);
    assert_agrees::<v1beta2::FlowSchema>(Version::V1beta2, Kind::FlowSchema);
    assert_agrees::<v1beta1::FlowSchema>(Version::V1beta1, Kind::FlowSchema);
    let kind = Kind::PriorityLevelConfiguration;
    assert_agrees::<v1::PriorityLevelConfiguration>(Version::V1, kind);
    assert_agrees::<v1beta3::PriorityLevelConfiguration>(Version::V1beta3, kind);
    assert_agrees::<v1beta2::PriorityLevelConfiguration>(Version::V1beta2, kind);
    assert_agrees::<v1beta1::PriorityLevelConfiguration>(Version::V1beta1, kind);
}

// === impl Written ===

impl<'de> Deserialize<'de> for Written {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Written;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value that is set")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Written, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Written::Object(members))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Written, A::Error> {
                let mut elements = Vec::new();
                while let Some(element) = list.next_element()? {
                    elements.push(element);
                }
                Ok(Written::List(elements))
            }

            fn visit_bool<E: de::Error>(self, _: bool) -> Result<Written, E> {
                Ok(Written::Plain)
            }

            fn visit_u64<E: de::Error>(self, _: u64) -> Result<Written, E> {
                Ok(Written::Plain)
            }

            fn visit_str<E: de::Error>(self, _: &str) -> Result<Written, E> {
                Ok(Written::Plain)
            }
        }

        deserializer.deserialize_any(Reader)
    }
}
