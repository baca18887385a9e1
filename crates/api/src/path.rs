//! Where in an object something is: `spec.rules[0].subjects`.

use std::fmt;

/// A place in an object: `spec.rules[3].subjects`.
///
/// A path is a chain through the stack. Walking down an object allocates nothing; only a report writes the path out.
///
/// ```
/// use evenkeel_api::Path;
///
/// let spec = Path::new("spec");
/// assert_eq!(spec.child("rules").index(3).child("subjects").to_string(), "spec.rules[3].subjects");
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Path<'a> {
    /// The object itself.
    Root,
    /// A member of what is at another place.
    Member(&'a Path<'a>, &'a str),
    /// An element of the list at another place.
    Element(&'a Path<'a>, usize),
}

// === impl Path ===

impl<'a> Path<'a> {
    /// The path of a member of the object itself.
    pub const fn new(name: &'a str) -> Self {
        Self::Member(&Path::Root, name)
    }

    /// The path of a member of what is here.
    #[must_use]
    pub const fn child(&'a self, name: &'a str) -> Self {
        Self::Member(self, name)
    }

    /// The path of an element of the list that is here.
    #[must_use]
    pub const fn index(&'a self, index: usize) -> Self {
        Self::Element(self, index)
    }

    /// The same path with the indexes left out: `spec.rules.subjects`.
    pub(crate) fn names(&self) -> String {
        match self {
            Self::Root => String::new(),
            Self::Member(Path::Root, name) => (*name).to_owned(),
            Self::Member(parent, name) => format!("{}.{name}", parent.names()),
            Self::Element(parent, _) => parent.names(),
        }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Member(Path::Root, name) => f.write_str(name),
            Self::Member(parent, name) => write!(f, "{parent}.{name}"),
            Self::Element(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_can_be_left_out() {
        let spec = Path::new("spec");
        assert_eq!(spec.child("rules").index(2).child("subjects").names(), "spec.rules.subjects");
        assert_eq!(Path::Root.to_string(), "");
    }
}
