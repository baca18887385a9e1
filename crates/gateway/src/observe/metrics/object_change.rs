//! `ObjectChange`: a difference in new objects, for the dashboard.

/// An object that was not the same before.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct ObjectChange {
    /// How the object changed.
    pub edit: Edit,
    /// `level` or `flow schema`.
    pub kind: &'static str,
    /// The name of the object.
    pub name: String,
}

/// How an object changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Edit {
    /// The object is new.
    Added,
    /// The object has another specification or other annotations.
    Edited,
    /// The object is gone.
    Removed,
}

// === impl Edit ===

impl Edit {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Edited => "edited",
            Self::Removed => "removed",
        }
    }
}
