//! What recorded requests ask for, and how they hold seats.

use std::borrow::Cow;

use evenkeel::service::Occupancy;
use evenkeel_api::Preset;
use evenkeel_engine::RequestInfo;
use evenkeel_engine::digest::{DigestError, Kubernetes, PlainPaths};

use crate::record::{Action, Record};

/// Interprets requests as a kube-apiserver or a gateway does.
#[derive(Debug)]
pub(crate) enum Interpreter {
    Kubernetes(Kubernetes),
    Plain,
}

// === impl Interpreter ===

impl Interpreter {
    pub(crate) fn new(preset: Preset) -> Self {
        match preset {
            Preset::Kubernetes => Self::Kubernetes(Kubernetes::default()),
            Preset::Plain => Self::Plain,
        }
    }

    /// What a request asks for.
    pub(crate) fn interpret<'r>(&self, record: &'r Record<'_>) -> Result<RequestInfo<'r>, DigestError> {
        let method = match &record.action {
            Action::Verb(verb) => method_of(verb),
            Action::Method(method) => Cow::Borrowed(&**method),
        };
        let mut info = match self {
            Self::Kubernetes(kubernetes) => kubernetes.digest(&method, &record.target)?,
            Self::Plain => PlainPaths.digest_normal(&method, &record.target)?,
        };
        if let Action::Verb(verb) = &record.action {
            info.verb = Cow::Borrowed(verb);
        }
        Ok(info)
    }

    /// How long a request holds its seats.
    pub(crate) fn occupancy(&self, request: &RequestInfo<'_>) -> Occupancy {
        match self {
            Self::Kubernetes(_) => Occupancy::kubernetes(request),
            Self::Plain => Occupancy::ToTheEnd,
        }
    }
}

/// A method that the verb may have come from.
fn method_of(verb: &str) -> Cow<'static, str> {
    Cow::Borrowed(match verb {
        "get" | "list" | "watch" => "GET",
        "create" | "post" => "POST",
        "update" | "put" => "PUT",
        "patch" => "PATCH",
        "delete" | "deletecollection" => "DELETE",
        "head" => "HEAD",
        "options" => "OPTIONS",
        other => return Cow::Owned(other.to_uppercase()),
    })
}
