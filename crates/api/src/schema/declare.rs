//! The two macros that declare a type and its place in the schema table in one go.
//!
//! A field is written as `rust_name "wireName" = 1: Type [attributes]`, where 1 is its number in protobuf; the
//! attributes are the methods of [`Field`](super::Field) that say what the table holds beyond name, number and type.
//! The doc comment is both the field's rustdoc and the text that OpenAPI, `kubectl explain` and the reference show.

/// Declares an object type: the struct, how it is written and read, and its [`TypeSchema`](super::TypeSchema).
macro_rules! declare_type {
    (
        $(#[doc = $doc:literal])+
        $(#[deprecated(note = $deprecated:literal)])?
        pub struct $Type:ident ($name:expr, $package:ident $(, $union:expr)?) {
            $(
                $(#[doc = $field_doc:literal])+
                $field:ident $wire:literal = $number:literal: $FieldType:ty [$($attribute:ident $(($value:expr))?)*]
            ),* $(,)?
        }
        $(accepted_and_dropped { $( $(#[doc = $dropped_doc:literal])+ $dropped:literal = $dropped_number:literal: $Dropped:ty ),* $(,)? })?
    ) => {
        $(#[doc = $doc])+
        $(#[deprecated(note = $deprecated)])?
        #[derive(Debug, Clone, PartialEq, Eq, Default, serde::Deserialize)]
        #[serde(default)]
        pub struct $Type {
            $(
                $(#[doc = $field_doc])+
                #[serde(rename = $wire, deserialize_with = "crate::schema::null_is_absent")]
                pub $field: $FieldType,
            )*
        }

        impl $Type {
            /// What the schema table holds on this type.
            pub const SCHEMA: crate::schema::TypeSchema = crate::schema::TypeSchema {
                name: $name,
                package: crate::schema::Package::$package,
                doc: concat!($($doc, "\n"),+),
                fields: &[
                    $(
                        crate::schema::Field::new(
                            $wire,
                            <$FieldType as crate::schema::Described>::SHAPE,
                            concat!($($field_doc, "\n"),+),
                        )
                        .number($number)
                        .presence(<$FieldType as crate::schema::Described>::PRESENCE)
                        $(.$attribute($($value)?))*,
                    )*
                    $($(
                        crate::schema::Field::new(
                            $dropped,
                            <$Dropped as crate::schema::Described>::SHAPE,
                            concat!($($dropped_doc, "\n"),+),
                        )
                        .number($dropped_number)
                        .dropped(),
                    )*)?
                ],
                union: declare_type!(@union $($union)?),
            };
        }

        impl crate::schema::Described for $Type {
            const SHAPE: crate::schema::Shape = crate::schema::Shape::Object(&Self::SCHEMA);

            fn is_absent(&self) -> bool {
                false
            }
        }

        impl serde::Serialize for $Type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(None)?;
                // The table lists the fields in the order of the struct, those that are dropped after them.
                let mut fields = Self::SCHEMA.fields.iter();
                $( crate::schema::write_field(&mut map, fields.next(), &self.$field)?; )*
                serde::ser::SerializeMap::end(map)
            }
        }
    };
    (@union) => { None };
    (@union $union:expr) => { Some($union) };
}

/// Declares a text type of few values, which keeps any other text for validation to complain of.
macro_rules! declare_choice {
    (
        $(#[doc = $doc:literal])+
        pub enum $Type:ident { $( $(#[doc = $value_doc:literal])+ $Value:ident ),+ $(,)? }
    ) => {
        $(#[doc = $doc])+
        ///
        /// Not `#[non_exhaustive]`: texts that are not known yet are `Other`, and a version that adds one breaks nothing but
        /// the programs that have to decide about it.
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $Type {
            $( $(#[doc = $value_doc])+ $Value, )+
            /// Any other text, the empty one included. Validation refuses it.
            Other(String),
        }

        impl $Type {
            /// What the schema table holds on this type.
            pub const CHOICE: crate::schema::Choice = crate::schema::Choice {
                name: stringify!($Type),
                doc: concat!($($doc, "\n"),+),
                values: &[$((stringify!($Value), concat!($($value_doc, "\n"),+))),+],
            };

            /// The text on the wire.
            pub fn as_str(&self) -> &str {
                match self {
                    $( Self::$Value => stringify!($Value), )+
                    Self::Other(text) => text,
                }
            }
        }

        impl Default for $Type {
            fn default() -> Self {
                Self::Other(String::new())
            }
        }

        impl From<String> for $Type {
            fn from(text: String) -> Self {
                match text.as_str() {
                    $( stringify!($Value) => Self::$Value, )+
                    _ => Self::Other(text),
                }
            }
        }

        impl From<&str> for $Type {
            fn from(text: &str) -> Self {
                Self::from(text.to_owned())
            }
        }

        impl std::fmt::Display for $Type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $Type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $Type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer).map(Self::from)
            }
        }

        impl crate::schema::Described for $Type {
            const SHAPE: crate::schema::Shape = crate::schema::Shape::Choice(&Self::CHOICE);

            fn is_absent(&self) -> bool {
                self.as_str().is_empty()
            }
        }
    };
}

pub(crate) use {declare_choice, declare_type};
