//! From an HTTP request to a response, in the order of API-5: authorization, path, method, media type, parameters, body.

mod call;
mod findings;
mod fixed_routes;
mod objects;
mod pages;
mod reply;
mod request_body;
mod zero_shares;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use evenkeel::FlowControl;
use evenkeel_api::v1::{FlowSchemaSpec, PriorityLevelConfigurationSpec};
use evenkeel_store::Store;
use http::{Request, Response};
use http_body::Body;

use crate::audit_trail::AuditTrail;
use crate::denials::Denials;
use crate::follow::Followed;
use crate::in_flight::InFlight;
use crate::metrics::ApiMetrics;
use crate::other_metrics::OtherMetrics;
use crate::registry::Registry;
use crate::seats::{GovernedFlow, SeatCheck};
use crate::server::ApiServerOptions;
use crate::watch::WatchLimit;

pub(crate) use call::reject;
pub use reply::ApiBody;
pub(crate) use reply::NO_SNIFFING;
pub(crate) use request_body::discard;

/// The REST API over a store. Clones share everything.
///
/// Requests come with the [`User`](evenkeel_engine::User) who sends them as an extension; requests without one are rejected.
#[derive(Debug, Clone)]
pub struct Api {
    shared: Arc<ApiState>,
}

#[derive(Debug)]
struct ApiState {
    schemas: Arc<Registry<FlowSchemaSpec>>,
    levels: Arc<Registry<PriorityLevelConfigurationSpec>>,
    watches: WatchLimit,
    in_flight: InFlight,
    /// The API's own flow control, which its metrics and dumps are about.
    flow: FlowControl,
    other_metrics: OtherMetrics,
    denials: Denials,
    refused_connections: Arc<AtomicU64>,
    followed: Followed,
    governed: GovernedFlow,
    audit_trail: AuditTrail,
}

// === impl Api ===

impl Api {
    /// The API over that store, with this limit on responses in flight.
    pub(crate) fn new(
        store: &Arc<dyn Store>,
        options: &ApiServerOptions,
        in_flight: InFlight,
        followed: Followed,
        flow: FlowControl,
    ) -> Self {
        let preset = options.preset;
        Self {
            shared: Arc::new(ApiState {
                schemas: Arc::new(Registry::new(Arc::clone(store), preset)),
                levels: Arc::new(Registry::new(Arc::clone(store), preset)),
                watches: WatchLimit::new(options.watches_max),
                in_flight,
                flow,
                other_metrics: options.other_metrics.clone(),
                denials: Denials::default(),
                refused_connections: Arc::clone(&options.refused_connections),
                followed,
                governed: options.governed.clone(),
                audit_trail: options.audit_trail.clone(),
            }),
        }
    }

    /// Responds to a request.
    pub async fn respond<B>(&self, request: Request<B>) -> Response<ApiBody>
    where
        B: Body + Send,
        B::Data: Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        call::respond(&self.shared, request).await
    }

    /// The size of all responses that clients have not read yet.
    pub fn response_bytes_in_flight(&self) -> usize {
        self.shared.in_flight.bytes()
    }

    pub(crate) fn in_flight(&self) -> &InFlight {
        &self.shared.in_flight
    }

    pub(crate) fn denials(&self) -> &Denials {
        &self.shared.denials
    }

    pub(crate) fn metrics(&self) -> ApiMetrics {
        self.shared.metrics()
    }

    pub(crate) fn schemas(&self) -> &Arc<Registry<FlowSchemaSpec>> {
        &self.shared.schemas
    }

    pub(crate) fn levels(&self) -> &Arc<Registry<PriorityLevelConfigurationSpec>> {
        &self.shared.levels
    }

    pub(crate) fn seats(&self) -> SeatCheck<'_> {
        self.shared.seats()
    }

    pub(crate) fn followed(&self) -> &Followed {
        &self.shared.followed
    }
}

// === impl ApiState ===

impl ApiState {
    fn metrics(&self) -> ApiMetrics {
        let refused_connections = Arc::clone(&self.refused_connections);
        ApiMetrics::new(self.denials.clone(), refused_connections, Arc::clone(self.schemas.store()))
    }

    fn seats(&self) -> SeatCheck<'_> {
        SeatCheck { governed: &self.governed, schemas: &self.schemas, levels: &self.levels }
    }

    /// Waits until the write is in effect, so that it governs the next request.
    async fn in_effect(&self) {
        self.followed.in_effect(self.schemas.store().freshness().revision).await;
    }
}
