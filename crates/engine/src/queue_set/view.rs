//! Queries: the state of a queue set, whatever its discipline. They change nothing, the virtual time included.

use super::requests::Request;
use super::{Discipline, Mode, Phase, QueueSet, RequestId};
use crate::WorkEstimate;
use crate::time::Instant;

/// One request.
#[derive(Debug, Clone, Copy)]
pub struct RequestView<'a, T> {
    /// The request.
    pub id: RequestId,
    /// What it is doing.
    pub phase: Phase,
    /// The number of its queue, if it came through one that is still there.
    pub queue: Option<usize>,
    /// How many seats it takes, and for how long it lingers.
    pub work: WorkEstimate,
    /// When it arrived.
    pub arrived: Instant,
    /// When it started, if it has.
    pub started: Option<Instant>,
    /// What the caller keeps with it.
    pub payload: &'a T,
}

// === impl QueueSet ===

impl<T, D: Discipline> QueueSet<T, D> {
    /// What happens to requests that find no seat.
    #[inline]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// How many seats may be in use at a time.
    #[inline]
    pub fn concurrency_limit(&self) -> i64 {
        self.seats.limit
    }

    /// How many requests wait.
    #[inline]
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// How many requests are executing; lingering ones are not.
    #[inline]
    pub fn executing(&self) -> usize {
        self.seats.executing
    }

    /// The seats of executing and lingering requests.
    #[inline]
    pub fn seats_in_use(&self) -> i64 {
        self.seats.in_use
    }

    /// The seats that waiting requests ask for, with the surplus of FQ-24.
    #[inline]
    pub fn seats_waiting(&self) -> i64 {
        self.seats_waiting
    }

    /// Whether nothing waits and nothing executes (FQ-34).
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.waiting == 0 && self.seats.executing == 0
    }

    /// All requests, in no order.
    pub fn requests(&self) -> impl Iterator<Item = RequestView<'_, T>> {
        self.requests.iter().filter_map(|(id, request)| self.view(id, request))
    }

    /// One request, unless it is gone.
    #[inline]
    pub fn request(&self, id: RequestId) -> Option<RequestView<'_, T>> {
        self.view(id, self.requests.get(id)?)
    }

    /// What a request is doing, unless it is gone.
    #[inline]
    pub fn phase(&self, id: RequestId) -> Option<Phase> {
        self.requests.get(id)?.phase()
    }

    /// What the caller keeps with a request, unless it is gone, to be changed.
    pub fn payload_mut(&mut self, id: RequestId) -> Option<&mut T> {
        self.requests.get_mut(id)?.payload_mut()
    }

    #[inline]
    fn view<'a>(&'a self, id: RequestId, request: &'a Request<T, D::Ticket>) -> Option<RequestView<'a, T>> {
        Some(RequestView {
            id,
            phase: request.phase()?,
            queue: self.discipline.number_of(request.queue),
            work: request.work,
            arrived: request.arrived,
            started: request.started(),
            payload: request.payload()?,
        })
    }
}
