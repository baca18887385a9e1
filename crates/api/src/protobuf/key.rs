//! Serializes a map key, which must be a text.

use std::fmt;

use serde::ser::{self, Impossible, Serialize, Serializer};

use super::encode::Unwritable;

/// Passes a text to a function, and rejects everything else.
pub(super) struct TextKey<F>(pub(super) F);

/// Refuses the types that are no text.
macro_rules! refuse {
    ($($method:ident($($argument:ty),*) -> $result:ty;)+) => {$(
        fn $method(self, $(_: $argument),*) -> Result<$result, Unwritable> {
            Err(ser::Error::custom("expected a text"))
        }
    )+};
}

// === impl TextKey ===

impl<R, F: FnOnce(&str) -> R> Serializer for TextKey<F> {
    type Ok = R;
    type Error = Unwritable;
    type SerializeSeq = Impossible<R, Unwritable>;
    type SerializeTuple = Impossible<R, Unwritable>;
    type SerializeTupleStruct = Impossible<R, Unwritable>;
    type SerializeTupleVariant = Impossible<R, Unwritable>;
    type SerializeMap = Impossible<R, Unwritable>;
    type SerializeStruct = Impossible<R, Unwritable>;
    type SerializeStructVariant = Impossible<R, Unwritable>;

    fn serialize_str(self, text: &str) -> Result<R, Unwritable> {
        Ok(self.0(text))
    }

    fn collect_str<T: fmt::Display + ?Sized>(self, value: &T) -> Result<R, Unwritable> {
        self.serialize_str(&value.to_string())
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<R, Unwritable> {
        self.serialize_str(variant)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<R, Unwritable> {
        value.serialize(self)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<R, Unwritable> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<R, Unwritable> {
        Err(ser::Error::custom("expected a text"))
    }

    refuse! {
        serialize_bool(bool) -> R;
        serialize_i8(i8) -> R;
        serialize_i16(i16) -> R;
        serialize_i32(i32) -> R;
        serialize_i64(i64) -> R;
        serialize_u8(u8) -> R;
        serialize_u16(u16) -> R;
        serialize_u32(u32) -> R;
        serialize_u64(u64) -> R;
        serialize_f32(f32) -> R;
        serialize_f64(f64) -> R;
        serialize_char(char) -> R;
        serialize_bytes(&[u8]) -> R;
        serialize_none() -> R;
        serialize_unit() -> R;
        serialize_unit_struct(&'static str) -> R;
        serialize_seq(Option<usize>) -> Self::SerializeSeq;
        serialize_tuple(usize) -> Self::SerializeTuple;
        serialize_tuple_struct(&'static str, usize) -> Self::SerializeTupleStruct;
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> Self::SerializeTupleVariant;
        serialize_map(Option<usize>) -> Self::SerializeMap;
        serialize_struct(&'static str, usize) -> Self::SerializeStruct;
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> Self::SerializeStructVariant;
    }
}
