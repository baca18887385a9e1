//! What a layer is told about the requests of its service, and what that makes of a request.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_api::Preset;
use evenkeel_engine::{Attributes, LevelInfo, RequestInfo};
use http::Response;
use http::request::Parts;

use crate::control::admit::Admit;
use crate::control::flow_control::FlowControl;
use crate::control::request::{Head, Incoming, Patience};
use crate::layer::body::FlowBody;
use crate::layer::deadline;
use crate::layer::digest::{Digest, query};
use crate::layer::digests::DigestId;
use crate::layer::identify::{Identify, without_system_names};
use crate::layer::occupancy::Occupancy;
use crate::layer::response::{self, RejectionForm};
use crate::layer::work::{HttpWork, Watch};

/// Who is calling, what is asked, how much work that is, and how long it may take.
pub(crate) struct Rules<I, D, W> {
    pub(crate) flow: FlowControl,
    pub(crate) identify: Arc<I>,
    pub(crate) digest: Arc<D>,
    pub(crate) work: Arc<W>,
    /// By which dumps find the digest.
    pub(crate) digest_id: DigestId,
    /// `None` for what the preset says.
    pub(crate) occupancy: Option<Arc<OccupancyOf>>,
    /// `None` for what requests say themselves.
    pub(crate) deadline: Option<Arc<DeadlineOf>>,
    pub(crate) rejection_form: RejectionForm,
    /// Whether the service gets a share of the permit.
    pub(crate) shares_permits: bool,
    /// Whether names may begin with `system:`.
    pub(crate) allows_system_names: bool,
}

pub(crate) type OccupancyOf = dyn Fn(&Parts, &RequestInfo<'_>) -> Occupancy + Send + Sync;
pub(crate) type DeadlineOf = dyn Fn(&Parts) -> Option<Duration> + Send + Sync;

/// What becomes of a request.
pub(crate) enum Verdict<B> {
    /// It has arrived at its level.
    Arrived { admit: Admit, occupancy: Occupancy, watch: Option<Box<Watch>> },
    /// It goes to the service at once.
    Unlimited,
    /// It does not go anywhere.
    Refused(Box<Response<FlowBody<B>>>),
}

// === impl Rules ===

impl<I: Identify, D: Digest, W: HttpWork> Rules<I, D, W> {
    pub(crate) fn judge<B>(&self, parts: &Parts) -> Verdict<B> {
        // Looked at where it is: it is large.
        let digested = self.digest.digest(parts);
        let request = match &digested {
            Ok(request) => request,
            Err(error) => return Verdict::Refused(Box::new(response::undigested(error, &parts.headers))),
        };
        let occupancy = match &self.occupancy {
            Some(occupancy) => occupancy(parts, request),
            None => match self.flow.preset() {
                Preset::Plain => Occupancy::ToTheEnd,
                Preset::Kubernetes => Occupancy::kubernetes(request),
            },
        };
        if occupancy == Occupancy::None {
            return Verdict::Unlimited;
        }
        let identified = self.identify.identify(parts);
        let user = match if self.allows_system_names { identified } else { identified.and_then(without_system_names) } {
            Ok(user) => user,
            Err(error) => return Verdict::Refused(Box::new(response::unidentified(&error, &parts.headers))),
        };
        let query = query(&parts.uri);
        // A watch has no deadline: it is meant to go on (HF-7).
        let deadline_in = if occupancy == Occupancy::ToTheEnd { self.deadline_of(parts) } else { None };
        let is_watch = occupancy == Occupancy::ToTheHeaders;
        let watches = self.work.interested_watches(request);
        let admit = self.flow.take_in(&Incoming {
            attributes: Attributes { user: &user, request },
            work: |attributes: Attributes<'_>, level: &LevelInfo| {
                self.work.estimate_http(attributes, query, level, watches)
            },
            patience: Patience { received_ago: Duration::ZERO, deadline_in },
            head: Some(Head { user: &user, method: &parts.method, uri: &parts.uri }),
            digest: self.digest_id,
            is_watch,
            watches,
        });
        let watch = if is_watch { self.work.watch(request, query).map(Box::new) } else { None };
        Verdict::Arrived { admit, occupancy, watch }
    }

    /// How much time a request has: what somebody was asked to say, or what the request itself says, unless that is as
    /// long as all requests have (HF-7).
    #[inline]
    fn deadline_of(&self, parts: &Parts) -> Option<Duration> {
        if let Some(deadline) = &self.deadline {
            return deadline(parts);
        }
        let timeout = self.digest.timeout(parts).or_else(|| deadline::of_grpc(parts))?;
        let request_timeout = self.flow.shared().wait_limit().saturating_mul(4);
        Some(timeout).filter(|timeout| !timeout.is_zero() && *timeout < request_timeout)
    }
}

impl<I, D, W> Clone for Rules<I, D, W> {
    fn clone(&self) -> Self {
        Self {
            flow: self.flow.clone(),
            identify: Arc::clone(&self.identify),
            digest: Arc::clone(&self.digest),
            work: Arc::clone(&self.work),
            digest_id: self.digest_id,
            occupancy: self.occupancy.clone(),
            deadline: self.deadline.clone(),
            rejection_form: self.rejection_form,
            shares_permits: self.shares_permits,
            allows_system_names: self.allows_system_names,
        }
    }
}

impl<I, D, W> fmt::Debug for Rules<I, D, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rules").field("rejection_form", &self.rejection_form).finish_non_exhaustive()
    }
}
