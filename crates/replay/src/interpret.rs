//! `Interpreter`: finds out what recorded requests ask for, and how they hold seats.

use std::borrow::Cow;
use std::sync::Arc;

use evenkeel::service::Occupancy;
use evenkeel_api::Preset;
use evenkeel_engine::digest::{DigestError, Kubernetes, PlainPaths};
use evenkeel_engine::time::Nanos;
use evenkeel_engine::{RequestInfo, WorkEstimate};

use crate::record::{Action, Record};
use crate::routes::{RoutedRequest, Routes};

/// Interprets requests as a kube-apiserver or a gateway does.
#[derive(Debug)]
pub(crate) struct Interpreter {
    digest: Digest,
    routes: Option<Arc<dyn Routes>>,
}

#[derive(Debug)]
enum Digest {
    Kubernetes(Kubernetes),
    Plain,
}

/// A recorded request as it was interpreted, with the cost that its route gives it.
#[derive(Debug)]
pub(crate) struct Interpreted<'r> {
    pub(crate) info: RequestInfo<'r>,
    pub(crate) occupancy: Occupancy,
    /// The seats that the route says.
    pub(crate) work: Option<WorkEstimate>,
    /// How long the request waits at most, if its route says that.
    pub(crate) wait_limit: Option<Nanos>,
    /// The number of its route, if it is known by one.
    pub(crate) route: Option<u64>,
}

// === impl Interpreter ===

impl Interpreter {
    pub(crate) fn new(preset: Preset, routes: Option<Arc<dyn Routes>>) -> Self {
        let digest = match preset {
            Preset::Kubernetes => Digest::Kubernetes(Kubernetes::default()),
            Preset::Plain | Preset::Llm => Digest::Plain,
        };
        Self { digest, routes }
    }

    /// Whether seats are estimated as a kube-apiserver does.
    pub(crate) fn is_kubernetes(&self) -> bool {
        matches!(self.digest, Digest::Kubernetes(_))
    }

    /// Whether the settings say how many seats requests take.
    pub(crate) fn knows_seats(&self) -> bool {
        self.is_kubernetes() || self.routes.is_some()
    }

    /// Interprets a request.
    pub(crate) fn interpret<'r>(&self, record: &'r Record<'_>) -> Result<Interpreted<'r>, DigestError> {
        let method = match &record.action {
            Action::Verb(verb) => method_of(verb),
            Action::Method(method) => Cow::Borrowed(&**method),
        };
        if let Some(found) = self.routes.as_ref().and_then(|routes| routes.find(&method, &record.target)) {
            let RoutedRequest { info, work, occupancy, wait_limit, route } = found;
            return Ok(Interpreted { info, occupancy, work: Some(work), wait_limit, route });
        }
        let mut info = match &self.digest {
            Digest::Kubernetes(kubernetes) => kubernetes.digest(&method, &record.target)?,
            Digest::Plain => PlainPaths.digest_normal(&method, &record.target)?,
        };
        if let Action::Verb(verb) = &record.action {
            info.verb = Cow::Borrowed(verb);
        }
        let occupancy = if self.is_kubernetes() { Occupancy::kubernetes(&info) } else { Occupancy::ToTheEnd };
        Ok(Interpreted { info, occupancy, work: None, wait_limit: None, route: None })
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
