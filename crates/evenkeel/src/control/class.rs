//! `Class`: the flow schema and the priority level of a request.

use std::fmt;
use std::sync::Arc;

use crate::control::snapshot::Destination;

/// The flow schema and the priority level that a request belongs to. Cloning it allocates nothing.
#[derive(Clone)]
pub struct Class(pub(crate) Arc<Destination>);

// === impl Class ===

impl Class {
    /// The name of the flow schema.
    pub fn flow_schema(&self) -> &str {
        &self.0.schema().name
    }

    /// The UID of the flow schema; empty for a built-in one.
    pub fn flow_schema_uid(&self) -> &str {
        &self.0.schema().uid
    }

    /// The name of the priority level.
    pub fn priority_level(&self) -> &str {
        &self.0.schema().level.name
    }

    /// The UID of the priority level; empty for a built-in one.
    pub fn priority_level_uid(&self) -> &str {
        &self.0.schema().level.uid
    }
}

impl fmt::Debug for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (schema, level) = (self.flow_schema(), self.priority_level());
        f.debug_struct("Class").field("flow_schema", &schema).field("priority_level", &level).finish()
    }
}
