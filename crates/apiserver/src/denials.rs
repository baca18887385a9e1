//! `Denials`: counts and logs the requests that the API rejects with 401 or 403, by reason.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use evenkeel::User;
use evenkeel::metrics::{Metric, MetricKind};
use http::request::Parts;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

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
pub(crate) struct Denials(Arc<DenialCounts>);

#[derive(Debug)]
struct DenialCounts {
    counts: [AtomicU64; Denial::ALL.len()],
    start: Instant,
    /// The second of the last log line in the upper half, and the number of lines in that second in the lower half.
    lines: AtomicU64,
}

/// This many forbidden requests a second are logged. All are counted.
const LINES_PER_SECOND: u64 = 10;

/// The name of a counter lacks its ending `_total`, which the exposition adds.
pub(crate) const DENIED: Metric = Metric {
    name: "evenkeel_api_denied_requests",
    kind: MetricKind::Counter,
    labels: &["code", "reason"],
    help: "Requests to the API that were rejected with 401 or 403, by reason",
};

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
    /// Counts a request that is not authenticated. The authenticator has logged why.
    pub(crate) fn unauthenticated(&self) {
        self.count(Denial::Unauthenticated);
    }

    /// Counts and logs a request of a user who may not do what it asks for.
    pub(crate) fn forbidden(&self, denial: Denial, parts: &Parts, user: &User) {
        self.count(denial);
        if self.0.may_log(self.0.start.elapsed().as_secs()) {
            let [_, reason] = denial.labels();
            // Without the query, which may contain secrets.
            let (user, method, path) = (&*user.name, parts.method.as_str(), parts.uri.path());
            tracing::warn!(user, method, path, reason, "a request to the API is forbidden");
        }
    }

    fn count(&self, denial: Denial) {
        self.0.counts[denial as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Writes the counts at a scrape.
    pub(crate) fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let mut family = encoder.encode_descriptor(DENIED.name, DENIED.help, None, MetricType::Counter)?;
        for denial in Denial::ALL {
            let labels: Vec<(&str, &str)> = DENIED.labels.iter().copied().zip(denial.labels()).collect();
            let count = self.0.counts[denial as usize].load(Ordering::Relaxed);
            family.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(&count, None)?;
        }
        Ok(())
    }
}

// === impl DenialCounts ===

impl DenialCounts {
    /// Whether another line may be written in this second.
    fn may_log(&self, second: u64) -> bool {
        let counted = |lines: u64| match lines >> 32 == second {
            true if lines & u64::from(u32::MAX) >= LINES_PER_SECOND => None,
            true => Some(lines + 1),
            false => Some((second << 32) + 1),
        };
        self.lines.fetch_update(Ordering::Relaxed, Ordering::Relaxed, counted).is_ok()
    }
}

impl Default for DenialCounts {
    fn default() -> Self {
        Self { counts: Default::default(), start: Instant::now(), lines: AtomicU64::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_denials_does_not_flood_the_log() {
        let shared = DenialCounts::default();
        let lines = |second| (0..1000).filter(|_| shared.may_log(second)).count();
        assert_eq!([lines(0), lines(0), lines(7), lines(7), lines(8)], [10, 0, 10, 0, 10]);
    }
}
