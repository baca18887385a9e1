//! `Failure`: why a request is refused, as the `Status` object that clients know (API-98 to API-114).

use std::fmt;

use evenkeel_api::validate::FieldErrors;
use evenkeel_api::{GROUP, Kind};
use http::StatusCode;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

/// Why a request is refused. Written out, it is a `Status` object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The status of the answer.
    pub status: StatusCode,
    /// What sort of problem it is, for programs. Plain errors have none (API-112).
    pub reason: Option<&'static str>,
    /// What is wrong, for people.
    pub message: String,
    /// What the request was about.
    pub details: Option<Box<Details>>,
    /// Where an expired list can go on (API-153).
    pub continue_token: Option<String>,
}

/// What a failed request was about. Everything that is empty is left out.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Details {
    /// The name of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The API group.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub group: &'static str,
    /// The kind, or the resource.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub kind: &'static str,
    /// The identity of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// The problems, one by one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    /// After how many seconds the request may be tried again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_seconds: Option<u32>,
}

/// One problem of several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// What sort of problem it is, for programs.
    pub reason: &'static str,
    /// What is wrong, for people.
    pub message: String,
    /// The field that has the problem.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
}

/// The group of the objects that hold the options of requests.
pub(crate) const META_GROUP: &str = "meta.k8s.io";

// === impl Failure ===

impl Failure {
    fn new(status: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self { status, reason: Some(reason), message: message.into(), details: None, continue_token: None }
    }

    fn about(mut self, details: Details) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    /// 400: the request makes no sense.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    /// 500 without a reason (API-112).
    pub fn plain(message: impl Into<String>) -> Self {
        Self { reason: None, ..Self::new(StatusCode::INTERNAL_SERVER_ERROR, "", message) }
    }

    /// 409: the object is not what the request takes it for (API-103, API-104).
    pub fn conflict(kind: Kind, name: &str, why: impl fmt::Display) -> Self {
        let resource = kind.resource();
        let message = format!("Operation cannot be fulfilled on {resource}.{GROUP} \"{name}\": {why}");
        Self::new(StatusCode::CONFLICT, "Conflict", message).about(Details::of(kind.resource(), name))
    }

    /// 409: somebody else owns fields that an apply wants to change (API-129).
    pub fn apply_conflict(message: String, causes: Vec<Cause>) -> Self {
        Self::new(StatusCode::CONFLICT, "Conflict", message).about(Details { causes, ..Details::default() })
    }

    /// 422: the object is not valid (API-111).
    pub fn invalid(kind: Kind, name: &str, errors: &FieldErrors) -> Self {
        Self::invalid_in(GROUP, kind.name(), name, errors)
    }

    /// 422: the parameters of the request are not valid (API-111); `options` is the kind that holds them, for example
    /// `PatchOptions`.
    pub fn invalid_options(options: &'static str, errors: &FieldErrors) -> Self {
        Self::invalid_in(META_GROUP, options, "", errors)
    }

    /// 422: the patched object is not valid (API-83, API-116).
    pub fn invalid_patch(errors: &FieldErrors) -> Self {
        let message = format!(" \"\" is invalid: {errors}");
        let causes = causes(errors);
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message).about(Details { causes, ..Details::default() })
    }

    /// 422: a JSON patch could not be applied (API-118).
    pub fn rejected_patch() -> Self {
        let message = "the server rejected our request due to an error in our request";
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message).about(Details::default())
    }

    /// 413: the body is too large, in bytes or in what it asks for (API-108).
    pub fn too_large(limit: impl fmt::Display) -> Self {
        let message = format!("Request entity too large: {limit}");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message)
    }

    /// 400 unless the name of the object in a body is that of the URL (API-105).
    pub fn check_name(found: &str, url: &str) -> Result<(), Self> {
        if found == url {
            return Ok(());
        }
        Err(Self::bad_request(if found.is_empty() {
            format!("the name of the object ({url} based on URL) was undeterminable: name must be provided")
        } else {
            format!("the name of the object ({found}) does not match the name on the URL ({url})")
        }))
    }

    fn invalid_in(group: &'static str, kind: &'static str, name: &str, errors: &FieldErrors) -> Self {
        let message = format!("{kind}.{group} \"{name}\" is invalid: {errors}");
        let details = Details { name: name.to_owned(), group, kind, causes: causes(errors), ..Details::default() };
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message).about(details)
    }
}

fn causes(errors: &FieldErrors) -> Vec<Cause> {
    let cause = |error: &evenkeel_api::validate::FieldError| Cause {
        reason: error.reason().as_str(),
        message: error.message().to_owned(),
        field: error.field().to_owned(),
    };
    errors.iter().map(cause).collect()
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl Serialize for Failure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct ListMeta<'a> {
            #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
            continue_token: Option<&'a str>,
        }
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", "Status")?;
        map.serialize_entry("apiVersion", "v1")?;
        map.serialize_entry("metadata", &ListMeta { continue_token: self.continue_token.as_deref() })?;
        map.serialize_entry("status", "Failure")?;
        map.serialize_entry("message", &self.message)?;
        if let Some(reason) = self.reason {
            map.serialize_entry("reason", reason)?;
        }
        if let Some(details) = &self.details {
            map.serialize_entry("details", details)?;
        }
        map.serialize_entry("code", &self.status.as_u16())?;
        map.end()
    }
}

// === impl Details ===

impl Details {
    /// An object of the group.
    pub fn of(kind: &'static str, name: &str) -> Self {
        Self { name: name.to_owned(), group: GROUP, kind, ..Self::default() }
    }
}
