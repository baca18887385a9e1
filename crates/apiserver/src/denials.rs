//! `Denials`: counts the requests that the API rejects with 401 or 403, by reason.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use evenkeel::metrics::{Metric, MetricKind};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

/// Why the API rejects a request with 401 or 403.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Denial {
    /// 401: the request is not authenticated.
    Unauthenticated,
    /// 403: the sender may not impersonate other users.
    Impersonation,
    /// 403: the user may not do this to objects.
    Resource,
    /// 403: the user may not read this path.
    Path,
}

/// How many requests were rejected for each reason. Clones share the counts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Denials(Arc<[AtomicU64; Denial::ALL.len()]>);

/// The name of a counter lacks its ending `_total`, which the exposition adds.
const DENIED: Metric = Metric {
    name: "evenkeel_api_denied_requests",
    kind: MetricKind::Counter,
    labels: &["code", "reason"],
    help: "Requests to the API that were rejected with 401 or 403, by reason",
};

/// The API's own metrics, as they are declared.
pub fn declared_metrics() -> impl Iterator<Item = Metric> {
    std::iter::once(DENIED)
}

// === impl Denial ===

impl Denial {
    const ALL: [Self; 4] = [Self::Unauthenticated, Self::Impersonation, Self::Resource, Self::Path];

    /// The values of the labels `code` and `reason`.
    fn labels(self) -> [&'static str; 2] {
        match self {
            Self::Unauthenticated => ["401", "unauthenticated"],
            Self::Impersonation => ["403", "impersonation"],
            Self::Resource => ["403", "resource"],
            Self::Path => ["403", "path"],
        }
    }
}

// === impl Denials ===

impl Denials {
    pub(crate) fn count(&self, denial: Denial) {
        self.0[denial as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Shows the counts in a registry.
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(self.clone()));
    }
}

impl Collector for Denials {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let mut family = encoder.encode_descriptor(DENIED.name, DENIED.help, None, MetricType::Counter)?;
        for denial in Denial::ALL {
            let labels: Vec<(&str, &str)> = DENIED.labels.iter().copied().zip(denial.labels()).collect();
            let count = self.0[denial as usize].load(Ordering::Relaxed);
            family.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(&count, None)?;
        }
        Ok(())
    }
}
