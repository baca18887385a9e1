//! What one flow may take of a level that queues per flow (PF-10, PF-11), and the room that there is for it.

use evenkeel_api::annotations::{NewcomerSeats, SeatShare};

use crate::time::{MILLISECOND, Nanos};

/// How long a newcomer may have to wait for a seat before seats are kept for newcomers (PF-10), unless the server says
/// something else.
pub const NEWCOMER_WAIT: Nanos = 100 * MILLISECOND;

/// What one flow may take of a level that queues per flow. By default, all seats.
///
/// Not `#[non_exhaustive]`: callers make it, and have to give all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowLimits {
    /// The seats that are kept for newcomers: flows of which nothing runs (PF-10).
    pub newcomer_seats: NewcomerSeats,
    /// Where a newcomer would find a free seat within this time, none are kept.
    pub newcomer_wait: Nanos,
    /// The most seats that one flow holds (PF-11).
    pub flow_seats_max: Option<SeatShare>,
}

/// The requests that seats are granted for.
///
/// Not `#[non_exhaustive]`: code that starts requests has to know both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Recipient {
    /// The request that is next.
    #[default]
    Anybody,
    /// The request that is next among those that need not leave seats free: the others would take the seats that are kept for
    /// newcomers (PF-10).
    Newcomer,
}

/// The seats that a request may take that starts now, as a discipline sees them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    /// The seats in use.
    pub(super) in_use: i64,
    /// The most seats of one request.
    pub(super) widest: i64,
    /// How many seats there are for requests that have to leave some free.
    pub(super) horizon: i64,
}

// === impl FlowLimits ===

impl FlowLimits {
    /// A flow may take all seats.
    pub const NONE: Self =
        Self { newcomer_seats: NewcomerSeats::NONE, newcomer_wait: NEWCOMER_WAIT, flow_seats_max: None };
    /// As many seats are kept for newcomers as they need: the default of a level whose object does not say it.
    pub const AUTO: Self = Self { newcomer_seats: NewcomerSeats::Auto, ..Self::NONE };
}

impl Default for FlowLimits {
    fn default() -> Self {
        Self::NONE
    }
}

// === impl Room ===

impl Room {
    /// The horizon for the request that is next, whatever has to stay free.
    pub(super) const ALL: i64 = i64::MAX;
    /// The horizon for only those requests that need not leave any seat free.
    pub(super) const OPEN: i64 = i64::MIN;

    /// Whether a request of so many seats leaves that many free.
    #[inline]
    pub(super) fn leaves(self, seats: u32, kept: i64) -> bool {
        let width = i64::from(seats).min(self.widest);
        kept == 0 || self.in_use.saturating_add(width).saturating_add(kept) <= self.horizon
    }
}
