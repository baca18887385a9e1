//! Writes anything that serde can serialize as the message that the schema table describes (PB-2, PB-3).
//!
//! The table says which number a member has, and what is written where a member is absent. Members come in the order of
//! JSON and go out in the order of their numbers, so every message is put together from the parts that its members became.

use std::fmt;
use std::ops::Range;

use serde::ser::{self, Impossible, Serialize, SerializeMap, SerializeSeq, SerializeStruct, Serializer};

use super::key::Text;
use super::writer::Writer;
use super::{KEY, NANOS, RAW, SECONDS, VALUE, ZERO_TIME};
use crate::meta::Time;
use crate::schema::{Field, Presence, Shape, TypeSchema};

/// A value that does not fit the schema it was to be written by.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot be written in protobuf: {0}")]
pub struct Unwritable(String);

/// Writes a value as a message of that type, without its envelope. Members that the type does not have are left out.
///
/// ```
/// use evenkeel_api::{protobuf, schema};
///
/// let options = serde_json::json!({"kind": "DeleteOptions", "dryRun": ["All"]});
/// assert_eq!(protobuf::encode(&options, &schema::DELETE_OPTIONS)?, b"\x2a\x03All");
/// # Ok::<(), protobuf::Unwritable>(())
/// ```
pub fn encode(value: &(impl Serialize + ?Sized), schema: &'static TypeSchema) -> Result<Vec<u8>, Unwritable> {
    let mut buffers = Buffers::default();
    value.serialize(Value { buffers: &mut buffers, place: Place::Message, shape: Shape::Object(schema) })?;
    Ok(buffers.out.into_bytes())
}

/// Where a value goes.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// Into the field of that number.
    Field(u32),
    /// It is the whole message.
    Message,
}

/// What all messages of one value are written with, so that only the first of them allocates.
#[derive(Debug, Default)]
struct Buffers {
    /// What has been written. The fields of a message that is not finished are at its end, in the order in which they came.
    out: Writer,
    /// The parts of `out` that belong to unfinished messages, each with the number of its field.
    parts: Vec<(u32, Range<usize>)>,
    /// Where the fields of a message are put in order.
    ordered: Writer,
}

/// Writes one value.
struct Value<'a> {
    buffers: &'a mut Buffers,
    place: Place,
    shape: Shape,
}

/// Writes the elements of a list, each as a field of the same number.
struct Elements<'a> {
    buffers: &'a mut Buffers,
    place: Place,
    shape: Shape,
}

/// Writes a message or a map of texts.
enum Members<'a> {
    Message(Message<'a>),
    Map(Map<'a>),
}

/// Writes a message.
struct Message<'a> {
    buffers: &'a mut Buffers,
    place: Place,
    schema: &'static TypeSchema,
    /// Where the fields of this message begin in `out`.
    start: usize,
    /// Where the parts of this message begin in `parts`.
    first_part: usize,
    /// The member whose name was read, if the type has it.
    member: Option<&'static Field>,
}

/// Writes a map of texts, in the order of its keys.
struct Map<'a> {
    buffers: &'a mut Buffers,
    place: Place,
    entries: Vec<(String, String)>,
    key: String,
}

// === impl Unwritable ===

impl ser::Error for Unwritable {
    fn custom<T: fmt::Display>(problem: T) -> Self {
        Self(problem.to_string())
    }
}

// === impl Value ===

impl<'a> Value<'a> {
    /// The number of the field; a whole message is never a plain value.
    fn field(&self) -> Result<u32, Unwritable> {
        match self.place {
            Place::Field(number) => Ok(number),
            Place::Message => Err(self.mismatch("a plain value")),
        }
    }

    fn mismatch(&self, found: &str) -> Unwritable {
        Unwritable(format!("found {found} where the schema has {:?}", self.shape))
    }

    fn integer(self, number: i64) -> Result<(), Unwritable> {
        match self.shape {
            Shape::Int32 | Shape::Int64 => {
                self.buffers.out.number(self.field()?, number.cast_unsigned());
                Ok(())
            }
            _ => Err(self.mismatch("a number")),
        }
    }

    fn members(self) -> Result<Members<'a>, Unwritable> {
        match (self.shape, self.place) {
            (Shape::Object(schema), place) => Ok(Members::Message(Message {
                start: self.buffers.out.as_bytes().len(),
                first_part: self.buffers.parts.len(),
                buffers: self.buffers,
                place,
                schema,
                member: None,
            })),
            (Shape::StringMap, place) => {
                Ok(Members::Map(Map { buffers: self.buffers, place, entries: Vec::new(), key: String::new() }))
            }
            _ => Err(self.mismatch("a map")),
        }
    }
}

/// Refuses the types that no schema has.
macro_rules! refuse {
    ($($method:ident($($argument:ty),*) -> $result:ty, $found:literal;)+) => {$(
        fn $method(self, $(_: $argument),*) -> Result<$result, Unwritable> {
            Err(self.mismatch($found))
        }
    )+};
}

macro_rules! integers {
    ($($method:ident($integer:ty);)+) => {$(
        fn $method(self, number: $integer) -> Result<(), Unwritable> {
            self.integer(i64::from(number))
        }
    )+};
}

impl<'a> Serializer for Value<'a> {
    type Ok = ();
    type Error = Unwritable;
    type SerializeSeq = Elements<'a>;
    type SerializeTuple = Impossible<(), Unwritable>;
    type SerializeTupleStruct = Impossible<(), Unwritable>;
    type SerializeTupleVariant = Impossible<(), Unwritable>;
    type SerializeMap = Members<'a>;
    type SerializeStruct = Members<'a>;
    type SerializeStructVariant = Impossible<(), Unwritable>;

    fn serialize_bool(self, value: bool) -> Result<(), Unwritable> {
        match self.shape {
            Shape::Boolean => {
                self.buffers.out.number(self.field()?, u64::from(value));
                Ok(())
            }
            _ => Err(self.mismatch("true or false")),
        }
    }

    integers! {
        serialize_i8(i8);
        serialize_i16(i16);
        serialize_i32(i32);
        serialize_i64(i64);
        serialize_u8(u8);
        serialize_u16(u16);
        serialize_u32(u32);
    }

    fn serialize_u64(self, number: u64) -> Result<(), Unwritable> {
        match i64::try_from(number) {
            Ok(number) => self.integer(number),
            Err(_) => Err(self.mismatch("a number of more than 63 bits")),
        }
    }

    fn serialize_str(self, text: &str) -> Result<(), Unwritable> {
        match self.shape {
            Shape::String | Shape::Choice(_) => self.buffers.out.text(self.field()?, text),
            Shape::Time => {
                let number = self.field()?;
                let time: Time = text.parse().map_err(ser::Error::custom)?;
                self.buffers.out.nested(number, |message| write_time(message, time));
            }
            _ => return Err(self.mismatch("a text")),
        }
        Ok(())
    }

    fn serialize_none(self) -> Result<(), Unwritable> {
        Ok(())
    }

    fn serialize_unit(self) -> Result<(), Unwritable> {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Unwritable> {
        value.serialize(self)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<(), Unwritable> {
        value.serialize(self)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), Unwritable> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<(), Unwritable> {
        Err(self.mismatch("a variant"))
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Elements<'a>, Unwritable> {
        match self.shape {
            Shape::List(element) => Ok(Elements { buffers: self.buffers, place: self.place, shape: *element }),
            _ => Err(self.mismatch("a list")),
        }
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Members<'a>, Unwritable> {
        self.members()
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Members<'a>, Unwritable> {
        self.members()
    }

    refuse! {
        serialize_f32(f32) -> (), "a fraction";
        serialize_f64(f64) -> (), "a fraction";
        serialize_char(char) -> (), "a character";
        serialize_bytes(&[u8]) -> (), "bytes";
        serialize_unit_struct(&'static str) -> (), "nothing";
        serialize_tuple(usize) -> Self::SerializeTuple, "a tuple";
        serialize_tuple_struct(&'static str, usize) -> Self::SerializeTupleStruct, "a tuple";
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> Self::SerializeTupleVariant, "a tuple";
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> Self::SerializeStructVariant, "a variant";
    }
}

/// A time: its seconds, and no fraction of one (PB-3).
fn write_time(message: &mut Writer, time: Time) {
    if time.unix_seconds() != ZERO_TIME {
        message.number(SECONDS, time.unix_seconds().cast_unsigned());
        message.number(NANOS, 0);
    }
}

// === impl Elements ===

impl SerializeSeq for Elements<'_> {
    type Ok = ();
    type Error = Unwritable;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unwritable> {
        value.serialize(Value { buffers: self.buffers, place: self.place, shape: self.shape })
    }

    fn end(self) -> Result<(), Unwritable> {
        Ok(())
    }
}

// === impl Members ===

impl SerializeMap for Members<'_> {
    type Ok = ();
    type Error = Unwritable;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Unwritable> {
        match self {
            Self::Message(message) => {
                let schema = message.schema;
                message.member = key.serialize(Text(|name: &str| schema.field(name)))?;
            }
            Self::Map(map) => map.key = key.serialize(Text(str::to_owned))?,
        }
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unwritable> {
        match self {
            Self::Message(message) => match message.member.take() {
                Some(field) => message.write(field, value),
                None => Ok(()),
            },
            Self::Map(map) => {
                let value = value.serialize(Text(str::to_owned))?;
                map.entries.push((std::mem::take(&mut map.key), value));
                Ok(())
            }
        }
    }

    fn end(self) -> Result<(), Unwritable> {
        match self {
            Self::Message(message) => {
                message.finish();
                Ok(())
            }
            Self::Map(map) => map.finish(),
        }
    }
}

impl SerializeStruct for Members<'_> {
    type Ok = ();
    type Error = Unwritable;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Unwritable> {
        self.serialize_entry(name, value)
    }

    fn end(self) -> Result<(), Unwritable> {
        SerializeMap::end(self)
    }
}

// === impl Message ===

impl Message<'_> {
    fn write<T: Serialize + ?Sized>(&mut self, field: &Field, value: &T) -> Result<(), Unwritable> {
        let Some(number) = field.number else { return Ok(()) };
        let start = self.buffers.out.as_bytes().len();
        if let Shape::FieldSet = field.shape {
            self.write_field_set(number, value)?;
        } else {
            value.serialize(Value { buffers: self.buffers, place: Place::Field(number), shape: field.shape })?;
        }
        let end = self.buffers.out.as_bytes().len();
        if end > start {
            self.buffers.parts.push((number, start..end));
        }
        Ok(())
    }

    /// A field set is JSON inside of a message.
    fn write_field_set<T: Serialize + ?Sized>(&mut self, number: u32, value: &T) -> Result<(), Unwritable> {
        let json = serde_json::to_vec(value).map_err(ser::Error::custom)?;
        if json != b"null" {
            self.buffers.out.nested(number, |message| message.bytes(RAW, &json));
        }
        Ok(())
    }

    fn finish(self) {
        let Buffers { out, parts, ordered } = self.buffers;
        parts[self.first_part..].sort_by_key(|(number, _)| *number);
        ordered.clear();
        let mut present = parts[self.first_part..].iter().peekable();
        self.schema.for_each_numbered(|number, field| match present.next_if(|(found, _)| *found == number) {
            Some((_, range)) => ordered.fields(&out.as_bytes()[range.clone()]),
            None => write_absent(ordered, number, field),
        });
        parts.truncate(self.first_part);
        out.truncate(self.start);
        match self.place {
            Place::Field(number) => out.message(number, ordered),
            Place::Message => out.fields(ordered.as_bytes()),
        }
    }
}

/// What is written where a member is absent: zero, unless the field is optional (PB-2).
fn write_absent(message: &mut Writer, number: u32, field: &Field) {
    if field.presence == Presence::Optional {
        return;
    }
    match field.shape {
        Shape::Boolean | Shape::Int32 | Shape::Int64 => message.number(number, 0),
        Shape::String | Shape::Choice(_) | Shape::Time => message.text(number, ""),
        Shape::Object(schema) => message.nested(number, |inner| {
            schema.for_each_numbered(|number, field| write_absent(inner, number, field));
        }),
        Shape::StringMap | Shape::List(_) | Shape::FieldSet => {}
    }
}

// === impl Map ===

impl Map<'_> {
    fn finish(mut self) -> Result<(), Unwritable> {
        let Place::Field(number) = self.place else {
            return Err(ser::Error::custom("a map is no message"));
        };
        self.entries.sort_by(|(one, _), (other, _)| one.cmp(other));
        for (key, value) in &self.entries {
            self.buffers.out.nested(number, |entry| {
                entry.text(KEY, key);
                entry.text(VALUE, value);
            });
        }
        Ok(())
    }
}
