//! `ApiMetrics`: the API's own metrics, for its own page and for that of a gateway in the same process.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use evenkeel::metrics::{Metric, MetricKind};
use evenkeel_store::Store;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

use crate::denials::{DENIED, Denials};

/// The API's own metrics. Clones share them.
#[derive(Debug, Clone)]
pub struct ApiMetrics {
    denials: Denials,
    refused_connections: Arc<AtomicU64>,
    store: Arc<dyn Store>,
}

/// The name of a counter lacks its ending `_total`, which the exposition adds.
const CONNECTIONS_REFUSED: Metric = Metric {
    name: "evenkeel_api_connections_refused",
    kind: MetricKind::Counter,
    labels: &[],
    help: "Connections to the API that were closed, and requests that were rejected, because their client has too many connections",
};

const STORE_UNAVAILABLE: Metric = Metric {
    name: "evenkeel_store_unavailable",
    kind: MetricKind::Gauge,
    labels: &[],
    help: "Whether the store refuses writes or cannot be reached; objects that were read before stay in effect",
};

/// The API's own metrics, as they are declared.
pub fn declared_metrics() -> impl Iterator<Item = Metric> {
    [CONNECTIONS_REFUSED, DENIED, STORE_UNAVAILABLE].into_iter()
}

/// Writes that the store is unavailable, for a process whose API has not started because of that.
pub fn encode_store_unavailable(encoder: &mut DescriptorEncoder<'_>, is_unavailable: bool) -> fmt::Result {
    let Metric { name, help, .. } = STORE_UNAVAILABLE;
    encoder.encode_descriptor(name, help, None, MetricType::Gauge)?.encode_gauge(&i64::from(is_unavailable))
}

// === impl ApiMetrics ===

impl ApiMetrics {
    pub(crate) fn new(denials: Denials, refused_connections: Arc<AtomicU64>, store: Arc<dyn Store>) -> Self {
        Self { denials, refused_connections, store }
    }
}

impl Collector for ApiMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let Metric { name, help, .. } = CONNECTIONS_REFUSED;
        let refused = self.refused_connections.load(Ordering::Relaxed);
        encoder
            .encode_descriptor(name, help, None, MetricType::Counter)?
            .encode_counter::<NoLabelSet, _, u64>(&refused, None)?;
        self.denials.encode(&mut encoder)?;
        encode_store_unavailable(&mut encoder, self.store.problem().is_some())
    }
}
