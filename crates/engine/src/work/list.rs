//! The cost of lists, and of watches that begin with the existing objects (WE-6 to WE-13).

use super::{Circumstances, EstimatorConfig, ListCosting, Statistics, cap};
use crate::digest::{ListOptions, Query};
use crate::{RequestInfo, WorkEstimate};

/// The kind of request that is estimated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListKind {
    List,
    Watch,
}

/// Where the objects come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Cache,
    Storage,
}

/// The objects that are to be loaded.
struct Load {
    /// All objects of the resource.
    count: i64,
    /// The average size of one, not positive if unknown.
    average_bytes: i64,
    limit: i64,
    source: Source,
    is_single: bool,
    is_selective: bool,
}

pub(super) fn estimate(
    config: &EstimatorConfig,
    kind: ListKind,
    request: &RequestInfo<'_>,
    query: Query<'_>,
    circumstances: &Circumstances<'_>,
) -> WorkEstimate {
    let seats_max = cap::effective(circumstances.level_cap, config.list_seats_max);
    let Ok(options) = ListOptions::decode(query) else { return WorkEstimate::seats(seats_max) };
    if kind == ListKind::Watch && !begins_with_existing_objects(&options) {
        return WorkEstimate::seats(config.seats_min);
    }
    let source = source(kind, &options, circumstances.consistent_reads_from_cache);
    let (count, average_bytes) =
        match circumstances.objects.statistics(&request.resource, &request.api_group, circumstances.now) {
            Statistics::NeverRecorded => return WorkEstimate::seats(config.seats_min),
            Statistics::Stale => (config.objects_assumed, 0),
            Statistics::Fresh { count, average_bytes } => (count, average_bytes),
        };
    let load = Load {
        count,
        average_bytes,
        limit: options.limit,
        source,
        is_single: !request.name.is_empty(),
        is_selective: !options.label_selector.is_empty() || !options.field_selector.is_empty(),
    };
    WorkEstimate::seats(load.seats(config.list_costing).max(config.seats_min).min(seats_max))
}

// === impl Load ===

impl Load {
    #[expect(clippy::cast_precision_loss, reason = "WE-11 and WE-12 ask for binary64")]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the caller bounds it on both sides")]
    fn seats(&self, costing: ListCosting) -> u32 {
        let (amount, amount_per_seat) = match costing {
            ListCosting::BySize { bytes_per_seat, cache_bytes_max, object_bytes_assumed } => {
                (self.bytes(cache_bytes_max, object_bytes_assumed), bytes_per_seat)
            }
            ListCosting::ByCount { objects_per_seat } => (self.objects_processed(), objects_per_seat),
        };
        (amount as f64 / amount_per_seat).ceil() as u32
    }

    /// The objects on the page that was asked for.
    fn page(&self) -> i64 {
        if 0 < self.limit && self.limit < self.count { self.limit } else { self.count }
    }

    fn bytes(&self, cache_bytes_max: i64, object_bytes_assumed: i64) -> i64 {
        let is_unknown = self.average_bytes <= 0 && self.count != 0;
        let object_bytes = if is_unknown { object_bytes_assumed } else { self.average_bytes };
        let loaded = match self.source {
            _ if self.is_single => 1,
            Source::Storage if self.is_selective => self.page().max(self.count / 2),
            _ => self.page(),
        };
        let bytes = loaded.saturating_mul(object_bytes);
        match self.source {
            Source::Cache => bytes.min(cache_bytes_max),
            Source::Storage => bytes,
        }
    }

    fn objects_processed(&self) -> i64 {
        match self.source {
            _ if self.is_single => 1,
            Source::Cache => self.count,
            Source::Storage if self.is_selective => self.count.saturating_add(self.page()),
            Source::Storage => self.page().saturating_mul(2),
        }
    }
}

/// Whether a watch has objects to send before the first change (WE-8).
fn begins_with_existing_objects(options: &ListOptions<'_>) -> bool {
    options.send_initial_events == Some(true) || matches!(&*options.resource_version, "" | "0")
}

/// Where the objects come from (WE-9).
fn source(kind: ListKind, options: &ListOptions<'_>, consistent_reads_from_cache: bool) -> Source {
    let version = &*options.resource_version;
    let is_from_storage = match &*options.resource_version_match {
        "NotOlderThan" => false,
        "" if !options.continue_token.is_empty() => true,
        "" if options.limit > 0 && !matches!(version, "" | "0") => true,
        "" => version.is_empty() && !consistent_reads_from_cache,
        _ => true,
    };
    if kind == ListKind::List && is_from_storage { Source::Storage } else { Source::Cache }
}
