//! Writes the few parts of protobuf that OTLP needs.

/// How a field is encoded.
#[derive(Debug, Clone, Copy)]
enum WireType {
    Varint = 0,
    Fixed64 = 1,
    Bytes = 2,
    Fixed32 = 5,
}

/// The bytes that are reserved for the length of a message: enough for two million.
const LENGTH_BYTES: usize = 3;

pub(super) fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(low_bits(number) | 0x80);
        number >>= 7;
    }
    out.push(low_bits(number));
}

fn low_bits(number: u64) -> u8 {
    u8::try_from(number & 0x7f).unwrap_or_default()
}

/// How many bytes a number takes.
fn varint_length(number: usize) -> usize {
    (usize::BITS - (number | 1).leading_zeros()).div_ceil(7) as usize
}

fn put_tag(out: &mut Vec<u8>, field: u32, wire_type: WireType) {
    put_varint(out, u64::from(field) << 3 | wire_type as u64);
}

pub(super) fn put_number(out: &mut Vec<u8>, field: u32, number: u64) {
    put_tag(out, field, WireType::Varint);
    put_varint(out, number);
}

pub(super) fn put_fixed64(out: &mut Vec<u8>, field: u32, number: u64) {
    put_tag(out, field, WireType::Fixed64);
    out.extend_from_slice(&number.to_le_bytes());
}

pub(super) fn put_fixed32(out: &mut Vec<u8>, field: u32, number: u32) {
    put_tag(out, field, WireType::Fixed32);
    out.extend_from_slice(&number.to_le_bytes());
}

pub(super) fn put_bytes(out: &mut Vec<u8>, field: u32, bytes: &[u8]) {
    put_length(out, field, bytes.len());
    out.extend_from_slice(bytes);
}

/// The beginning of a field with so many bytes.
pub(super) fn put_length(out: &mut Vec<u8>, field: u32, length: usize) {
    put_tag(out, field, WireType::Bytes);
    put_varint(out, length as u64);
}

/// A message of less than two megabytes. Its length is written when it is known, with leading zeros, so that nothing is
/// moved or measured first.
pub(super) fn put_message(out: &mut Vec<u8>, field: u32, put: impl FnOnce(&mut Vec<u8>)) {
    put_tag(out, field, WireType::Bytes);
    let start = out.len();
    out.extend_from_slice(&[0; LENGTH_BYTES]);
    put(out);
    let length = (out.len() - start - LENGTH_BYTES) as u64;
    debug_assert!(length < 1 << (7 * LENGTH_BYTES));
    for place in 0..LENGTH_BYTES {
        let more = if place + 1 < LENGTH_BYTES { 0x80 } else { 0 };
        out[start + place] = low_bits(length >> (7 * place)) | more;
    }
}

/// A `KeyValue` with a text.
pub(super) fn put_text_attribute(out: &mut Vec<u8>, field: u32, key: &str, text: &str) {
    let value_length = 1 + varint_length(text.len()) + text.len();
    put_key(out, field, key, value_length);
    put_bytes(out, 1, text.as_bytes());
}

/// A `KeyValue` with a number.
pub(super) fn put_number_attribute(out: &mut Vec<u8>, field: u32, key: &str, number: u32) {
    let value_length = 1 + varint_length(number as usize);
    put_key(out, field, key, value_length);
    put_number(out, 3, number.into());
}

/// A `KeyValue` up to its `AnyValue`, which has so many bytes.
fn put_key(out: &mut Vec<u8>, field: u32, key: &str, value_length: usize) {
    let key_length = 1 + varint_length(key.len()) + key.len();
    put_length(out, field, key_length + 1 + varint_length(value_length) + value_length);
    put_bytes(out, 1, key.as_bytes());
    put_length(out, 2, value_length);
}
