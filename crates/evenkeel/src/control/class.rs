//! `Class`: the flow schema and the priority level of a request.

use std::fmt;
use std::sync::Arc;

use evenkeel_engine::Attributes;

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

    /// What tells the flow of a request of this class from the other flows of its flow schema; empty if nothing does (FM-14).
    pub fn flow_distinguisher<'a>(&self, attributes: Attributes<'a>) -> &'a str {
        let schema = self.0.schema();
        if schema.level.has_flows { schema.distinguisher_of(attributes) } else { "" }
    }

    /// Whether an annotation of the flow schema says what tells its flows apart: then attributes need a path, headers or an address.
    pub fn is_flow_by_annotation(&self) -> bool {
        self.0.schema().flow_by().is_some()
    }

    /// The names and UIDs, which tell classes apart.
    fn key(&self) -> [&str; 4] {
        [self.flow_schema(), self.flow_schema_uid(), self.priority_level(), self.priority_level_uid()]
    }
}

impl PartialEq for Class {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Class {}

impl fmt::Debug for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (schema, level) = (self.flow_schema(), self.priority_level());
        f.debug_struct("Class").field("flow_schema", &schema).field("priority_level", &level).finish()
    }
}
