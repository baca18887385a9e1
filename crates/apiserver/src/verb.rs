//! `Verb`: what is done with objects.

/// The verbs: the things that requests do with objects (API-3).
///
/// Not `#[non_exhaustive]`: Kubernetes has these, and whoever handles requests has to know all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Reads one object.
    Get,
    /// Reads all objects of a resource, or those that are selected.
    List,
    /// Follows the changes of objects.
    Watch,
    /// Creates an object.
    Create,
    /// Replaces an object.
    Update,
    /// Changes a part of an object, or applies one.
    Patch,
    /// Deletes one object.
    Delete,
    /// Deletes all objects of a resource, or those that are selected.
    DeleteCollection,
}

// === impl Verb ===

impl Verb {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Get,
        Self::List,
        Self::Watch,
        Self::Create,
        Self::Update,
        Self::Patch,
        Self::Delete,
        Self::DeleteCollection,
    ];

    /// The verb of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| verb.name() == name)
    }

    /// Its name, as rules have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }

    /// The method of its requests.
    pub fn method(self) -> &'static str {
        match self {
            Self::Get | Self::List | Self::Watch => "GET",
            Self::Create => "POST",
            Self::Update => "PUT",
            Self::Patch => "PATCH",
            Self::Delete | Self::DeleteCollection => "DELETE",
        }
    }

    /// Whether it is about all objects of a resource.
    pub fn is_of_collection(self) -> bool {
        matches!(self, Self::List | Self::Watch | Self::DeleteCollection)
    }

    /// Whether it changes something, so that the body of the request matters.
    pub fn is_write(self) -> bool {
        !matches!(self, Self::Get | Self::List | Self::Watch)
    }
}
