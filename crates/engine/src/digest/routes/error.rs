//! Errors in routes.

use std::fmt;

use super::Attribute;

/// Everything that is wrong with the routes of a table, one line each.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub struct RouteErrors(pub Vec<RouteError>);

/// An error in a route.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RouteError {
    /// The route makes no sense as a whole.
    #[error("route {template:?}: {fault}")]
    Route {
        /// The template.
        template: Box<str>,
        /// What is wrong.
        fault: TemplateFault,
    },
    /// A segment of the template makes no sense.
    #[error("route {template:?}, segment {position} {text:?}: {fault}")]
    Segment {
        /// The template.
        template: Box<str>,
        /// Which segment, counted from 1.
        position: usize,
        /// The segment.
        text: Box<str>,
        /// What is wrong.
        fault: TemplateFault,
    },
    /// Two routes match the same requests, and neither is more specific than the other.
    #[error("routes {first:?} and {second:?} match the same requests")]
    Ambiguous {
        /// The template that was given first.
        first: Box<str>,
        /// The other one.
        second: Box<str>,
    },
}

/// A fault in a template or in one of its segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateFault {
    /// The path does not start with a slash.
    #[error("a template starts with a slash")]
    NoSlash,
    /// Two slashes in a row.
    #[error("a segment is empty")]
    EmptySegment,
    /// A brace that does not belong to a placeholder.
    #[error("a placeholder is a whole segment in braces")]
    Brace,
    /// A placeholder of another name.
    #[error("no such placeholder, use one of api_group, api_version, namespace, resource, subresource, name, _ and *")]
    UnknownPlaceholder,
    /// The rest of the path is followed by something.
    #[error("the rest of the path can only be the last segment")]
    RestNotLast,
    /// Two values for one attribute.
    #[error("{0} has a value already")]
    Repeated(Attribute),
    /// A value beside the template and a placeholder in it.
    #[error("{0} is fixed and has a placeholder as well")]
    FixedTwice(Attribute),
    /// Nothing says which resource the request is about.
    #[error("the resource is neither fixed nor has a placeholder")]
    NoResource,
}

// === impl RouteErrors ===

impl fmt::Display for RouteErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}
