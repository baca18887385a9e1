//! The entries of the table for the objects themselves and for the lists of them, by version and kind.

use std::marker::PhantomData;

use super::meta_types::{API_VERSION, KIND, LIST_META};
use super::{Described, Field, Package, Shape, TypeName, TypeSchema};
use crate::{InVersion, Kind, Object, Spec, Version, v1, v1beta1, v1beta2, v1beta3};

/// The list of the objects that `O` is one of.
struct ListOf<O>(PhantomData<O>);

/// What the table holds on the objects of a kind in a version.
///
/// ```
/// use evenkeel_api::schema::{self, Shape};
/// use evenkeel_api::{Kind, Version};
///
/// let level = schema::object_type(Version::V1beta2, Kind::PriorityLevelConfiguration);
/// let Shape::Object(spec) = level.field("spec").unwrap().shape else { unreachable!() };
/// let Shape::Object(limited) = spec.field("limited").unwrap().shape else { unreachable!() };
/// assert!(limited.field("assuredConcurrencyShares").is_some());
/// ```
pub fn object_type(version: Version, kind: Kind) -> &'static TypeSchema {
    match kind {
        Kind::FlowSchema => match version {
            Version::V1 => const { &v1::FlowSchema::SCHEMA },
            Version::V1beta3 => const { &v1beta3::FlowSchema::SCHEMA },
            Version::V1beta2 => const { &v1beta2::FlowSchema::SCHEMA },
            Version::V1beta1 => const { &v1beta1::FlowSchema::SCHEMA },
        },
        Kind::PriorityLevelConfiguration => match version {
            Version::V1 => const { &v1::PriorityLevelConfiguration::SCHEMA },
            Version::V1beta3 => const { &v1beta3::PriorityLevelConfiguration::SCHEMA },
            Version::V1beta2 => const { &v1beta2::PriorityLevelConfiguration::SCHEMA },
            Version::V1beta1 => const { &v1beta1::PriorityLevelConfiguration::SCHEMA },
        },
    }
}

/// What the table holds on the list of such objects.
///
/// ```
/// use evenkeel_api::{Kind, Version, schema};
///
/// let list = schema::list_type(Version::V1, Kind::FlowSchema);
/// assert_eq!(list.name(Kind::FlowSchema), "FlowSchemaList");
/// ```
pub fn list_type(version: Version, kind: Kind) -> &'static TypeSchema {
    match kind {
        Kind::FlowSchema => match version {
            Version::V1 => const { &ListOf::<v1::FlowSchema>::SCHEMA },
            Version::V1beta3 => const { &ListOf::<v1beta3::FlowSchema>::SCHEMA },
            Version::V1beta2 => const { &ListOf::<v1beta2::FlowSchema>::SCHEMA },
            Version::V1beta1 => const { &ListOf::<v1beta1::FlowSchema>::SCHEMA },
        },
        Kind::PriorityLevelConfiguration => match version {
            Version::V1 => const { &ListOf::<v1::PriorityLevelConfiguration>::SCHEMA },
            Version::V1beta3 => const { &ListOf::<v1beta3::PriorityLevelConfiguration>::SCHEMA },
            Version::V1beta2 => const { &ListOf::<v1beta2::PriorityLevelConfiguration>::SCHEMA },
            Version::V1beta1 => const { &ListOf::<v1beta1::PriorityLevelConfiguration>::SCHEMA },
        },
    }
}

// === impl ListOf ===

impl<V: InVersion, S: Spec> ListOf<Object<V, S>> {
    const SCHEMA: TypeSchema = TypeSchema {
        name: TypeName::OfKind("List"),
        package: Package::Flowcontrol,
        doc: "A list of objects of one kind.",
        fields: &[
            KIND,
            API_VERSION,
            Field::new("metadata", Shape::Object(&LIST_META), "What the list says of itself."),
            Field::new("items", Shape::List(&Object::<V, S>::SHAPE), "The objects, sorted by name.").required(),
        ],
        union: None,
    };
}
