//! The findings of validation: one problem of one field, and the list of all problems.

use std::{error, fmt, slice, vec};

use super::Value;
use crate::Path;
use crate::schema::Choice;

/// A problem of one field.
///
/// Written out it is `PATH: MESSAGE` (API-111). The functions that make one follow the table of API-28.
///
/// ```
/// use evenkeel_api::Path;
/// use evenkeel_api::validate::{FieldError, Value};
///
/// let path = Path::new("spec");
/// let error = FieldError::invalid(path.child("matchingPrecedence"), &Value::json(&0), "must be a positive value");
/// assert_eq!(error.field(), "spec.matchingPrecedence");
/// assert_eq!(error.reason().as_str(), "FieldValueInvalid");
/// assert_eq!(error.message(), "Invalid value: 0: must be a positive value");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    field: String,
    reason: Reason,
    message: String,
}

/// All problems of an object, in order, and at least one.
///
/// Written out it is what stands after `is invalid: ` in the response (API-111).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldErrors(Vec<FieldError>);

/// The sort of problem that a field has (API-28).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// Something must be there, and is not.
    Required,
    /// The value breaks a rule.
    Invalid,
    /// The value is not one of those that are known.
    NotSupported,
    /// Nothing may be there, and something is.
    Forbidden,
    /// The value must be unique, and is not.
    Duplicate,
    /// The value takes too many bytes.
    TooLong,
}

// === impl FieldError ===

impl FieldError {
    /// Something must be there, and is not. An empty `detail` is left out.
    pub fn required(field: impl fmt::Display, detail: &str) -> Self {
        Self::new(field, Reason::Required, with_detail("Required value", detail))
    }

    /// The value breaks a rule.
    pub fn invalid(field: impl fmt::Display, value: &Value, detail: impl fmt::Display) -> Self {
        Self::new(field, Reason::Invalid, format!("Invalid value: {value}: {detail}"))
    }

    /// The value is not one of the `supported` ones, which are listed in the order given.
    pub fn not_supported(field: impl fmt::Display, value: &Value, supported: &[&str]) -> Self {
        let supported: Vec<_> = supported.iter().map(|text| Value::text(text).to_string()).collect();
        let message = format!("Unsupported value: {value}: supported values: {}", supported.join(", "));
        Self::new(field, Reason::NotSupported, message)
    }

    /// The value is none of those that a choice has; these are listed by name.
    pub(super) fn no_choice(field: impl fmt::Display, value: &Value, choice: &Choice) -> Self {
        let mut supported: Vec<_> = choice.values.iter().map(|(value, _)| *value).collect();
        supported.sort_unstable();
        Self::not_supported(field, value, &supported)
    }

    /// Nothing may be there, and something is. An empty `detail` is left out.
    pub fn forbidden(field: impl fmt::Display, detail: &str) -> Self {
        Self::new(field, Reason::Forbidden, with_detail("Forbidden", detail))
    }

    /// The value must be unique, and is not.
    pub fn duplicate(field: impl fmt::Display, value: &Value) -> Self {
        Self::new(field, Reason::Duplicate, format!("Duplicate value: {value}"))
    }

    /// The value takes more than `bytes_max` bytes.
    pub fn too_long(field: impl fmt::Display, bytes_max: usize) -> Self {
        Self::new(field, Reason::TooLong, format!("Too long: may not be more than {bytes_max} bytes"))
    }

    fn new(field: impl fmt::Display, reason: Reason, message: String) -> Self {
        Self { field: field.to_string(), reason, message }
    }

    /// The same error of an object that is part of something larger, at that place.
    pub(super) fn below(mut self, place: &Path<'_>) -> Self {
        self.field = format!("{place}.{}", self.field);
        self
    }

    /// The path of the field: `spec.rules[0].subjects`.
    pub fn field(&self) -> &str {
        &self.field
    }

    /// The sort of problem.
    pub fn reason(&self) -> Reason {
        self.reason
    }

    /// The problem in words.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

impl error::Error for FieldError {}

fn with_detail(what: &str, detail: &str) -> String {
    if detail.is_empty() { what.to_owned() } else { format!("{what}: {detail}") }
}

// === impl FieldErrors ===

impl FieldErrors {
    /// Fine if there are no errors, and all of them otherwise.
    pub fn none_in(errors: Vec<FieldError>) -> Result<(), Self> {
        if errors.is_empty() { Ok(()) } else { Err(Self(errors)) }
    }

    /// The problems, in the order of API-29.
    pub fn iter(&self) -> slice::Iter<'_, FieldError> {
        self.0.iter()
    }
}

impl From<FieldError> for FieldErrors {
    fn from(error: FieldError) -> Self {
        Self(vec![error])
    }
}

impl IntoIterator for FieldErrors {
    type Item = FieldError;
    type IntoIter = vec::IntoIter<FieldError>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a FieldErrors {
    type Item = &'a FieldError;
    type IntoIter = slice::Iter<'a, FieldError>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for FieldErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [error] = self.0.as_slice() {
            return error.fmt(f);
        }
        for (index, error) in self.iter().enumerate() {
            f.write_str(if index == 0 { "[" } else { ", " })?;
            error.fmt(f)?;
        }
        f.write_str("]")
    }
}

impl error::Error for FieldErrors {}

// === impl Reason ===

impl Reason {
    /// The reason as a cause in a response has it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::Duplicate => "FieldValueDuplicate",
            Self::TooLong => "FieldValueTooLong",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
