//! The name of an object to be built: given, or to be made up by the server.

use crate::meta::ObjectMeta;

/// The name of an object: a text, or what [`generate_name`] returns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name(NameOrigin);

#[derive(Debug, Clone, PartialEq, Eq)]
enum NameOrigin {
    Given(String),
    Generated { prefix: String },
}

/// A name that the server makes up: the prefix and some letters that make it unique.
///
/// ```
/// use evenkeel_api::build::generate_name;
/// use evenkeel_api::v1::FlowSchema;
///
/// let schema = FlowSchema::builder(generate_name("batch-")).priority_level("workload-low").build();
/// assert_eq!((schema.name(), schema.metadata.generate_name.as_str()), ("", "batch-"));
/// ```
pub fn generate_name(prefix: impl Into<String>) -> Name {
    Name(NameOrigin::Generated { prefix: prefix.into() })
}

// === impl Name ===

impl Name {
    pub(super) fn into_metadata(self) -> ObjectMeta {
        match self.0 {
            NameOrigin::Given(name) => ObjectMeta::named(name),
            NameOrigin::Generated { prefix } => ObjectMeta { generate_name: prefix, ..ObjectMeta::default() },
        }
    }
}

impl From<String> for Name {
    fn from(name: String) -> Self {
        Self(NameOrigin::Given(name))
    }
}

impl From<&str> for Name {
    fn from(name: &str) -> Self {
        Self::from(name.to_owned())
    }
}

impl From<&String> for Name {
    fn from(name: &String) -> Self {
        Self::from(name.clone())
    }
}
