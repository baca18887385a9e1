//! What the reader of the settings asks for, found out by reading: a deserializer that follows a path and notes what is wanted there.
//!
//! Fields, types and choices are those of the code that reads `evenkeel.yaml`, so nothing is listed twice.

use std::cell::RefCell;
use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{self, DeserializeSeed, Deserializer, IntoDeserializer, Visitor};

/// What the reader wants at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// An object with these fields.
    Fields(&'static [&'static str]),
    /// An object with any names.
    Map,
    List,
    /// One of these words, or an object with one of them as its only field.
    Choice(&'static [&'static str]),
    /// A word of a choice, with nothing below it.
    Word,
    Text,
    Integer,
    Number,
    Boolean,
    /// The reader looks at whatever is there.
    Anything,
}

/// What the reader wants, and whether nothing is fine too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) shape: Shape,
    pub(super) is_optional: bool,
}

/// A step from a place to one below it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    Field(&'static str),
    /// Any member of a map.
    Member,
    Item,
    Variant(&'static str),
}

/// What the reader of `T` wants at the end of a path.
pub(super) fn wanted<T: de::DeserializeOwned>(path: &[Step]) -> Wanted {
    let found = RefCell::new(None);
    let end = T::deserialize(Tracer { path, found: &found, is_optional: false });
    let wanted = *found.borrow();
    wanted.unwrap_or_else(|| panic!("the reader does not get to {path:?}: {:?}", end.err()))
}

/// Follows a path, and ends with an error when it has got there.
#[derive(Clone, Copy)]
struct Tracer<'t> {
    path: &'t [Step],
    found: &'t RefCell<Option<Wanted>>,
    is_optional: bool,
}

/// The end of a reading, on purpose or not.
#[derive(Debug)]
struct Ended(String);

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Ended {}

impl de::Error for Ended {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

// === impl Tracer ===

impl Tracer<'_> {
    /// Notes what is wanted, if this is the place; otherwise the next step.
    fn step(self, shape: Shape) -> Result<(Step, Self), Ended> {
        match self.path.split_first() {
            Some((step, path)) => Ok((*step, Self { path, is_optional: false, ..self })),
            None => {
                *self.found.borrow_mut() = Some(Wanted { shape, is_optional: self.is_optional });
                Err(Ended("this is the place".to_owned()))
            }
        }
    }

    fn leaf<T>(self, shape: Shape) -> Result<T, Ended> {
        let (step, _) = self.step(shape)?;
        Err(Ended(format!("there is nothing below {shape:?}: {step:?}")))
    }
}

macro_rules! leaves {
    ($($method:ident $shape:ident,)+) => {
        $(fn $method<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Ended> {
            self.leaf(Shape::$shape)
        })+
    };
}

impl<'de> Deserializer<'de> for Tracer<'_> {
    type Error = Ended;

    leaves! {
        deserialize_any Anything, deserialize_ignored_any Anything, deserialize_bool Boolean,
        deserialize_i8 Integer, deserialize_i16 Integer, deserialize_i32 Integer, deserialize_i64 Integer,
        deserialize_u8 Integer, deserialize_u16 Integer, deserialize_u32 Integer, deserialize_u64 Integer,
        deserialize_f32 Number, deserialize_f64 Number,
        deserialize_char Text, deserialize_str Text, deserialize_string Text, deserialize_identifier Text,
        deserialize_bytes Text, deserialize_byte_buf Text, deserialize_unit Anything,
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Ended> {
        visitor.visit_some(Self { is_optional: true, ..self })
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Ended> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, _: &'static str, _: V) -> Result<V::Value, Ended> {
        self.leaf(Shape::Anything)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Ended> {
        match self.step(Shape::List)? {
            (Step::Item, below) => visitor.visit_seq(Below { key: None, value: below }),
            (step, _) => Err(Ended(format!("a list has no {step:?}"))),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Ended> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Ended> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Ended> {
        match self.step(Shape::Map)? {
            (Step::Member, below) => visitor.visit_map(Below { key: Some("name"), value: below }),
            (step, _) => Err(Ended(format!("a map has no {step:?}"))),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Ended> {
        match self.step(Shape::Fields(fields))? {
            (Step::Field(name), below) => visitor.visit_map(Below { key: Some(name), value: below }),
            (step, _) => Err(Ended(format!("an object has no {step:?}"))),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Ended> {
        match self.step(Shape::Choice(variants))? {
            (Step::Variant(name), below) => visitor.visit_enum(Below { key: Some(name), value: below }),
            (step, _) => Err(Ended(format!("a choice has no {step:?}"))),
        }
    }
}

/// The one member or item through which the path goes.
struct Below<'t> {
    key: Option<&'static str>,
    value: Tracer<'t>,
}

impl<'de> de::MapAccess<'de> for Below<'_> {
    type Error = Ended;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Ended> {
        let key: Option<StrDeserializer<'_, Ended>> = self.key.take().map(IntoDeserializer::into_deserializer);
        key.map(|key| seed.deserialize(key)).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Ended> {
        seed.deserialize(self.value)
    }
}

impl<'de> de::SeqAccess<'de> for Below<'_> {
    type Error = Ended;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Ended> {
        seed.deserialize(self.value).map(Some)
    }
}

impl<'de> de::EnumAccess<'de> for Below<'_> {
    type Error = Ended;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Ended> {
        let name: StrDeserializer<'_, Ended> = self.key.unwrap_or_default().into_deserializer();
        Ok((seed.deserialize(name)?, self))
    }
}

impl<'de> de::VariantAccess<'de> for Below<'_> {
    type Error = Ended;

    fn unit_variant(self) -> Result<(), Ended> {
        self.value.leaf(Shape::Word)
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Ended> {
        seed.deserialize(self.value)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Ended> {
        self.value.deserialize_seq(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(self, fields: &'static [&'static str], visitor: V) -> Result<V::Value, Ended> {
        self.value.deserialize_struct("", fields, visitor)
    }
}
