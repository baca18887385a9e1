//! `MessageReader`: the fields of a protobuf message, one after the other, and what can be wrong with them.

use std::fmt;

use super::writer::{LENGTH_DELIMITED, VARINT};
use crate::schema::TypeName;

/// The fault of a message. The words are those of the reference, which clients see (PB-6).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Malformed {
    /// There are no bytes at all.
    #[error("empty data")]
    NoData,
    /// The first four bytes are others than those of PB-1.
    #[error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")]
    NoMagic,
    /// There is nothing behind the first four bytes.
    #[error("empty body")]
    NoBody,
    /// The message ends in the middle of a field.
    #[error("unexpected EOF")]
    End,
    /// A number has more than 64 bits.
    #[error("proto: integer overflow")]
    Overflow,
    /// A length has its sign bit set.
    #[error("proto: negative length found during unmarshaling")]
    NegativeLength,
    /// A group ends that has not begun.
    #[error("proto: unexpected end of group")]
    EndOfGroup,
    /// A message ends like a group.
    #[error("proto: {message}: wiretype end group for non-group")]
    NoGroup {
        /// The name of the message.
        message: String,
    },
    /// A field has the number zero, or one that is too large.
    #[error("proto: {message}: illegal tag {number} (wire type {wire_type})")]
    Number {
        /// The name of the message.
        message: String,
        /// The number.
        number: i32,
        /// The type.
        wire_type: u8,
    },
    /// There is no such type.
    #[error("proto: illegal wireType {0}")]
    WireType(u8),
    /// The field is of another type.
    #[error("proto: wrong wireType = {found} for field {field}")]
    WrongType {
        /// The type that was found.
        found: u8,
        /// The field.
        field: String,
    },
    /// The message holds more values than are read.
    #[error("{0}")]
    TooLarge(String),
    /// The text of a field set is not JSON.
    #[error("fieldsV1: {0}")]
    FieldSet(String),
}

/// The fields of a message, one after the other.
#[derive(Debug, Clone)]
pub(crate) struct MessageReader<'a> {
    rest: &'a [u8],
}

/// The value of a field, of which only the wire type is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WireValue<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// A value of a type that no known field has.
    Other(u8),
}

const FIXED64: u8 = 1;
const START_GROUP: u8 = 3;
const END_GROUP: u8 = 4;
const FIXED32: u8 = 5;

// === impl Malformed ===

impl Malformed {
    /// The same, with the name of the message, which readers do not know.
    pub(crate) fn in_message(mut self, kind: &str, name: TypeName) -> Self {
        if let Self::NoGroup { message } | Self::Number { message, .. } = &mut self {
            *message = match name {
                TypeName::Fixed(name) => name.to_owned(),
                TypeName::OfKind(suffix) => format!("{}{suffix}", kind.strip_suffix("List").unwrap_or(kind)),
            };
        }
        self
    }
}

// === impl MessageReader ===

impl<'a> MessageReader<'a> {
    /// For the message in those bytes.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The next field: its number and its value.
    pub(crate) fn next(&mut self) -> Result<Option<(u32, WireValue<'a>)>, Malformed> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let (number, wire_type) = split(self.varint()?);
        if wire_type == END_GROUP {
            return Err(Malformed::NoGroup { message: String::new() });
        }
        let Ok(number @ 1..) = u32::try_from(number) else {
            return Err(Malformed::Number { message: String::new(), number, wire_type });
        };
        let value = match wire_type {
            VARINT => WireValue::Number(self.varint()?),
            LENGTH_DELIMITED => WireValue::Bytes(self.delimited()?),
            other => {
                self.skip(other)?;
                WireValue::Other(other)
            }
        };
        Ok(Some((number, value)))
    }

    /// Skips a value whose type no field has. Groups are followed without recursion.
    fn skip(&mut self, wire_type: u8) -> Result<(), Malformed> {
        let mut depth = 0_usize;
        let mut wire_type = wire_type;
        loop {
            match wire_type {
                VARINT => drop(self.varint()?),
                FIXED64 => drop(self.take(8)?),
                LENGTH_DELIMITED => drop(self.delimited()?),
                START_GROUP => depth += 1,
                END_GROUP => depth = depth.checked_sub(1).ok_or(Malformed::EndOfGroup)?,
                FIXED32 => drop(self.take(4)?),
                other => return Err(Malformed::WireType(other)),
            }
            if depth == 0 {
                return Ok(());
            }
            (_, wire_type) = split(self.varint()?);
        }
    }

    fn delimited(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.varint()?;
        if length > i64::MAX.unsigned_abs() {
            return Err(Malformed::NegativeLength);
        }
        self.take(usize::try_from(length).map_err(|_| Malformed::End)?)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(Malformed::End)?;
        self.rest = rest;
        Ok(taken)
    }

    fn varint(&mut self) -> Result<u64, Malformed> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.rest.split_first().ok_or(Malformed::End)?;
            self.rest = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(Malformed::Overflow)
    }
}

/// The number and the type in the key of a field.
fn split(key: u64) -> (i32, u8) {
    let [low, ..] = key.to_le_bytes();
    let number = (key >> 3) & u64::from(u32::MAX);
    // The reference keeps 32 bits of the number, and refuses those that are negative then.
    (u32::try_from(number).unwrap_or_default().cast_signed(), low & 7)
}

// === impl WireValue ===

impl<'a> WireValue<'a> {
    /// The bytes of a text, of bytes or of a message.
    pub(crate) fn bytes(self, field: impl fmt::Display) -> Result<&'a [u8], Malformed> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            other => Err(other.wrong_type(field)),
        }
    }

    /// The number, in two's complement if it is negative.
    pub(crate) fn number(self, field: impl fmt::Display) -> Result<u64, Malformed> {
        match self {
            Self::Number(number) => Ok(number),
            other => Err(other.wrong_type(field)),
        }
    }

    fn wrong_type(self, field: impl fmt::Display) -> Malformed {
        let found = match self {
            Self::Number(_) => VARINT,
            Self::Bytes(_) => LENGTH_DELIMITED,
            Self::Other(wire_type) => wire_type,
        };
        Malformed::WrongType { found, field: field.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8]) -> Result<Vec<(u32, WireValue<'_>)>, Malformed> {
        let mut reader = MessageReader::new(bytes);
        let mut fields = Vec::new();
        let named = |error: Malformed| error.in_message("FlowSchemaList", TypeName::OfKind(""));
        while let Some(field) = reader.next().map_err(named)? {
            fields.push(field);
        }
        Ok(fields)
    }

    #[test]
    fn fields_of_all_types_are_read_or_skipped() {
        let bytes = b"\x08\xac\x02\x12\x01a\x19\0\0\0\0\0\0\0\0\x25\0\0\0\0\x2b\x08\x01\x33\x12\x01b\x34\x2c\x08\x00";
        let expected = [
            (1, WireValue::Number(300)),
            (2, WireValue::Bytes(b"a")),
            (3, WireValue::Other(FIXED64)),
            (4, WireValue::Other(FIXED32)),
            (5, WireValue::Other(START_GROUP)),
            (1, WireValue::Number(0)),
        ];
        assert_eq!(all(bytes).unwrap(), expected);
    }

    #[test]
    fn pb_6_what_cannot_be_read_is_told_in_the_words_of_the_reference() {
        for (bytes, words) in [
            (&b"\x08"[..], "unexpected EOF"),
            (b"\x0a\x05abc", "unexpected EOF"),
            (b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "proto: negative length found during unmarshaling"),
            (b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "proto: integer overflow"),
            (b"\x00\x00", "proto: FlowSchema: illegal tag 0 (wire type 0)"),
            (b"\x0c", "proto: FlowSchema: wiretype end group for non-group"),
            (b"\x0f", "proto: illegal wireType 7"),
            (b"\x0b\x08\x01", "unexpected EOF"),
            (b"\x0b\x0f", "proto: illegal wireType 7"),
        ] {
            assert_eq!(all(bytes).unwrap_err().to_string(), words, "{bytes:?}");
        }
    }

    #[test]
    fn pb_6_groups_in_groups_are_followed_without_recursion() {
        let deep = [b"\x0b".repeat(1_000_000), b"\x0c".repeat(1_000_000)].concat();
        assert_eq!(all(&deep).unwrap(), [(1, WireValue::Other(START_GROUP))]);
        assert_eq!(all(&deep[..1_500_000]).unwrap_err(), Malformed::End);
    }
}
