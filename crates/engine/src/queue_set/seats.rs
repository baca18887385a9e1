//! The seats of a level: how many there are, how many are taken, and whether a request may take more (FQ-21).
//!
//! Which of the waiting requests is next is decided by a [`Discipline`](super::Discipline).

use super::{Mode, Recipient, Room};
use crate::WorkEstimate;

/// The seats of a queue set.
#[derive(Debug, Default)]
pub(super) struct Seats {
    /// The seats that the virtual time goes by.
    pub(super) limit: i64,
    /// The seats that the configuration gives: the same as the limit, unless seats are granted.
    pub(super) nominal: i64,
    /// How many seats may be in use for another request to start. The same as the limit, unless seats are granted.
    allowance: i64,
    /// How many seats there are for requests that have to leave some free.
    horizon: i64,
    /// Seats of executing and lingering requests.
    pub(super) in_use: i64,
    /// How many requests are executing; lingering ones are not.
    pub(super) executing: usize,
    /// How many of them take no seat. Nobody waits for those.
    pub(super) seatless: usize,
    /// The most seats of one request, if somebody else grants the seats of each request.
    granted: Option<i64>,
}

// === impl Seats ===

impl Seats {
    /// A fixed number of seats, for the level to use as it likes.
    pub(super) fn new(limit: i64) -> Self {
        let limit = limit.max(0);
        Self { limit, nominal: limit, allowance: limit, horizon: limit, ..Self::default() }
    }

    /// Whether that many seats can be taken now. A request that is too wide for the level runs when nothing else does.
    #[inline]
    pub(super) fn accommodate(&self, mode: Mode, seats: u32) -> bool {
        let width = i64::from(seats);
        match mode {
            Mode::Exempt => true,
            _ if self.granted.is_some() => self.in_use + self.width(seats) <= self.allowance,
            _ if width > self.limit => self.executing == self.seatless,
            _ => self.in_use + width <= self.limit,
        }
    }

    /// The seats that a request is to wait for.
    pub(super) fn width(&self, seats: u32) -> i64 {
        i64::from(seats).min(self.granted.unwrap_or(i64::MAX))
    }

    /// What becomes of the work of a request that starts now.
    #[inline]
    pub(super) fn fit(&self, work: WorkEstimate) -> WorkEstimate {
        match self.granted {
            None => work.narrowed(self.limit),
            Some(widest) => work.fitted(widest),
        }
    }

    /// The work on as many seats as one request may be granted.
    #[inline]
    pub(super) fn fitted(&self, work: WorkEstimate) -> WorkEstimate {
        self.granted.map_or(work, |widest| work.fitted(widest))
    }

    /// Whether no seat is free.
    #[inline]
    pub(super) fn are_taken(&self) -> bool {
        self.in_use >= self.allowance
    }

    /// A request starts.
    #[inline]
    pub(super) fn take(&mut self, work: WorkEstimate) {
        self.executing += 1;
        self.in_use += i64::from(work.max_seats());
    }

    /// Sets the number of seats, unless seats are granted.
    pub(super) fn set_limit(&mut self, limit: i64) {
        self.nominal = limit.max(0);
        if self.granted.is_none() {
            self.set_own_limit(self.nominal);
        }
    }

    /// From now on requests start only by a grant; one request takes at most that many seats.
    pub(super) fn begin_grants(&mut self, widest: i64) {
        self.granted = Some(widest.max(1));
        self.close();
    }

    /// Seats are no longer granted: a limit says what starts.
    pub(super) fn end_grants(&mut self) {
        self.granted = None;
        self.set_own_limit(self.in_use);
    }

    /// Requests may take that many more seats.
    #[inline]
    pub(super) fn grant(&mut self, seats: i64, to: Recipient) {
        self.allowance = self.in_use + seats;
        self.horizon = match to {
            Recipient::Anybody => Room::ALL,
            Recipient::Newcomer => Room::OPEN,
        };
    }

    /// Ends the grant; seats that are left of it are void. The level has the seats that it uses.
    #[inline]
    pub(super) fn close(&mut self) {
        self.limit = self.in_use;
        self.allowance = 0;
        self.horizon = Room::OPEN;
    }

    /// The room that there is for a request that starts now.
    #[inline]
    pub(super) fn room(&self) -> Room {
        self.room_up_to(self.horizon)
    }

    /// The room, where requests that have to leave some seats free may take so many.
    #[inline]
    pub(super) fn room_up_to(&self, horizon: i64) -> Room {
        Room { in_use: self.in_use, widest: self.granted.unwrap_or(i64::MAX), horizon }
    }

    fn set_own_limit(&mut self, limit: i64) {
        (self.limit, self.allowance, self.horizon) = (limit, limit, limit);
    }

    pub(super) fn are_granted(&self) -> bool {
        self.granted.is_some()
    }
}
