//! The parameters of work estimates (WE-2).

use crate::time::{MILLISECOND, Nanos};

/// The parameters of work estimates. The defaults are those of the reference.
///
/// Not `#[non_exhaustive]`, so that literals can end with `..Default::default()`. End them so: releases add fields.
#[derive(Debug, Clone, PartialEq)]
pub struct EstimatorConfig {
    /// The seats of a request of which nothing more is known.
    pub seats_min: u32,
    /// The most seats of a list.
    pub list_seats_max: u32,
    /// The most seats on which a change lingers.
    pub mutating_seats_max: u32,
    /// What a list costs.
    pub list_costing: ListCosting,
    /// Whether a watch that begins with the existing objects costs as much as a list.
    pub watch_costs_like_list: bool,
    /// The number of objects assumed when it is not known.
    pub objects_assumed: i64,
    /// Whether a change costs more the more watches have to be told of it.
    pub mutating_costs_by_watches: bool,
    /// How many watches one seat can tell of a change within `event_duration`.
    pub watches_per_seat: f64,
    /// How long a seat is kept to tell watches of a change.
    pub event_duration: Nanos,
}

/// What a list costs.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum ListCosting {
    /// Lists take seats by the bytes that are loaded (WE-11).
    BySize {
        /// The bytes that one seat pays for.
        bytes_per_seat: f64,
        /// A list from the cache is streamed, and counts as no more than this.
        cache_bytes_max: i64,
        /// The size of an object when it is not known.
        object_bytes_assumed: i64,
    },
    /// Lists take seats by the objects that are looked at (WE-12).
    ByCount {
        /// The objects that one seat pays for.
        objects_per_seat: f64,
    },
}

// === impl EstimatorConfig ===

impl EstimatorConfig {
    /// The parameters that the reference has when lists are not costed by size.
    pub fn by_count() -> Self {
        Self { list_costing: ListCosting::ByCount { objects_per_seat: 100.0 }, list_seats_max: 10, ..Self::default() }
    }
}

impl Default for EstimatorConfig {
    fn default() -> Self {
        Self {
            seats_min: 1,
            list_seats_max: 100,
            mutating_seats_max: 10,
            list_costing: ListCosting::BySize {
                bytes_per_seat: 100_000.0,
                cache_bytes_max: 1_000_000,
                object_bytes_assumed: 1_500_000,
            },
            watch_costs_like_list: true,
            objects_assumed: 1_000_000_000,
            mutating_costs_by_watches: true,
            watches_per_seat: 10.0,
            event_duration: 5 * MILLISECOND,
        }
    }
}
