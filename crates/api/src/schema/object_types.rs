//! The entries of the table for the objects themselves and for the lists of them, by version and kind.

#![expect(deprecated, reason = "the older versions are served as long as clients use them")]

use super::TypeSchema;
use crate::{Kind, Version, v1, v1beta1, v1beta2, v1beta3};

/// The table's entry for the objects of a kind in a version.
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

/// The table's entry for the list of such objects.
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
            Version::V1 => const { &v1::FlowSchemaList::SCHEMA },
            Version::V1beta3 => const { &v1beta3::FlowSchemaList::SCHEMA },
            Version::V1beta2 => const { &v1beta2::FlowSchemaList::SCHEMA },
            Version::V1beta1 => const { &v1beta1::FlowSchemaList::SCHEMA },
        },
        Kind::PriorityLevelConfiguration => match version {
            Version::V1 => const { &v1::PriorityLevelConfigurationList::SCHEMA },
            Version::V1beta3 => const { &v1beta3::PriorityLevelConfigurationList::SCHEMA },
            Version::V1beta2 => const { &v1beta2::PriorityLevelConfigurationList::SCHEMA },
            Version::V1beta1 => const { &v1beta1::PriorityLevelConfigurationList::SCHEMA },
        },
    }
}
