//! From an HTTP request to an answer: who may, what path, what method, what form (API-5).

mod answers;
mod call;
mod objects;
mod reply;

use std::sync::Arc;

use evenkeel_api::v1::{FlowSchemaSpec, PriorityLevelConfigurationSpec};
use evenkeel_engine::digest::Kubernetes;
use evenkeel_store::Store;
use http::{Request, Response};
use http_body::Body;

use crate::registry::Registry;
use crate::watch::WatchLimit;

pub use reply::ApiBody;

/// The REST API over a store. Clones share everything.
///
/// Requests come with the [`User`](evenkeel_engine::User) who sends them as an extension; those without one are refused.
#[derive(Debug, Clone)]
pub struct Api {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    schemas: Arc<Registry<FlowSchemaSpec>>,
    levels: Arc<Registry<PriorityLevelConfigurationSpec>>,
    watches: WatchLimit,
    digest: Kubernetes,
}

// === impl Api ===

impl Api {
    /// The API over that store, with so many watches at a time.
    pub fn new(store: &Arc<dyn Store>, watches_max: usize) -> Self {
        Self {
            shared: Arc::new(Shared {
                schemas: Arc::new(Registry::new(Arc::clone(store))),
                levels: Arc::new(Registry::new(Arc::clone(store))),
                watches: WatchLimit::new(watches_max),
                digest: Kubernetes::default(),
            }),
        }
    }

    /// Answers a request.
    pub async fn answer<B>(&self, request: Request<B>) -> Response<ApiBody>
    where
        B: Body + Send,
        B::Data: Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        call::answer(&self.shared, request).await
    }
}
