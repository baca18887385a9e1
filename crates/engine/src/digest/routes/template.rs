//! The text of a template, cut into pieces.

use std::borrow::Cow;
use std::fmt;

use super::error::TemplateFault;
use crate::RequestInfo;

/// What a segment of a path can stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Attribute {
    /// The API group, `{api_group}`.
    ApiGroup,
    /// The API version, `{api_version}`.
    ApiVersion,
    /// The namespace, or whatever separates one tenant from the other, `{namespace}`.
    Namespace,
    /// The resource, `{resource}`.
    Resource,
    /// The subresource, `{subresource}`.
    Subresource,
    /// The name of the object, `{name}`.
    Name,
}

/// One piece of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    /// This very segment.
    Literal(Box<str>),
    /// Any segment that is not empty.
    Any(Option<Attribute>),
    /// All segments that are left.
    Rest(Option<Attribute>),
}

const ATTRIBUTES: [Attribute; 6] = [
    Attribute::ApiGroup,
    Attribute::ApiVersion,
    Attribute::Namespace,
    Attribute::Resource,
    Attribute::Subresource,
    Attribute::Name,
];

// === impl Attribute ===

impl Attribute {
    /// The name that placeholders have.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ApiGroup => "api_group",
            Self::ApiVersion => "api_version",
            Self::Namespace => "namespace",
            Self::Resource => "resource",
            Self::Subresource => "subresource",
            Self::Name => "name",
        }
    }

    fn named(name: &str) -> Option<Self> {
        ATTRIBUTES.into_iter().find(|attribute| attribute.as_str() == name)
    }

    /// Where a request keeps it.
    pub(super) fn of<'r, 'a>(self, request: &'r mut RequestInfo<'a>) -> &'r mut Cow<'a, str> {
        match self {
            Self::ApiGroup => &mut request.api_group,
            Self::ApiVersion => &mut request.api_version,
            Self::Namespace => &mut request.namespace,
            Self::Resource => &mut request.resource,
            Self::Subresource => &mut request.subresource,
            Self::Name => &mut request.name,
        }
    }
}

impl fmt::Display for Attribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

// === impl Piece ===

impl Piece {
    pub(super) fn parse(segment: &str) -> Result<Self, TemplateFault> {
        if segment.is_empty() {
            return Err(TemplateFault::EmptySegment);
        }
        if !segment.contains(['{', '}']) {
            return Ok(Self::Literal(segment.into()));
        }
        let inner = segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        let inner = inner.filter(|inner| !inner.contains(['{', '}'])).ok_or(TemplateFault::Brace)?;
        let named = |name| Attribute::named(name).map(Some).ok_or(TemplateFault::UnknownPlaceholder);
        match (inner, inner.strip_suffix("...")) {
            ("_", _) => Ok(Self::Any(None)),
            ("*", _) => Ok(Self::Rest(None)),
            (_, Some(name)) => Ok(Self::Rest(named(name)?)),
            (name, None) => Ok(Self::Any(named(name)?)),
        }
    }

    /// What the piece gives a value to.
    pub(super) fn attribute(&self) -> Option<Attribute> {
        match self {
            Self::Literal(_) => None,
            Self::Any(attribute) | Self::Rest(attribute) => *attribute,
        }
    }
}
