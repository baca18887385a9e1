//! The parts of a message: the elements of its lists, the entries of its maps, and its fields, put in order.

use serde::ser::{self, Serialize, SerializeMap, SerializeSeq, SerializeStruct};

use super::encode::{Buffers, Unwritable, ValuePosition, ValueWriter};
use super::key::TextKey;
use super::writer::Writer;
use super::{KEY, RAW, VALUE};
use crate::schema::{Field, Presence, Shape, TypeSchema};

/// Writes the elements of a list, each as a field of the same number.
pub(super) struct Elements<'a> {
    buffers: &'a mut Buffers,
    place: ValuePosition,
    shape: Shape,
}

/// Writes a message or a map of texts.
pub(super) enum MembersWriter<'a> {
    Message(Message<'a>),
    Map(Map<'a>),
}

/// Writes a message.
pub(super) struct Message<'a> {
    buffers: &'a mut Buffers,
    place: ValuePosition,
    schema: &'static TypeSchema,
    /// Where the fields of this message begin in `out`.
    start: usize,
    /// Where the parts of this message begin in `parts`.
    first_part: usize,
    /// The member whose name was read, if the type has it.
    member: Option<&'static Field>,
}

/// Writes a map of texts, in the order of its keys.
pub(super) struct Map<'a> {
    buffers: &'a mut Buffers,
    number: u32,
    entries: Vec<(String, String)>,
    key: String,
}

// === impl Elements ===

impl<'a> Elements<'a> {
    pub(super) fn new(buffers: &'a mut Buffers, place: ValuePosition, shape: Shape) -> Self {
        Self { buffers, place, shape }
    }
}

impl SerializeSeq for Elements<'_> {
    type Ok = ();
    type Error = Unwritable;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unwritable> {
        value.serialize(ValueWriter { buffers: self.buffers, place: self.place, shape: self.shape })
    }

    fn end(self) -> Result<(), Unwritable> {
        Ok(())
    }
}

// === impl MembersWriter ===

impl SerializeMap for MembersWriter<'_> {
    type Ok = ();
    type Error = Unwritable;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Unwritable> {
        match self {
            Self::Message(message) => {
                let schema = message.schema;
                message.member = key.serialize(TextKey(|name: &str| schema.field(name)))?;
            }
            Self::Map(map) => map.key = key.serialize(TextKey(str::to_owned))?,
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
                let value = value.serialize(TextKey(str::to_owned))?;
                map.entries.push((std::mem::take(&mut map.key), value));
                Ok(())
            }
        }
    }

    fn end(self) -> Result<(), Unwritable> {
        match self {
            Self::Message(message) => message.finish(),
            Self::Map(map) => map.finish(),
        }
        Ok(())
    }
}

impl SerializeStruct for MembersWriter<'_> {
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

impl<'a> Message<'a> {
    pub(super) fn new(buffers: &'a mut Buffers, place: ValuePosition, schema: &'static TypeSchema) -> Self {
        let (start, first_part) = (buffers.out.as_bytes().len(), buffers.parts.len());
        Self { buffers, place, schema, start, first_part, member: None }
    }

    fn write<T: Serialize + ?Sized>(&mut self, field: &Field, value: &T) -> Result<(), Unwritable> {
        let Some(number) = field.number else { return Ok(()) };
        let start = self.buffers.out.as_bytes().len();
        if let Shape::FieldSet = field.shape {
            self.write_field_set(number, value)?;
        } else {
            value.serialize(ValueWriter {
                buffers: self.buffers,
                place: ValuePosition::Field(number),
                shape: field.shape,
            })?;
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
            ValuePosition::Field(number) => out.message(number, ordered),
            ValuePosition::Message => out.fields(ordered.as_bytes()),
        }
    }
}

/// The value that is written for an absent member: zero, unless the field is optional (PB-2).
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

impl<'a> Map<'a> {
    pub(super) fn new(buffers: &'a mut Buffers, number: u32) -> Self {
        Self { buffers, number, entries: Vec::new(), key: String::new() }
    }

    fn finish(mut self) {
        self.entries.sort_by(|(one, _), (other, _)| one.cmp(other));
        for (key, value) in &self.entries {
            self.buffers.out.nested(self.number, |entry| {
                entry.text(KEY, key);
                entry.text(VALUE, value);
            });
        }
    }
}
