//! The choice of an estimate by the verb (WE-3).

use super::{EstimatorConfig, ObjectStatistics, WatchInterest, cap, list, mutating};
use crate::digest::Query;
use crate::time::Instant;
use crate::{RequestInfo, WorkEstimate};

/// Estimates how much work requests are.
///
/// Nothing is remembered from one request to the next, and nothing is allocated for an ordinary one.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Estimator {
    config: EstimatorConfig,
}

/// What an estimate depends on besides the request.
///
/// Not `#[non_exhaustive]`: callers make it, and have to give all of it.
#[derive(Clone, Copy)]
pub struct Circumstances<'a> {
    /// The time, for statistics that get stale.
    pub now: Instant,
    /// The most seats that the level gives to one request; none for levels without queues (WE-4).
    pub level_cap: Option<u32>,
    /// How many objects there are. Asked for lists and watches only.
    pub objects: &'a dyn ObjectStatistics,
    /// How many watches there are. Asked for changes only.
    pub watches: &'a dyn WatchInterest,
    /// Whether the storage is known to give consistent reads from its cache (WE-9).
    pub consistent_reads_from_cache: bool,
}

// === impl Estimator ===

impl Estimator {
    /// An estimator with these parameters.
    pub fn new(config: EstimatorConfig) -> Self {
        Self { config }
    }

    /// The parameters.
    pub fn config(&self) -> &EstimatorConfig {
        &self.config
    }

    /// The work that a request is expected to be. A request that could not be digested is taken for the worst.
    pub fn estimate(
        &self,
        request: Option<&RequestInfo<'_>>,
        query: Query<'_>,
        circumstances: &Circumstances<'_>,
    ) -> WorkEstimate {
        let config = &self.config;
        let Some(request) = request else {
            let limit = config.list_seats_max.max(config.mutating_seats_max);
            return WorkEstimate::seats(cap::effective(circumstances.level_cap, limit));
        };
        match &*request.verb {
            "list" => list::estimate(config, list::ListKind::List, request, query, circumstances),
            "watch" if config.watch_costs_like_list => {
                list::estimate(config, list::ListKind::Watch, request, query, circumstances)
            }
            "create" | "update" | "patch" | "delete" => mutating::estimate(config, request, circumstances),
            _ => WorkEstimate::seats(config.seats_min),
        }
    }

    /// Whether an estimate for this request asks how many watches are interested in it (WE-18).
    pub fn depends_on_watches(&self, request: &RequestInfo<'_>) -> bool {
        matches!(&*request.verb, "create" | "update" | "patch" | "delete")
            && mutating::depends_on_watches(&self.config, request)
    }
}
