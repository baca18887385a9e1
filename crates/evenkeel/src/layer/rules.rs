//! `Rules`: the settings of a layer, and the verdict on a request that follows from them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_api::Preset;
use evenkeel_engine::digest::DigestError;
use evenkeel_engine::{Attributes, LevelInfo, RequestHead, RequestInfo, User};
use http::header::{HeaderValue, UPGRADE};
use http::request::Parts;
use http::{Method, Response};

use crate::control::admit::ArrivalOutcome;
use crate::control::cost_source::{Costing, CountCost};
use crate::control::digests::{DigestId, SharedDigest};
use crate::control::flow_control::FlowControl;
use crate::control::flow_control::RateFields;
use crate::control::request::{Head, Incoming, Patience, RunLength};
use crate::control::work::{EstimateWork, Watch, WorkInput};
use crate::layer::admitted::HandOver;
use crate::layer::body::FlowBody;
use crate::layer::boxed::BoxDigest;
use crate::layer::deadline;
use crate::layer::digest::{Digest, Digested, query};
use crate::layer::head::PartsHead;
use crate::layer::identify::{Identify, Unidentified, without_system_names};
use crate::layer::occupancy::Occupancy;
use crate::layer::refusal::{Refusal, Refusals};

/// The rules of a layer: how it identifies, digests and estimates requests, and its settings.
pub(crate) struct Rules<I, D, W> {
    pub(crate) identify: Arc<I>,
    pub(crate) digest: RegisteredDigest<D>,
    pub(crate) work: Arc<W>,
    pub(crate) settings: LayerSettings,
}

/// A digest that dumps find again by its number.
pub(crate) struct RegisteredDigest<D> {
    digest: Arc<D>,
    id: DigestId,
}

/// The settings that do not depend on the types that identify, digest and estimate.
#[expect(
    clippy::struct_excessive_bools,
    reason = "four switches of `FlowLayer` that have nothing to do with each other"
)]
#[derive(Clone)]
pub(crate) struct LayerSettings {
    pub(crate) flow: FlowControl,
    /// `None`: the occupancy of the digest or of the preset.
    pub(crate) occupancy: Option<Arc<OccupancyOf>>,
    /// `None`: the deadline that requests have themselves.
    pub(crate) deadline: Option<Arc<DeadlineOf>>,
    /// Makes the responses to requests that do not get to the service.
    pub(crate) refusals: Refusals,
    /// The source of costs, if there is one.
    pub(crate) cost_source: Option<Arc<dyn CountCost>>,
    /// Whether responses have the rate fields (RL-5).
    pub(crate) tells_rates: bool,
    /// Whether responses tell clients how long their requests have waited (LM-6).
    pub(crate) tells_waits: bool,
    /// Whether the service gets a share of the permit.
    pub(crate) shares_permits: bool,
    /// Whether the layer ends requests that are told to end (LM-7).
    pub(crate) ends_revoked: bool,
    /// Whether names may begin with `system:`.
    pub(crate) allows_system_names: bool,
}

pub(crate) type OccupancyOf = dyn Fn(&Parts, &RequestInfo<'_>) -> Occupancy + Send + Sync;
pub(crate) type DeadlineOf = dyn Fn(&Parts) -> Option<Duration> + Send + Sync;

/// The verdict on a request.
pub(crate) enum Verdict<U, X, B> {
    /// The request has arrived at its level.
    Arrived {
        place: ArrivalOutcome,
        occupancy: Occupancy,
        watch: Option<Box<Watch>>,
        rate_fields: Option<Box<RateFields>>,
        user: U,
        extra: X,
    },
    /// The request is not limited, and goes to the service at once.
    Unlimited { user: U, extra: X },
    /// The request is refused, with this response.
    Refused(Box<Response<FlowBody<B>>>),
}

// === impl Rules ===

impl<I, D: Digest, W: EstimateWork<D::Extra>> Rules<I, D, W> {
    /// What is asked.
    #[inline]
    pub(crate) fn digested<'a>(&'a self, parts: &'a Parts) -> Result<Digested<'a, D::Extra>, DigestError> {
        self.digest.digest.digest(parts)
    }

    /// Decides about a request, with these two steps before the flow control: what is asked (digest), and, unless the
    /// request is not limited, who calls (identify).
    ///
    /// The caller keeps the head: what was digested, which is large, can be used where it is.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "what is decided about borrows the head")]
    pub(crate) fn judge<'a, H: HandOver<A, D::Extra>, A, B>(
        &self,
        identify: &impl Identify,
        mut digested: Result<Digested<'a, D::Extra>, DigestError>,
        head: &'a PartsHead<'a>,
    ) -> Verdict<H::User, D::Extra, B> {
        let PartsHead(parts) = *head;
        if let Ok(found) = &mut digested {
            found.info.head = RequestHead::borrowed(head);
        }
        let refused = |refusal: Refusal| Verdict::Refused(self.settings.refusals.respond(refusal, parts));
        // Borrowed rather than moved: it is large.
        let found = match &digested {
            Ok(found) => found,
            Err(error) => return refused(error.clone().into()),
        };
        let occupancy = self.occupancy(parts, found);
        if occupancy == Occupancy::None {
            return match (H::unlimited_user(|| self.user(identify, parts)), digested) {
                (Ok(user), Ok(Digested { extra, .. })) => Verdict::Unlimited { user, extra },
                (Err(error), _) => refused(error.into()),
                (_, Err(error)) => refused(error.into()),
            };
        }
        let user = match self.user(identify, parts) {
            Ok(user) => user,
            Err(error) => return refused(error.into()),
        };
        let Digested { info, extra } = found;
        let query = query(&parts.uri);
        // A watch has no deadline: it is meant to go on (HF-7).
        let wait_limit = self.digest.digest.wait_limit(found);
        let deadline_in = if occupancy == Occupancy::ToTheEnd { self.deadline_of(parts, wait_limit) } else { None };
        let is_watch = occupancy == Occupancy::ToTheHeaders;
        let run_length = match is_watch {
            true => RunLength::Watch,
            false if self.may_be_upgraded(parts) => RunLength::Long,
            false => RunLength::Ordinary,
        };
        let watches = self.work.interested_watches(info, extra);
        let attributes = Attributes { user: &user, request: info };
        let source = self.settings.cost_source.as_deref().map(|source| (source, parts));
        let place = self.settings.flow.take_in(&Incoming {
            attributes,
            estimate: |level: &LevelInfo| self.work.estimate(&WorkInput { attributes, level, query, watches, extra }),
            patience: &Patience { received_ago: Duration::ZERO, deadline_in, wait_limit },
            head: Some(Head { user: &user, method: &parts.method, uri: &parts.uri }),
            digest: self.digest.id,
            run_length,
            watches,
            times: parts.extensions.get(),
            is_within_rate: false,
            costing: Costing { route: self.work.route_cost(extra), source, made: None },
        });
        // Read after the request has taken its part of the rate.
        let rate_fields = if self.settings.tells_rates { self.settings.flow.rate_fields(attributes) } else { None };
        let watch = if is_watch { self.work.watch(info, query, extra).map(Box::new) } else { None };
        match digested {
            Ok(Digested { extra, .. }) => {
                Verdict::Arrived { place, occupancy, watch, rate_fields, user: H::known_user(user), extra }
            }
            Err(error) => refused(error.into()),
        }
    }

    /// Whether the request asks for a connection of another protocol, which may stay open for long (LB-5): with `Upgrade` over
    /// HTTP/1.1, or with CONNECT, which is also how a `WebSocket` begins over HTTP/2 (RFC 8441). In Kubernetes such requests
    /// are not limited (HF-3). Ordinary clients offer `h2c` with ordinary requests.
    #[inline]
    fn may_be_upgraded(&self, parts: &Parts) -> bool {
        if self.settings.flow.preset().is_kubernetes() {
            return false;
        }
        let offers = |protocol: &HeaderValue| !protocol.as_bytes().eq_ignore_ascii_case(b"h2c");
        parts.method == Method::CONNECT || parts.headers.get(UPGRADE).is_some_and(offers)
    }

    /// How long a request keeps its seats.
    #[inline]
    fn occupancy(&self, parts: &Parts, digested: &Digested<'_, D::Extra>) -> Occupancy {
        if let Some(occupancy) = &self.settings.occupancy {
            return occupancy(parts, &digested.info);
        }
        let known = self.digest.digest.occupancy(digested);
        known.unwrap_or_else(|| match self.settings.flow.preset() {
            Preset::Plain | Preset::Llm => Occupancy::ToTheEnd,
            Preset::Kubernetes => Occupancy::kubernetes(&digested.info),
        })
    }

    /// Identifies the caller.
    #[inline]
    fn user(&self, identify: &impl Identify, parts: &Parts) -> Result<Arc<User>, Unidentified> {
        let user = identify.identify(parts)?;
        if self.settings.allows_system_names { Ok(user) } else { without_system_names(user) }
    }

    /// How much time a request has: what the layer was told, or what the request itself says, unless that is as long as
    /// all requests have (HF-7).
    #[inline]
    fn deadline_of(&self, parts: &Parts, wait_limit: Option<Duration>) -> Option<Duration> {
        if let Some(deadline) = &self.settings.deadline {
            return deadline(parts);
        }
        let timeout = self.digest.digest.timeout(parts).or_else(|| deadline::of_grpc(parts))?;
        let wait_limit = wait_limit.unwrap_or_else(|| self.settings.flow.shared().wait_limit());
        let request_timeout = wait_limit.saturating_mul(4);
        Some(timeout).filter(|timeout| !timeout.is_zero() && *timeout < request_timeout)
    }
}

impl<I, D, W> Clone for Rules<I, D, W> {
    fn clone(&self) -> Self {
        Self {
            identify: Arc::clone(&self.identify),
            digest: self.digest.clone(),
            work: Arc::clone(&self.work),
            settings: self.settings.clone(),
        }
    }
}

impl<I, D, W> fmt::Debug for Rules<I, D, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rules").field("refusals", &self.settings.refusals).finish_non_exhaustive()
    }
}

// === impl RegisteredDigest ===

impl<D> RegisteredDigest<D> {
    pub(crate) fn new(flow: &FlowControl, digest: D) -> Self
    where
        D: Digest + Send + Sync + 'static,
    {
        let digest = Arc::new(digest);
        let shared: Arc<SharedDigest> = Arc::clone(&digest) as _;
        let id = flow.shared().digests.add(Arc::downgrade(&shared));
        Self { digest, id }
    }

    /// The same digest without its type. It keeps its number.
    pub(crate) fn boxed(self) -> RegisteredDigest<BoxDigest<D::Extra>>
    where
        D: Digest + Send + Sync + 'static,
    {
        RegisteredDigest { digest: Arc::new(BoxDigest(self.digest)), id: self.id }
    }
}

impl<D> Clone for RegisteredDigest<D> {
    fn clone(&self) -> Self {
        Self { digest: Arc::clone(&self.digest), id: self.id }
    }
}
