//! `FieldValidation`: what is made of unknown fields and duplicate keys (API-81).

/// The treatment of fields that a type does not have, and of keys that occur twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum FieldValidation {
    /// Unknown fields are dropped.
    Ignore,
    /// Unknown fields are dropped, with a warning to the client.
    #[default]
    Warn,
    /// The request is refused.
    Strict,
}
