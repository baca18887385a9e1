//! What validation depends on besides the object.

use crate::{Preset, Version};

/// The version that an object was written in, and the preset by whose rules it is checked.
///
/// A version alone stands for the rules of Kubernetes.
///
/// ```
/// use evenkeel_api::v1::FlowSchema;
/// use evenkeel_api::validate::{self, Context};
/// use evenkeel_api::{Preset, Version};
///
/// let schema = FlowSchema::builder("uploads").priority_level("slow");
/// let schema = schema.rule(|r| r.user("*").non_resource_urls(["/files/*"]).verbs(["post"])).build();
/// let plain = Context { version: Version::V1, preset: Preset::Plain };
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
}

// === impl Context ===

impl From<Version> for Context {
    fn from(version: Version) -> Self {
        Self { version, preset: Preset::Kubernetes }
    }
}
