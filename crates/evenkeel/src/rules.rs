//! What a layer is told about the requests of its service, and what that makes of a request.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_engine::digest::Query;
use evenkeel_engine::{Attributes, LevelInfo, RequestInfo};
use http::Response;
use http::request::Parts;

use crate::admit::Admit;
use crate::body::FlowBody;
use crate::digest::{Digest, target};
use crate::flow_control::FlowControl;
use crate::identify::Identify;
use crate::occupancy::Occupancy;
use crate::request::{Details, Patience, Request};
use crate::response::{self, RejectionForm};
use crate::work::{HttpWork, Watch};

/// Who is calling, what is asked, how much work that is, and how long it may take.
pub(crate) struct Rules<I, D, W> {
    pub(crate) flow: FlowControl,
    pub(crate) identify: Arc<I>,
    pub(crate) digest: Arc<D>,
    pub(crate) work: Arc<W>,
    pub(crate) occupancy: Arc<OccupancyOf>,
    pub(crate) deadline: Arc<DeadlineOf>,
    pub(crate) rejection_form: RejectionForm,
}

pub(crate) type OccupancyOf = dyn Fn(&Parts, &RequestInfo<'_>) -> Occupancy + Send + Sync;
pub(crate) type DeadlineOf = dyn Fn(&Parts) -> Option<Duration> + Send + Sync;

/// What becomes of a request.
pub(crate) enum Verdict<B> {
    /// It has arrived at its level.
    Arrived { admit: Admit, occupancy: Occupancy, watch: Option<Watch> },
    /// It goes to the service at once.
    Unlimited,
    /// It does not go anywhere.
    Refused(Response<FlowBody<B>>),
}

// === impl Rules ===

impl<I: Identify, D: Digest, W: HttpWork> Rules<I, D, W> {
    pub(crate) fn judge<B>(&self, parts: &Parts) -> Verdict<B> {
        let request = match self.digest.digest(parts) {
            Ok(request) => request,
            Err(error) => return Verdict::Refused(response::undigested(&error, &parts.headers)),
        };
        let occupancy = (self.occupancy)(parts, &request);
        if occupancy == Occupancy::None {
            return Verdict::Unlimited;
        }
        let user = match self.identify.identify(parts) {
            Ok(user) => user,
            Err(error) => return Verdict::Refused(response::unidentified(&error, &parts.headers)),
        };
        let query = Query::of_target(target(&parts.uri));
        // A watch has no deadline: it is meant to go on (HF-7).
        let deadline_in = if occupancy == Occupancy::ToTheEnd { (self.deadline)(parts) } else { None };
        let details = Details { user: Arc::clone(&user), method: parts.method.clone(), uri: parts.uri.clone() };
        let is_watch = occupancy == Occupancy::ToTheHeaders;
        let mut arriving = Request::new(Attributes { user: &user, request: &request })
            .work(|attributes: Attributes<'_>, level: &LevelInfo| self.work.estimate_http(attributes, query, level))
            .patience(Patience { received_ago: Duration::ZERO, deadline_in })
            .details(details);
        if is_watch {
            arriving = arriving.watch();
        }
        if let Some(watches) = self.work.interested_watches(&request) {
            arriving = arriving.interested_watches(watches);
        }
        let admit = self.flow.admit_request(arriving);
        let watch = if is_watch { self.work.watch(&request, query) } else { None };
        Verdict::Arrived { admit, occupancy, watch }
    }
}

impl<I, D, W> Clone for Rules<I, D, W> {
    fn clone(&self) -> Self {
        Self {
            flow: self.flow.clone(),
            identify: Arc::clone(&self.identify),
            digest: Arc::clone(&self.digest),
            work: Arc::clone(&self.work),
            occupancy: Arc::clone(&self.occupancy),
            deadline: Arc::clone(&self.deadline),
            rejection_form: self.rejection_form,
        }
    }
}

impl<I, D, W> fmt::Debug for Rules<I, D, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rules").field("rejection_form", &self.rejection_form).finish_non_exhaustive()
    }
}
