//! `AnyObject`: an object of either kind, for where both are met.

use crate::meta::ObjectMeta;
use crate::{Kind, v1};

/// An object of either kind in the hub version: what a manifest or a store holds.
///
/// Not `#[non_exhaustive]`: the API has these two kinds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnyObject {
    /// A flow schema.
    FlowSchema(v1::FlowSchema),
    /// A priority level.
    PriorityLevelConfiguration(v1::PriorityLevelConfiguration),
}

// === impl AnyObject ===

impl AnyObject {
    /// The kind of the object.
    pub fn kind(&self) -> Kind {
        match self {
            Self::FlowSchema(_) => Kind::FlowSchema,
            Self::PriorityLevelConfiguration(_) => Kind::PriorityLevelConfiguration,
        }
    }

    /// The metadata of the object.
    pub fn metadata(&self) -> &ObjectMeta {
        match self {
            Self::FlowSchema(schema) => &schema.metadata,
            Self::PriorityLevelConfiguration(level) => &level.metadata,
        }
    }

    /// The object's name.
    pub fn name(&self) -> &str {
        &self.metadata().name
    }
}

impl From<v1::FlowSchema> for AnyObject {
    fn from(schema: v1::FlowSchema) -> Self {
        Self::FlowSchema(schema)
    }
}

impl From<v1::PriorityLevelConfiguration> for AnyObject {
    fn from(level: v1::PriorityLevelConfiguration) -> Self {
        Self::PriorityLevelConfiguration(level)
    }
}
