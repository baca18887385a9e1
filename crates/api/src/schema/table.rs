//! The schema table: what is known of every type and every field, as data.
//!
//! The table is written down by [`declare_type!`](super::declare), in the same place as the Rust type it
//! describes. Decoding, encoding, strategic merge, server-side apply, OpenAPI and the reference all read it.

use std::borrow::Cow;

use super::meta_types::{FIELDS_V1, TIME};
use crate::{Kind, Version};

/// The facts about one object type.
///
/// Not `#[non_exhaustive]`: code that makes a document of the table has to handle all of it.
#[derive(Debug, Clone, Copy)]
pub struct TypeSchema {
    /// The type's name, without package and version.
    pub name: TypeName,
    /// Which package the type belongs to.
    pub package: Package,
    /// What the type is for.
    pub doc: &'static str,
    /// The fields, in the order in which they are written. None where nothing is said of the members.
    pub fields: &'static [Field],
    /// The members of which at most one is set, if the type is a union.
    pub union: Option<Union>,
}

/// The name of a type.
///
/// Not `#[non_exhaustive]`: code that makes a document of the table has to handle all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TypeName {
    /// The same whatever object the type is found in.
    Fixed(&'static str),
    /// The kind of the object followed by this: `FlowSchemaStatus`.
    OfKind(&'static str),
}

/// The package of a type.
///
/// Not `#[non_exhaustive]`: code that makes a document of the table has to handle all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Package {
    /// The API group; such a type exists once for each version.
    Flowcontrol,
    /// `meta/v1`, which all groups share.
    Meta,
    /// The types that stand for an object of any group.
    Runtime,
}

/// The facts about one field.
///
/// Not `#[non_exhaustive]`: code that makes a document of the table has to handle all of it.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// The name on the wire.
    pub name: &'static str,
    /// The field's number in protobuf; `kind` and `apiVersion` have none, since they are in the envelope.
    pub number: Option<u32>,
    /// The treatment of the absent field in protobuf.
    pub presence: Presence,
    /// The type of the value.
    pub shape: Shape,
    /// What the field is for.
    pub doc: &'static str,
    /// Whether the schema lists the field as required.
    pub required: bool,
    /// Whether the field is written even when it is empty (API-9).
    pub always_written: bool,
    /// The value that is filled in when the field is absent.
    pub default: Option<i32>,
    /// How server-side apply treats a list.
    pub list_type: ListType,
    /// How strategic merge patch treats a list.
    pub patch: PatchRule,
    /// The name that messages give to the type of a text, where it has one of its own.
    pub text_type: Option<TypeName>,
    /// The party that sets the field.
    pub set_by: SetBy,
}

/// The party that sets a field.
///
/// Not `#[non_exhaustive]`: code that makes a document of the table has to handle all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetBy {
    /// The client that writes the object.
    Client,
    /// The server: clients read it.
    Server,
    /// No party: the field may be sent but is never kept, so that it never comes back.
    Nobody,
}

/// The treatment of an absent field in protobuf (PB-2).
///
/// Not `#[non_exhaustive]`: code that makes a document of the table has to handle all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// A text, a number or a message is written as empty or zero. Lists and maps without elements write nothing.
    Always,
    /// The field is left out.
    Optional,
}

/// The type of a value.
///
/// Not `#[non_exhaustive]`: code that makes a document of the table has to handle all of it.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// `true` or `false`.
    Boolean,
    /// A whole number of 32 bits.
    Int32,
    /// A whole number of 64 bits.
    Int64,
    /// A text.
    String,
    /// A text of which only a few values make sense; others are kept for validation to name.
    Choice(&'static Choice),
    /// A point in time.
    Time,
    /// A map from texts to texts.
    StringMap,
    /// A list.
    List(&'static Shape),
    /// An object with known fields.
    Object(&'static TypeSchema),
    /// The set of fields in a `managedFields` entry, a tree of its own form (API-135).
    FieldSet,
}

/// A text type of few values.
///
/// Not `#[non_exhaustive]`: code that makes a document of the table has to handle all of it.
#[derive(Debug, Clone, Copy)]
pub struct Choice {
    /// The type's name, without package and version.
    pub name: &'static str,
    /// What the type is for.
    pub doc: &'static str,
    /// The values, each with what it means.
    pub values: &'static [(&'static str, &'static str)],
}

/// How server-side apply treats a list.
///
/// Not `#[non_exhaustive]`: code that makes a document of the table has to handle all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListType {
    /// Not a list, or a list with nothing said about it.
    Unspecified,
    /// One value: owned and replaced as a whole.
    Atomic,
    /// A set of texts, each owned on its own.
    Set,
    /// Objects told apart by the member named here, each owned on its own.
    Map(&'static str),
}

/// How strategic merge patch treats a list.
///
/// Not `#[non_exhaustive]`: code that makes a document of the table has to handle all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchRule {
    /// The patch's list takes the place of the old one.
    Replace,
    /// The two lists are merged.
    Merge,
    /// Merged in v1 and v1beta3, replaced in the versions before.
    MergeSinceV1beta3,
}

/// A union: `discriminator` says which of the `members` is meant.
///
/// Not `#[non_exhaustive]`: code that makes a document of the table has to handle all of it.
#[derive(Debug, Clone, Copy)]
pub struct Union {
    /// The field that names the member.
    pub discriminator: &'static str,
    /// The fields of which one is meant, each with the name that OpenAPI gives it.
    pub members: &'static [(&'static str, &'static str)],
}

/// A Rust type that stands in the schema table.
pub trait Described {
    /// The table's entry for the type.
    const SHAPE: Shape;

    /// The treatment of an absent field of this type in protobuf, unless the field's declaration says otherwise.
    const PRESENCE: Presence = Presence::Always;

    /// Whether the value is what the wire calls absent or empty (API-10).
    fn is_absent(&self) -> bool;

    /// Gives back memory that the value has in reserve. Lists are read into vectors with room for four items at least,
    /// and most have one.
    fn shrink_to_fit(&mut self) {}
}

// === impl TypeSchema ===

impl TypeSchema {
    /// The field of that name on the wire.
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// Calls `visit` for each field that protobuf has, in the order of their numbers.
    pub(crate) fn for_each_numbered(&self, mut visit: impl FnMut(u32, &'static Field)) {
        let numbered = || self.fields.iter().filter_map(|field| Some((field.number?, field)));
        // Most types list their fields in this order.
        if numbered().is_sorted_by_key(|(number, _)| number) {
            return numbered().for_each(|(number, field)| visit(number, field));
        }
        let mut sorted: Vec<_> = numbered().collect();
        sorted.sort_by_key(|(number, _)| *number);
        for (number, field) in sorted {
            visit(number, field);
        }
    }

    /// The field of that number in protobuf.
    pub fn numbered(&self, number: u32) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.number == Some(number))
    }

    /// The type's name inside an object of `kind`.
    pub fn name(&self, kind: Kind) -> Cow<'static, str> {
        self.name.in_kind(kind)
    }

    /// What the type is for, as one paragraph.
    pub fn description(&self) -> String {
        paragraph(self.doc)
    }
}

// === impl TypeName ===

impl TypeName {
    /// The name inside an object of `kind`.
    pub fn in_kind(self, kind: Kind) -> Cow<'static, str> {
        match self {
            Self::Fixed(name) => Cow::Borrowed(name),
            Self::OfKind(suffix) => Cow::Owned(format!("{kind}{suffix}")),
        }
    }
}

// === impl Field ===

impl Field {
    /// An optional field with no default that is left out when it is empty.
    pub const fn new(name: &'static str, shape: Shape, doc: &'static str) -> Self {
        Self {
            name,
            number: None,
            presence: Presence::Always,
            shape,
            doc,
            required: false,
            always_written: false,
            default: None,
            list_type: ListType::Unspecified,
            patch: PatchRule::Replace,
            text_type: None,
            set_by: SetBy::Client,
        }
    }

    /// The same, with its number in protobuf.
    #[must_use]
    pub const fn number(mut self, number: u32) -> Self {
        self.number = Some(number);
        self
    }

    /// The same, left out of protobuf when it is absent.
    #[must_use]
    pub const fn optional(self) -> Self {
        self.presence(Presence::Optional)
    }

    /// The same, written to protobuf as zero when it is absent, although its Rust type is an `Option`.
    #[must_use]
    pub const fn zero_if_absent(self) -> Self {
        self.presence(Presence::Always)
    }

    pub(crate) const fn presence(mut self, presence: Presence) -> Self {
        self.presence = presence;
        self
    }

    /// The same, listed as required.
    #[must_use]
    pub const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// The same, written even when it is empty.
    #[must_use]
    pub const fn always_written(mut self) -> Self {
        self.always_written = true;
        self
    }

    /// The same, with a default.
    #[must_use]
    pub const fn default(mut self, value: i32) -> Self {
        self.default = Some(value);
        self
    }

    /// The same, with what server-side apply does with the list.
    #[must_use]
    pub const fn list(mut self, list_type: ListType) -> Self {
        self.list_type = list_type;
        self
    }

    /// The same, with what strategic merge patch does with the list.
    #[must_use]
    pub const fn patch(mut self, rule: PatchRule) -> Self {
        self.patch = rule;
        self
    }

    /// The same, a text whose type has a name of its own.
    #[must_use]
    pub const fn text_type(mut self, name: TypeName) -> Self {
        self.text_type = Some(name);
        self
    }

    /// The same, never kept.
    #[must_use]
    pub const fn dropped(mut self) -> Self {
        self.set_by = SetBy::Nobody;
        self
    }

    /// The same, set by the server.
    #[must_use]
    pub const fn read_only(mut self) -> Self {
        self.set_by = SetBy::Server;
        self
    }

    /// What the field is for, as one paragraph.
    ///
    /// ```
    /// use evenkeel_api::v1::Condition;
    ///
    /// assert_eq!(Condition::SCHEMA.field("reason").unwrap().description(), "The reason, as one word for programs.");
    /// ```
    pub fn description(&self) -> String {
        paragraph(self.doc)
    }

    /// Whether strategic merge patch merges this list in `version`.
    pub fn is_merged(&self, version: Version) -> bool {
        match self.patch {
            PatchRule::Replace => false,
            PatchRule::Merge => true,
            PatchRule::MergeSinceV1beta3 => matches!(version, Version::V1 | Version::V1beta3),
        }
    }

    /// The member by which strategic merge patch tells the objects of a merged list apart.
    pub fn merge_key(&self) -> Option<&'static str> {
        match self.list_type {
            ListType::Map(key) => Some(key),
            _ => None,
        }
    }
}

// === impl Choice ===

impl Choice {
    /// What the type is for, as one paragraph.
    pub fn description(&self) -> String {
        paragraph(self.doc)
    }

    /// The values, each with what it means as one paragraph.
    ///
    /// ```
    /// use evenkeel_api::v1::LimitResponseType;
    ///
    /// let (value, meaning) = LimitResponseType::CHOICE.meanings().next().unwrap();
    /// assert_eq!((value, meaning.as_str()), ("Queue", "It waits in a queue."));
    /// ```
    pub fn meanings(&self) -> impl Iterator<Item = (&'static str, String)> {
        self.values.iter().map(|(value, doc)| (*value, paragraph(doc)))
    }
}

// === impl Shape ===

impl Shape {
    /// The shape of the elements if this is a list, and the shape itself otherwise.
    #[must_use]
    pub fn element(self) -> Self {
        match self {
            Self::List(element) => element.element(),
            single => single,
        }
    }

    /// The type that is described in a place of its own and only referred to where a value of it stands.
    pub fn definition(self) -> Option<&'static TypeSchema> {
        match self {
            Self::Object(schema) => Some(schema),
            Self::Time => Some(&TIME),
            Self::FieldSet => Some(&FIELDS_V1),
            _ => None,
        }
    }
}

// === impl Described ===

macro_rules! describe_plain {
    ($($type:ty => $shape:expr, $absent:expr;)+) => {$(
        impl Described for $type {
            const SHAPE: Shape = $shape;

            fn is_absent(&self) -> bool {
                let absent: fn(&$type) -> bool = $absent;
                absent(self)
            }
        }
    )+};
}

describe_plain! {
    bool => Shape::Boolean, |value| !value;
    i32 => Shape::Int32, |value| *value == 0;
    i64 => Shape::Int64, |value| *value == 0;
    String => Shape::String, String::is_empty;
    std::collections::BTreeMap<String, String> => Shape::StringMap, std::collections::BTreeMap::is_empty;
}

impl<T: Described> Described for Option<T> {
    const SHAPE: Shape = T::SHAPE;
    const PRESENCE: Presence = Presence::Optional;

    fn is_absent(&self) -> bool {
        self.is_none()
    }
}

impl<T: Described + 'static> Described for Vec<T> {
    const SHAPE: Shape = Shape::List(&T::SHAPE);

    fn is_absent(&self) -> bool {
        self.is_empty()
    }

    fn shrink_to_fit(&mut self) {
        Vec::shrink_to_fit(self);
    }
}

/// A doc comment without its line breaks and the space before each line.
fn paragraph(doc: &str) -> String {
    doc.split_whitespace().collect::<Vec<_>>().join(" ")
}
