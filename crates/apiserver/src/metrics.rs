//! `ApiMetrics`: the API's own metrics, for its own page and for that of a gateway in the same process.

use std::fmt;
use std::sync::Arc;

use evenkeel::metrics::{Metric, MetricKind};
use evenkeel_store::Store;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;

use crate::denials::{DENIED, Denials};

/// The API's own metrics. Clones share them.
#[derive(Debug, Clone)]
pub struct ApiMetrics {
    denials: Denials,
    store: Arc<dyn Store>,
}

const STORE_UNAVAILABLE: Metric = Metric {
    name: "evenkeel_store_unavailable",
    kind: MetricKind::Gauge,
    labels: &[],
    help: "Whether the store refuses writes or cannot be reached; objects that were read before stay in effect",
};

/// The API's own metrics, as they are declared.
pub fn declared_metrics() -> impl Iterator<Item = Metric> {
    [DENIED, STORE_UNAVAILABLE].into_iter()
}

/// Writes that the store is unavailable, for a process whose API has not started because of that.
pub fn encode_store_unavailable(encoder: &mut DescriptorEncoder<'_>, is_unavailable: bool) -> fmt::Result {
    let Metric { name, help, .. } = STORE_UNAVAILABLE;
    encoder.encode_descriptor(name, help, None, MetricType::Gauge)?.encode_gauge(&i64::from(is_unavailable))
}

// === impl ApiMetrics ===

impl ApiMetrics {
    pub(crate) fn new(denials: Denials, store: Arc<dyn Store>) -> Self {
        Self { denials, store }
    }
}

impl Collector for ApiMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        self.denials.encode(&mut encoder)?;
        encode_store_unavailable(&mut encoder, self.store.problem().is_some())
    }
}
