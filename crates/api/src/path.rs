//! Where in an object something is: `spec.rules[0].subjects`.

use std::fmt;

/// A place in an object. It lives on the stack while the object is walked, and is written out only for a report.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Path<'a> {
    /// The object itself.
    Root,
    /// A member of the object at another place.
    Member(&'a Path<'a>, &'a str),
    /// An element of the list at another place.
    Element(&'a Path<'a>, usize),
}

// === impl Path ===

impl<'a> Path<'a> {
    /// The member of that name.
    pub(crate) fn member(&'a self, name: &'a str) -> Self {
        Self::Member(self, name)
    }

    /// The element of that index.
    pub(crate) fn element(&'a self, index: usize) -> Self {
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
    fn a_path_is_written_as_api_82_writes_it() {
        let (root, index) = (Path::Root, 2);
        let (spec, rules) = (root.member("spec"), "rules");
        let (rules, subjects) = (spec.member(rules), "subjects");
        assert_eq!(rules.element(index).member(subjects).to_string(), "spec.rules[2].subjects");
        assert_eq!(rules.element(index).member(subjects).names(), "spec.rules.subjects");
    }
}
