//! Writes anything that serde can serialize as the message that the schema table describes (PB-2, PB-3).
//!
//! The table says which number a member has, and what is written where a member is absent. Members come in the order of
//! JSON and go out in the order of their numbers, so every message is put together from the parts that its members became.

use std::fmt;
use std::ops::Range;

use serde::ser::{self, Impossible, Serialize, Serializer};

use super::members::{Elements, Map, MembersWriter, Message};
use super::writer::Writer;
use super::{NANOS, SECONDS, ZERO_TIME};
use crate::meta::Time;
use crate::schema::{Shape, TypeSchema};

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
    value.serialize(ValueWriter {
        buffers: &mut buffers,
        place: ValuePosition::Message,
        shape: Shape::Object(schema),
    })?;
    Ok(buffers.out.into_bytes())
}

/// The position of a value in a message.
#[derive(Debug, Clone, Copy)]
pub(super) enum ValuePosition {
    /// Into the field of that number.
    Field(u32),
    /// The object is the whole message.
    Message,
}

/// The buffers that all messages of one value share, so that only the first message allocates.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    /// The output. The fields of an unfinished message are at its end, in the order in which they came.
    pub(super) out: Writer,
    /// The parts of `out` that belong to unfinished messages, each with the number of its field.
    pub(super) parts: Vec<(u32, Range<usize>)>,
    /// The buffer in which the fields of a message are put in order.
    pub(super) ordered: Writer,
}

/// Writes one value.
pub(super) struct ValueWriter<'a> {
    pub(super) buffers: &'a mut Buffers,
    pub(super) place: ValuePosition,
    pub(super) shape: Shape,
}

// === impl Unwritable ===

impl ser::Error for Unwritable {
    fn custom<T: fmt::Display>(problem: T) -> Self {
        Self(problem.to_string())
    }
}

// === impl ValueWriter ===

impl<'a> ValueWriter<'a> {
    /// The number of the field; a whole message is never a plain value.
    fn field(&self) -> Result<u32, Unwritable> {
        match self.place {
            ValuePosition::Field(number) => Ok(number),
            ValuePosition::Message => Err(self.mismatch("a plain value")),
        }
    }

    fn mismatch(&self, found: &str) -> Unwritable {
        match self.place {
            ValuePosition::Field(number) => {
                Unwritable(format!("found {found} in field {number}, which is of another type"))
            }
            ValuePosition::Message => Unwritable(format!("found {found} in the place of a message")),
        }
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

    fn members(self) -> Result<MembersWriter<'a>, Unwritable> {
        match (self.shape, self.place) {
            (Shape::Object(schema), place) => Ok(MembersWriter::Message(Message::new(self.buffers, place, schema))),
            (Shape::StringMap, ValuePosition::Field(number)) => Ok(MembersWriter::Map(Map::new(self.buffers, number))),
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

impl<'a> Serializer for ValueWriter<'a> {
    type Ok = ();
    type Error = Unwritable;
    type SerializeSeq = Elements<'a>;
    type SerializeTuple = Impossible<(), Unwritable>;
    type SerializeTupleStruct = Impossible<(), Unwritable>;
    type SerializeTupleVariant = Impossible<(), Unwritable>;
    type SerializeMap = MembersWriter<'a>;
    type SerializeStruct = MembersWriter<'a>;
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
            Shape::List(element) => Ok(Elements::new(self.buffers, self.place, *element)),
            _ => Err(self.mismatch("a list")),
        }
    }

    fn serialize_map(self, _: Option<usize>) -> Result<MembersWriter<'a>, Unwritable> {
        self.members()
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<MembersWriter<'a>, Unwritable> {
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
