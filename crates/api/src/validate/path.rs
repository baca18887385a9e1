//! Field paths: where in an object a problem is.

use std::fmt;

/// The place of a field inside an object: `spec.rules[3].subjects`.
///
/// A path is a chain through the stack. Walking down an object allocates nothing; only a problem writes the path out.
///
/// ```
/// use evenkeel_api::validate::Path;
///
/// let spec = Path::new("spec");
/// assert_eq!(spec.child("rules").index(3).child("subjects").to_string(), "spec.rules[3].subjects");
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step,
}

/// The last step of a path.
#[derive(Debug, Clone, Copy)]
enum Step {
    Field(&'static str),
    Index(usize),
}

// === impl Path ===

impl Path<'static> {
    /// The path of a member of the object itself.
    pub const fn new(field: &'static str) -> Self {
        Self { parent: None, step: Step::Field(field) }
    }
}

impl Path<'_> {
    /// The path of a member of what is here.
    pub const fn child(&self, field: &'static str) -> Path<'_> {
        Path { parent: Some(self), step: Step::Field(field) }
    }

    /// The path of an element of the list that is here.
    pub const fn index(&self, index: usize) -> Path<'_> {
        Path { parent: Some(self), step: Step::Index(index) }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
        }
        match (self.step, self.parent) {
            (Step::Field(name), None) => f.write_str(name),
            (Step::Field(name), Some(_)) => write!(f, ".{name}"),
            (Step::Index(index), _) => write!(f, "[{index}]"),
        }
    }
}
