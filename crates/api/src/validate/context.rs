//! The things that validation depends on besides the object.

use crate::decode::{Node, Value};
use crate::{Preset, Version};

/// The version that an object was written in, and the preset by whose rules it is checked.
///
/// A version alone stands for the rules of Kubernetes.
///
/// ```
/// use evenkeel_api::v1::FlowSchema;
/// use evenkeel_api::validate::{self, Context, EmptyRules};
/// use evenkeel_api::{Preset, Version};
///
/// let schema = FlowSchema::builder("uploads").priority_level("slow");
/// let schema = schema.rule(|r| r.user("*").non_resource_urls(["/files/*"]).verbs(["post"])).build();
/// let plain = Context { version: Version::V1, preset: Preset::Plain, empty_rules: EmptyRules::Absent };
/// assert!(validate::create(&schema, plain).is_ok());
/// assert!(validate::create(&schema, Version::V1).is_err());
/// ```
///
/// Not `#[non_exhaustive]`: callers make it, and have to give all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Context {
    /// The version that the object was written in.
    pub version: Version,
    /// By whose rules it is checked.
    pub preset: Preset,
    /// How `spec.rules` was written if it is empty.
    pub empty_rules: EmptyRules,
}

/// How rules were written that are empty. The two mean the same; a message shows them as they were (API-52).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum EmptyRules {
    /// Not at all.
    #[default]
    Absent,
    /// As an empty list.
    List,
}

// === impl Context ===

impl From<Version> for Context {
    fn from(version: Version) -> Self {
        Self { version, preset: Preset::Kubernetes, empty_rules: EmptyRules::Absent }
    }
}

// === impl EmptyRules ===

impl EmptyRules {
    /// How an object was written.
    pub fn of(root: &Node) -> Self {
        match root.get("spec").and_then(|spec| spec.get("rules")).map(|rules| &rules.value) {
            Some(Value::List(_)) => Self::List,
            _ => Self::Absent,
        }
    }
}
