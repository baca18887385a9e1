//! `Failure`: why a request is rejected, as the `Status` object that clients know (API-98 to API-114).

use std::fmt;

use evenkeel_api::meta::{Outcome, Status, StatusCause, StatusDetails};
use evenkeel_api::validate::FieldErrors;
use evenkeel_api::{GROUP, Kind};
use http::StatusCode;
use serde::{Serialize, Serializer};

/// Why a request is rejected. Written out, it is a `Status` object.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// The status of the response.
    pub status: StatusCode,
    /// The sort of problem, for programs. Plain errors have none (API-112).
    pub reason: Option<&'static str>,
    /// The message, for people.
    pub message: String,
    /// The object or path that the request was about.
    pub details: Option<Box<StatusDetails>>,
    /// Where an expired list can go on (API-153).
    pub continue_token: Option<String>,
}

/// The group of the objects that hold the options of requests.
pub(crate) const META_GROUP: &str = "meta.k8s.io";

// === impl Failure ===

impl Failure {
    fn new(status: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self { status, reason: Some(reason), message: message.into(), details: None, continue_token: None }
    }

    fn about(mut self, details: StatusDetails) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    /// 400: the request is malformed.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    /// 500 without a reason (API-112).
    pub fn plain(message: impl Into<String>) -> Self {
        Self { reason: None, ..Self::new(StatusCode::INTERNAL_SERVER_ERROR, "", message) }
    }

    /// 500: the server cannot do what it should be able to do.
    pub fn internal(message: impl fmt::Display) -> Self {
        let message = format!("Internal error occurred: {message}");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message)
    }

    /// 401: the request is not authenticated (API-190).
    pub fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized")
    }

    /// 403: the user may not do this (API-191).
    pub fn forbidden(message: String, details: StatusDetails) -> Self {
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message).about(details)
    }

    /// 403: the object is valid, but the server does not take it, as with a quota.
    pub fn not_admitted(kind: Kind, name: &str, why: impl fmt::Display) -> Self {
        let resource = kind.resource();
        let message = format!("{resource}.{GROUP} \"{name}\" is forbidden: {why}");
        Self::forbidden(message, details_of(resource, name))
    }

    /// 404: there is no such object (API-99).
    pub fn not_found(kind: Kind, name: &str) -> Self {
        let resource = kind.resource();
        let message = format!("{resource}.{GROUP} \"{name}\" not found");
        Self::new(StatusCode::NOT_FOUND, "NotFound", message).about(details_of(resource, name))
    }

    /// 404: there is no such resource (API-100).
    pub fn no_resource() -> Self {
        let message = "the server could not find the requested resource";
        Self::new(StatusCode::NOT_FOUND, "NotFound", message).about(StatusDetails::default())
    }

    /// 405: the resource has no such method (API-101).
    pub fn no_method() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message).about(StatusDetails::default())
    }

    /// 409: the name is taken (API-102).
    pub fn already_exists(kind: Kind, name: &str) -> Self {
        let resource = kind.resource();
        let message = format!("{resource}.{GROUP} \"{name}\" already exists");
        Self::new(StatusCode::CONFLICT, "AlreadyExists", message).about(details_of(resource, name))
    }

    /// 409: the object's version is not the one in the request (API-103).
    pub fn modified(kind: Kind, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(kind, name, why)
    }

    /// 409: the object does not meet the preconditions of a deletion (API-71). Its details name the kind, and not the
    /// resource.
    pub fn precondition(kind: Kind, name: &str, why: impl fmt::Display) -> Self {
        let message = format!("Operation cannot be fulfilled on {}.{GROUP} \"{name}\": {why}", kind.name());
        Self::new(StatusCode::CONFLICT, "Conflict", message).about(details_of(kind.name(), name))
    }

    /// 410: the state is no longer known (API-153, API-168).
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, "Expired", message)
    }

    /// 429: there are too many of something already.
    pub fn too_many(message: impl Into<String>) -> Self {
        let details = StatusDetails { retry_after_seconds: Some(1), ..StatusDetails::default() };
        Self::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message).about(details)
    }

    /// 503: the store is unavailable.
    pub fn unavailable(message: impl Into<String>) -> Self {
        let details = StatusDetails { retry_after_seconds: Some(1), ..StatusDetails::default() };
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message).about(details)
    }

    /// 503: a write was sent to the store, and its outcome is unknown. The client is not asked to retry: that may
    /// do it twice.
    pub fn unknown_outcome(problem: impl fmt::Display) -> Self {
        let message = format!("it is unknown whether the write took place: {problem}");
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message).about(StatusDetails::default())
    }

    /// 504: the requested revision has not been reached (API-114).
    pub fn too_large_revision(asked: u64, current: u64) -> Self {
        let cause = StatusCause {
            reason: "ResourceVersionTooLarge",
            message: "Too large resource version".to_owned(),
            field: String::new(),
        };
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
        let details = StatusDetails { causes: vec![cause], retry_after_seconds: Some(1), ..StatusDetails::default() };
        Self::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message).about(details)
    }

    /// 504: the request exceeded its timeout.
    pub fn timed_out() -> Self {
        let message = "Timeout: request did not complete within the allotted timeout";
        Self::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message).about(StatusDetails::default())
    }

    /// 409: the stored object is not the one that the request expects (API-103, API-104).
    pub fn conflict(kind: Kind, name: &str, why: impl fmt::Display) -> Self {
        let resource = kind.resource();
        let message = format!("Operation cannot be fulfilled on {resource}.{GROUP} \"{name}\": {why}");
        Self::new(StatusCode::CONFLICT, "Conflict", message).about(details_of(kind.resource(), name))
    }

    /// 409: another manager owns fields that an apply wants to change (API-129).
    pub fn apply_conflict(message: String, causes: Vec<StatusCause>) -> Self {
        Self::new(StatusCode::CONFLICT, "Conflict", message).about(StatusDetails { causes, ..StatusDetails::default() })
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

    /// 422: a review of that group is not valid. Such responses name no kind.
    pub(crate) fn invalid_review(group: &'static str, errors: &FieldErrors) -> Self {
        Self::invalid_in(group, "", "", errors)
    }

    /// 422: the patched object is not valid (API-83, API-116).
    pub fn invalid_patch(errors: &FieldErrors) -> Self {
        let message = format!(" \"\" is invalid: {errors}");
        let causes = causes(errors);
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message)
            .about(StatusDetails { causes, ..StatusDetails::default() })
    }

    /// 422: a JSON patch could not be applied (API-118).
    pub fn rejected_patch() -> Self {
        let message = "the server rejected our request due to an error in our request";
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message).about(StatusDetails::default())
    }

    /// 413: the body is too large, in bytes or in what it asks for (API-108).
    pub fn too_large(limit: impl fmt::Display) -> Self {
        let message = format!("Request entity too large: {limit}");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message)
    }

    /// 406: the server has no media type that the client accepts (API-110).
    pub fn not_acceptable(available: &str) -> Self {
        let message = format!("406: Not Acceptable\n\nAvailable representations: {available}");
        Self::wrong_shape(message).about(StatusDetails::default())
    }

    /// 406: no shape that the client accepts can be given (API-110, API-171).
    pub fn only_accepted(accepted: &str) -> Self {
        Self::wrong_shape(format!("only the following media types are accepted: {accepted}"))
    }

    /// 406: the shape that was asked for does not fit (API-178).
    pub fn wrong_shape(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message)
    }

    /// 415: the body is written in something else (API-109).
    pub fn unknown_body_type(spoken: &str) -> Self {
        let message =
            format!("the body of the request was in an unknown format - accepted media types include: {spoken}");
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message)
    }

    /// 415: there is no such type of patch (API-89).
    pub fn unknown_patch_type() -> Self {
        let message = "415: Unsupported Media Type";
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message).about(StatusDetails::default())
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
        let details = StatusDetails {
            name: name.to_owned(),
            group: group.into(),
            kind: kind.into(),
            causes: causes(errors),
            ..StatusDetails::default()
        };
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message).about(details)
    }
}

fn causes(errors: &FieldErrors) -> Vec<StatusCause> {
    let cause = |error: &evenkeel_api::validate::FieldError| StatusCause {
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
        let status = Status {
            continue_token: self.continue_token.as_deref(),
            outcome: Outcome::Failure,
            message: Some(&self.message),
            reason: self.reason,
            details: self.details.as_deref(),
            code: Some(self.status.as_u16()),
        };
        status.serialize(serializer)
    }
}

/// The details of an object of the group.
fn details_of(kind: &'static str, name: &str) -> StatusDetails {
    StatusDetails { name: name.to_owned(), group: GROUP.into(), kind: kind.into(), ..StatusDetails::default() }
}
