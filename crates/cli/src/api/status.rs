//! `ApiStatus`: the state of the API in the same process and of its store, for the gateway's admin endpoint.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use evenkeel_apiserver::{ApiMetrics, encode_store_unavailable};
use evenkeel_gateway::objects::SourceStatus;
use evenkeel_store::Store;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;

/// The state of an API, which may not have started yet.
#[derive(Debug, Default)]
pub(super) struct ApiStatus {
    /// The copy that the objects in effect come from and why, if they do.
    copy: Mutex<Option<String>>,
    api: OnceLock<Parts>,
}

/// The parts of an API that runs.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) metrics: ApiMetrics,
    pub(super) store: Arc<dyn Store>,
}

/// A connection that is lost for a shorter time changes nothing: members of etcd are exchanged now and then.
const STALE_AFTER: Duration = Duration::from_secs(5);

// === impl ApiStatus ===

impl ApiStatus {
    /// The status of an API that runs.
    pub(super) fn running(parts: Parts) -> Arc<Self> {
        let status = Self::default();
        status.started(parts);
        Arc::new(status)
    }

    /// The status of an API that has not started, while this copy is in effect.
    pub(super) fn with_copy(copy: String) -> Arc<Self> {
        Arc::new(Self { copy: Mutex::new(Some(copy)), api: OnceLock::new() })
    }

    /// The API runs.
    pub(super) fn started(&self, parts: Parts) {
        let _ = self.api.set(parts);
    }

    /// The objects of the API are about to take effect in place of the copy.
    pub(super) fn copy_replaced(&self) {
        *self.copy.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn copy(&self) -> Option<String> {
        self.copy.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl SourceStatus for ApiStatus {
    fn stale(&self) -> Option<String> {
        self.copy().or_else(|| {
            let freshness = self.api.get()?.store.freshness();
            let away = freshness.disconnected_since?.elapsed();
            let (revision, seconds) = (freshness.revision, away.as_secs());
            (away >= STALE_AFTER)
                .then(|| format!("those of revision {revision}; the store has been out of reach for {seconds} s"))
        })
    }

    fn store_problem(&self) -> Option<String> {
        match self.api.get() {
            Some(api) => api.store.problem(),
            None => Some("it could not be opened yet; the log has the reason".to_owned()),
        }
    }

    fn encode_metrics(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        match self.api.get() {
            Some(api) => api.metrics.encode(encoder),
            None => encode_store_unavailable(&mut encoder, true),
        }
    }
}
