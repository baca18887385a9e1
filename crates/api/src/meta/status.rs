//! `Status`: how a request ended, as the body of a response that has no object to show (API-98).

use std::borrow::Cow;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// How a request ended. It is written with `kind` and `apiVersion`, and without what is empty.
///
/// ```
/// use evenkeel_api::meta::Status;
///
/// let status = Status { message: Some("no such path"), reason: Some("NotFound"), code: Some(404), ..Status::default() };
/// assert_eq!(
///     serde_json::to_string(&status)?,
///     r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"no such path","reason":"NotFound","code":404}"#,
/// );
/// # Ok::<(), serde_json::Error>(())
/// ```
///
/// Not `#[non_exhaustive]`, so that literals can end with `..Default::default()`. End them so: releases add fields.
#[derive(Debug, Clone, Copy, Default)]
pub struct Status<'a> {
    /// Where an expired list can go on (API-153).
    pub continue_token: Option<&'a str>,
    /// Whether the request succeeded.
    pub outcome: Outcome,
    /// What is wrong, for people.
    pub message: Option<&'a str>,
    /// What sort of problem it is, for programs.
    pub reason: Option<&'a str>,
    /// What the request was about.
    pub details: Option<&'a StatusDetails>,
    /// The status code of the response.
    pub code: Option<u16>,
}

/// Whether a request succeeded.
///
/// Not `#[non_exhaustive]`: it is what Kubernetes sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub enum Outcome {
    /// It did.
    Success,
    /// It did not.
    #[default]
    Failure,
}

/// What a request was about. Everything that is empty is left out.
///
/// Not `#[non_exhaustive]`, so that literals can end with `..Default::default()`. End them so: releases add fields.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusDetails {
    /// The name of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The API group.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub group: Cow<'static, str>,
    /// The kind, or the resource.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub kind: Cow<'static, str>,
    /// The identity of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// The problems, one by one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<StatusCause>,
    /// After how many seconds the request may be sent again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_seconds: Option<u64>,
}

/// One problem of several.
///
/// Not `#[non_exhaustive]`, so that literals can end with `..Default::default()`. End them so: releases add fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StatusCause {
    /// What sort of problem it is, for programs.
    pub reason: &'static str,
    /// What is wrong, for people.
    pub message: String,
    /// The field that has the problem.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
}

// === impl Status ===

impl Serialize for Status<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct ListMeta<'a> {
            #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
            continue_token: Option<&'a str>,
        }
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", "Status")?;
        map.serialize_entry("apiVersion", "v1")?;
        map.serialize_entry("metadata", &ListMeta { continue_token: self.continue_token })?;
        map.serialize_entry("status", &self.outcome)?;
        if let Some(message) = self.message {
            map.serialize_entry("message", message)?;
        }
        if let Some(reason) = self.reason {
            map.serialize_entry("reason", reason)?;
        }
        if let Some(details) = self.details {
            map.serialize_entry("details", details)?;
        }
        if let Some(code) = self.code {
            map.serialize_entry("code", &code)?;
        }
        map.end()
    }
}
