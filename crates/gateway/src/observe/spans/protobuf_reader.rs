//! Reads the few parts of protobuf that responses of OTLP have.

/// A field of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

// === impl Field ===

impl<'a> Field<'a> {
    pub(super) fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Number(_) => None,
        }
    }
}

/// The first field of a message with this number. `None` if there is none, or if the message is malformed before it.
pub(super) fn find(message: &[u8], wanted: u64) -> Option<Field<'_>> {
    fields(message, wanted).next()
}

/// The fields of a message with this number, up to where it is malformed.
pub(super) fn fields(mut message: &[u8], wanted: u64) -> impl Iterator<Item = Field<'_>> {
    let all = std::iter::from_fn(move || next(&mut message));
    all.filter(move |(number, _)| *number == wanted).map(|(_, field)| field)
}

/// The next field, and its number.
fn next<'a>(message: &mut &'a [u8]) -> Option<(u64, Field<'a>)> {
    let tag = take_varint(message)?;
    let field = match tag & 7 {
        0 => Field::Number(take_varint(message)?),
        1 => Field::Bytes(take(message, 8)?),
        2 => {
            let length = usize::try_from(take_varint(message)?).ok()?;
            Field::Bytes(take(message, length)?)
        }
        5 => Field::Bytes(take(message, 4)?),
        _ => return None,
    };
    Some((tag >> 3, field))
}

fn take_varint(message: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for place in 0..10 {
        let byte = *take(message, 1)?.first()?;
        number |= u64::from(byte & 0x7f) << (7 * place);
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

fn take<'a>(message: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = message.split_at_checked(length)?;
    *message = rest;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::observe::spans::protobuf::{
        put_bytes, put_fixed32, put_fixed64, put_message, put_number, put_text_attribute,
    };

    proptest! {
        #[test]
        fn what_is_written_is_read_back(number: u64, text: String, small: u32) {
            let mut out = Vec::new();
            put_fixed64(&mut out, 7, number);
            put_fixed32(&mut out, 16, small);
            put_number(&mut out, 3, number);
            put_message(&mut out, 2, |out| put_bytes(out, 1, text.as_bytes()));
            put_text_attribute(&mut out, 9, "key", &text);
            prop_assert_eq!(find(&out, 7), Some(Field::Bytes(&number.to_le_bytes())));
            prop_assert_eq!(find(&out, 16), Some(Field::Bytes(&small.to_le_bytes())));
            prop_assert_eq!(find(&out, 3), Some(Field::Number(number)));
            let Some(Field::Bytes(message)) = find(&out, 2) else { panic!("no message") };
            prop_assert_eq!(find(message, 1), Some(Field::Bytes(text.as_bytes())));
            let Some(Field::Bytes(attribute)) = find(&out, 9) else { panic!("no attribute") };
            let Some(Field::Bytes(value)) = find(attribute, 2) else { panic!("no value") };
            prop_assert_eq!(find(value, 1), Some(Field::Bytes(text.as_bytes())));
            prop_assert_eq!(find(&out, 99), None);
            put_number(&mut out, 3, 7);
            let found: Vec<_> = fields(&out, 3).collect();
            prop_assert_eq!(found, [Field::Number(number), Field::Number(7)]);
        }

        #[test]
        fn what_is_found_is_part_of_the_message(bytes: Vec<u8>, wanted in 0..8_u64) {
            if let Some(found) = find(&bytes, wanted).and_then(Field::bytes) {
                prop_assert!(found.is_empty() || bytes.windows(found.len()).any(|part| part == found));
            }
        }
    }
}
