//! From a tree to a Rust value, by serde.
//!
//! The tree has been checked before, so that this fails only where the table and a type disagree.

use serde::de::value::{Error, MapDeserializer, SeqDeserializer};
use serde::de::{self, IntoDeserializer, Visitor};
use serde::{Deserializer, forward_to_deserialize_any};

use super::{Member, Node, Value};

impl<'de> IntoDeserializer<'de, Error> for &'de Node {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for &'de Node {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Number(literal) => {
                if let Ok(value) = literal.parse::<i64>() {
                    visitor.visit_i64(value)
                } else if let Ok(value) = literal.parse::<u64>() {
                    visitor.visit_u64(value)
                } else {
                    visitor.visit_f64(literal.parse().map_err(de::Error::custom)?)
                }
            }
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::List(items) => visitor.visit_seq(SeqDeserializer::new(items.iter())),
            Value::Map(members) => visitor.visit_map(map(members)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    // `null` means absent inside lists and maps too (API-16), where no field is there to say so.

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match &self.value {
            Value::Null => visitor.visit_map(map(&[])),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.value {
            Value::Null => visitor.visit_borrowed_str(""),
            _ => self.deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

type Members<'de> = std::iter::Map<std::slice::Iter<'de, Member>, fn(&'de Member) -> (&'de str, &'de Node)>;

fn map(members: &[Member]) -> MapDeserializer<'_, Members<'_>, Error> {
    MapDeserializer::new(members.iter().map(|member| (member.key.as_str(), &member.value)))
}
