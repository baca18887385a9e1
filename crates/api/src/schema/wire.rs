//! How the values of a declared type are written and read, by what the table says of each field.

use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize};

use super::{Described, Field, Shape};

/// Writes one member of an object, or leaves it out (API-9, API-10).
pub(crate) fn write_field<M: SerializeMap, T: Described + Serialize>(
    map: &mut M,
    field: Option<&Field>,
    value: &T,
) -> Result<(), M::Error> {
    let Some(field) = field else { return Ok(()) };
    if value.is_absent() {
        if !field.always_written {
            return Ok(());
        }
        if matches!(field.shape, Shape::List(_)) {
            return map.serialize_entry(field.name, &());
        }
    }
    map.serialize_entry(field.name, value)
}

/// Reads one member of an object, a `null` being the same as nothing (API-16).
pub(crate) fn null_is_absent<'de, D: Deserializer<'de>, T: Deserialize<'de> + Described + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    let mut value = Option::<T>::deserialize(deserializer)?.unwrap_or_default();
    value.shrink_to_fit();
    Ok(value)
}
