//! The API group, its versions and its kinds, and the names they go by.

use std::fmt;
use std::str::FromStr;

/// The name of the API group.
pub const GROUP: &str = "flowcontrol.apiserver.k8s.io";

/// A version of the API group, in order of preference (API-1).
///
/// ```
/// use evenkeel_api::Version;
///
/// let version: Version = "v1beta3".parse()?;
/// assert_eq!(version.api_version(), "flowcontrol.apiserver.k8s.io/v1beta3");
/// # Ok::<(), evenkeel_api::UnknownVersion>(())
/// ```
///
/// Not `#[non_exhaustive]`: code that converts objects has to know every version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// The hub: what every other version is converted to and from.
    V1,
    /// Differs from `v1` in how a zero of the shares is told from an absent one (API-63).
    V1beta3,
    /// Calls the shares `assuredConcurrencyShares`.
    V1beta2,
    /// The same as `v1beta2`.
    V1beta1,
}

/// One of the two kinds of the group.
///
/// Not `#[non_exhaustive]`: the API has these two kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Says which requests belong together, and to which level they go.
    FlowSchema,
    /// Says how many seats a level has, and what happens when they are taken.
    PriorityLevelConfiguration,
}

/// A text that names no version of the group.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown version {0:?} of {GROUP}: use v1, v1beta3, v1beta2 or v1beta1")]
pub struct UnknownVersion(String);

/// A text that names no kind of the group.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown kind {0:?} of {GROUP}: use FlowSchema or PriorityLevelConfiguration")]
pub struct UnknownKind(String);

// === impl Version ===

impl Version {
    /// All versions, the preferred one first (API-1).
    pub const ALL: [Self; 4] = [Self::V1, Self::V1beta3, Self::V1beta2, Self::V1beta1];

    /// The version's own name: `v1`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V1beta3 => "v1beta3",
            Self::V1beta2 => "v1beta2",
            Self::V1beta1 => "v1beta1",
        }
    }

    /// The `apiVersion` of objects of this version.
    pub const fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "flowcontrol.apiserver.k8s.io/v1",
            Self::V1beta3 => "flowcontrol.apiserver.k8s.io/v1beta3",
            Self::V1beta2 => "flowcontrol.apiserver.k8s.io/v1beta2",
            Self::V1beta1 => "flowcontrol.apiserver.k8s.io/v1beta1",
        }
    }

    /// The version of an `apiVersion` text, if it is one of the group's.
    pub fn from_api_version(api_version: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.api_version() == api_version)
    }

    /// The warning that a response in this version carries (API-96), if it is a deprecated one.
    ///
    /// ```
    /// use evenkeel_api::{Kind, Version};
    ///
    /// assert_eq!(Version::V1.deprecation(Kind::FlowSchema), None);
    /// assert_eq!(
    ///     Version::V1beta3.deprecation(Kind::FlowSchema).unwrap(),
    ///     "flowcontrol.apiserver.k8s.io/v1beta3 FlowSchema is deprecated in v1.29+, unavailable in v1.32+; \
    ///      use flowcontrol.apiserver.k8s.io/v1 FlowSchema",
    /// );
    /// ```
    pub fn deprecation(self, kind: Kind) -> Option<String> {
        let (since, gone, replacement) = match self {
            Self::V1 => return None,
            Self::V1beta3 => ("v1.29", "v1.32", Self::V1),
            Self::V1beta2 => ("v1.26", "v1.29", Self::V1beta3),
            Self::V1beta1 => ("v1.23", "v1.26", Self::V1beta3),
        };
        let (old, new, kind) = (self.api_version(), replacement.api_version(), kind.name());
        Some(format!("{old} {kind} is deprecated in {since}+, unavailable in {gone}+; use {new} {kind}"))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Version {
    type Err = UnknownVersion;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|version| version.name() == name).ok_or_else(|| UnknownVersion(name.to_owned()))
    }
}

// === impl Kind ===

impl Kind {
    /// Both kinds.
    pub const ALL: [Self; 2] = [Self::FlowSchema, Self::PriorityLevelConfiguration];

    /// The `kind` of objects of this kind.
    pub const fn name(self) -> &'static str {
        match self {
            Self::FlowSchema => "FlowSchema",
            Self::PriorityLevelConfiguration => "PriorityLevelConfiguration",
        }
    }

    /// The `kind` of lists of such objects.
    pub const fn list_name(self) -> &'static str {
        match self {
            Self::FlowSchema => "FlowSchemaList",
            Self::PriorityLevelConfiguration => "PriorityLevelConfigurationList",
        }
    }

    /// The resource: the plural, lower-case name in URLs.
    pub const fn resource(self) -> &'static str {
        match self {
            Self::FlowSchema => "flowschemas",
            Self::PriorityLevelConfiguration => "prioritylevelconfigurations",
        }
    }

    /// The singular, lower-case name.
    pub const fn singular(self) -> &'static str {
        match self {
            Self::FlowSchema => "flowschema",
            Self::PriorityLevelConfiguration => "prioritylevelconfiguration",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Kind {
    type Err = UnknownKind;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| UnknownKind(name.to_owned()))
    }
}
