//! Why a label selector is malformed, in the words of the reference server (API-147).

/// Why a label selector is malformed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LabelSelectorError {
    /// The selector begins with something else than a requirement.
    #[error("found '{found}', expected: !, identifier, or 'end of string'")]
    Beginning {
        /// The token, empty at the end.
        found: String,
    },
    /// No requirement follows a comma.
    #[error("found '{found}', expected: identifier after ','")]
    AfterComma {
        /// The token, empty at the end.
        found: String,
    },
    /// A requirement is followed by something else than a comma.
    #[error("found '{found}', expected: ',' or 'end of string'")]
    AfterRequirement {
        /// The token, empty at the end.
        found: String,
    },
    /// A requirement is malformed.
    #[error("unable to parse requirement: {0}")]
    Requirement(#[from] RequirementError),
}

/// Why one requirement of a label selector is malformed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequirementError {
    /// Something else stands where one of a few tokens has to be.
    #[error("found '{found}', expected: {expected}")]
    Expected {
        /// The token, empty at the end.
        found: String,
        /// What has to be there.
        expected: &'static str,
    },
    /// `in` or `notin` without a list.
    #[error("found '{found}' expected: '('")]
    NoList {
        /// The token, empty at the end.
        found: String,
    },
    /// The key is no qualified name.
    #[error("<nil>: Invalid value: {key}: {fault}")]
    Key {
        /// The key, in quotes.
        key: String,
        /// What is wrong with it.
        fault: String,
    },
    /// Values are no label values or no integers.
    #[error("{0}")]
    Values(String),
}
