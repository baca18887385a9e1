//! `FleetSettings`: the settings of a fleet's instance.

use evenkeel_engine::time::{MILLISECOND, Nanos};
use serde::{Deserialize, Serialize};

use crate::found_seats::FoundSeats;

/// The settings of one instance. Those of the ledger win, unless these have a higher generation.
///
/// Not `#[non_exhaustive]`: users write `..Default::default()`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FleetSettings {
    /// How many seats the service has, all instances together. Where the search begins, if the fleet finds that out.
    pub seats: u64,
    /// Whether the fleet finds out how many seats there should be, and what is known of that (FL-13).
    pub auto: Option<FoundSeats>,
    /// The part of the seats that outlives a cut from etcd, in percent (FL-9).
    pub floor_percent: u64,
    /// The settings with the highest generation win.
    pub generation: u64,
    /// For how long this instance may use what it has.
    pub terms: Terms,
}

/// For how long an instance may use what it has without a confirmed write.
///
/// Each ledger entry has its own: others time an instance by the terms that it follows, also during a change of the settings.
///
/// Not `#[non_exhaustive]`: callers make it, and have to give all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Terms {
    /// How long a grant lasts, in milliseconds (FL-8).
    pub ttl_ms: u32,
    /// The longest request that must not be exceeded when an instance is lost, in milliseconds (FL-10).
    pub grace_ms: u32,
    /// How long the floor lasts, in milliseconds (FL-9).
    pub floor_hold_ms: u32,
}

// === impl FleetSettings ===

impl FleetSettings {
    /// The fleet finds out how many seats there should be, and begins here.
    #[must_use]
    pub fn auto(self, found: FoundSeats) -> Self {
        Self { seats: found.limit_seats().into(), auto: Some(found), ..self }
    }
}

impl Default for FleetSettings {
    fn default() -> Self {
        Self { seats: 600, auto: None, floor_percent: 50, generation: 0, terms: Terms::default() }
    }
}

// === impl Terms ===

impl Terms {
    /// For how long the instance itself uses its grant: 2 % less, because clocks do not run alike.
    pub(crate) fn grant_lasts(self) -> Nanos {
        with_margin(self.ttl_ms)
    }

    /// For how long the instance itself uses its floor.
    pub(crate) fn floor_lasts(self) -> Nanos {
        with_margin(self.floor_hold_ms)
    }

    /// The silence after which others take back the grant (FL-10).
    pub(crate) fn grant_reclaimed_after(self) -> Nanos {
        Nanos::from(self.ttl_ms) * MILLISECOND + Nanos::from(self.grace_ms) * MILLISECOND
    }

    /// The silence after which others take back the floor (FL-10).
    pub(crate) fn floor_reclaimed_after(self) -> Nanos {
        Nanos::from(self.floor_hold_ms) * MILLISECOND + Nanos::from(self.grace_ms) * MILLISECOND
    }

    /// How long an instance goes without writing at most: others take it for lost after a ttl.
    pub(crate) fn publication_period(self) -> Nanos {
        Nanos::from(self.ttl_ms) * MILLISECOND / 3
    }
}

impl Default for Terms {
    fn default() -> Self {
        Self { ttl_ms: 3_000, grace_ms: 3_000, floor_hold_ms: 600_000 }
    }
}

fn with_margin(milliseconds: u32) -> Nanos {
    Nanos::from(milliseconds) * MILLISECOND / 100 * 98
}
