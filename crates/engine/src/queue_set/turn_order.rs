//! `TurnOrder`: the trait of the two disciplines, which decide on the order in which the waiting requests of a level start, and
//! show their queues.

use super::requests::{Links, Requests, Run};
use super::{QueueView, Queuing, ReadingBounds, Room};
use crate::time::{Instant, Nanos};
use crate::{Flow, SeatSeconds, WorkEstimate};

/// Decides which of the waiting requests of a level is next: where a request waits (placing), whose turn it is (choosing), and
/// what the turn costs (charging), by a time of its own (virtual time).
///
/// The `Core` of a queue set tells it of every step of an event. Whether there are seats for the request that is next is not
/// its concern.
///
/// Queues go by keys, which mean something only to the discipline. A request keeps its key until its seats are free, also
/// when its queue is gone by then.
pub(super) trait TurnOrder: InspectQueues + Sized {
    /// No queues, at that time.
    fn new(now: Instant) -> Self;

    /// The queues are to be like this from now on; `None`: there are to be none. Queues in which something waits or runs
    /// stay until that has ended.
    fn configure(&mut self, queuing: Option<Queuing>);

    /// The level has so many seats of its own from now on.
    fn resize(&mut self, _seats: i64) {}

    /// Brings the virtual time up to now, with everything as it has been since the last event. If readings were wound
    /// back, tells whether none of them went below zero by it.
    fn advance<T>(&mut self, now: Instant, limit: i64, requests: &mut Requests<T>) -> Option<bool>;

    /// Chooses a queue for a request of that flow. `is_saturated` says that no seat is free: only then may a queue be full.
    fn place(&mut self, flow: Flow<'_>, work: WorkEstimate, is_saturated: bool) -> QueueChoice;

    /// Whether [`next`](Self::next) would choose the request if it were the only one to wait.
    fn would_choose(&mut self, queue: u32, work: WorkEstimate, room: Room) -> bool;

    /// A request starts that nobody has to wait for: the same as `enqueue`, `push`, `next` and `start`. `narrowed` is its
    /// work as it runs.
    fn pass(&mut self, queue: u32, work: WorkEstimate, narrowed: WorkEstimate);

    /// A request is about to wait in a queue: the virtual time of its arrival, which is kept with it. (Only shuffle-sharded queues
    /// have a use for it.)
    fn enqueue(&mut self, queue: u32, work: WorkEstimate) -> SeatSeconds;

    /// The request of the last `enqueue` is in that slot: it waits behind all others of its queue.
    fn push<T>(&mut self, queue: u32, slot: u32, requests: &mut Requests<T>);

    /// The request whose turn it is, given the room that there is.
    fn next(&mut self, now: Instant, room: Room) -> Option<Next>;

    /// There are not enough seats for that request, and all others wait for it.
    fn blocked(&mut self, next: Next);

    /// The chosen request starts. Its work may have been narrowed.
    fn start<T>(&mut self, next: Next, narrowed: WorkEstimate, requests: &mut Requests<T>);

    /// A waiting request leaves its queue; it is still in its slot. Tells whether others may be able to start because of that.
    fn cancel<T>(&mut self, slot: u32, requests: &mut Requests<T>) -> bool;

    /// The handler of a request has returned.
    fn finish(&mut self, queue: u32, finished: Finished);

    /// A request that runs has other seats from now on.
    fn resize_request(&mut self, queue: u32, resized: Resized);

    /// What a queue has used is that much seat-time more, or less if that is below zero.
    fn charge(&mut self, queue: u32, seat_time: Nanos);

    /// The seats of a request are free: at once when it has finished, or now that it has lingered.
    fn release(&mut self, queue: u32, released: Finished);
}

/// Shows the queues of a discipline. Queues go by their numbers here.
pub(super) trait InspectQueues {
    /// How many requests may wait in one queue, by the configuration; kept from before while there are no queues.
    fn queue_length_limit(&self) -> i64;

    /// The virtual time as of the last event.
    fn virtual_time(&self) -> SeatSeconds;

    /// How many requests have been given a queue, those rejected afterwards included.
    fn placed(&self) -> u64;

    /// The virtual time at the last start, and the reading of the queue that was started from.
    fn last_start(&self) -> (SeatSeconds, SeatSeconds);

    /// A number above those of all queues.
    fn queue_count(&self) -> usize;

    /// The queue of that number, which is below the count.
    fn queue(&self, number: usize) -> QueueView;

    /// How many requests wait in the queue of that number.
    fn queue_length(&self, number: usize) -> usize;

    /// The slot of the oldest request that waits in the queue of that number.
    fn first_in(&self, number: usize) -> Option<u32>;

    /// The slot of the request that waits behind the one in that slot.
    fn behind(&self, slot: u32, links: &[Links]) -> Option<u32>;

    /// The number of a queue as dumps show it, if the queue is still there.
    fn number_of(&self, queue: u32) -> Option<usize>;

    /// What the queues in which something waits read; `None` if nothing waits.
    fn reading_bounds(&self) -> Option<ReadingBounds>;

    /// The seats that are kept for newcomers at present (PF-10).
    fn kept_seats(&self) -> i64 {
        0
    }
}

/// Where a request is to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QueueChoice {
    /// There are no queues to wait in.
    Nowhere,
    /// The request waits in the queue of that key.
    Queue(u32),
    /// The request belongs into the queue of that key, which is full.
    Full(u32),
    /// The request waits in the queue of that key, instead of the waiting request in that slot: the level is full (PF-7).
    Instead {
        /// The key of the queue.
        queue: u32,
        /// The slot of the request that is rejected.
        slot: u32,
    },
}

/// The request whose turn it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Next {
    /// The key of its queue.
    pub(super) queue: u32,
    /// The slot of the request.
    pub(super) slot: u32,
    /// The seats that it needs.
    pub(super) max_seats: u32,
    /// The seats that it leaves free (PF-10).
    pub(super) kept: i64,
}

/// A request whose handler has returned, now or before it lingered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Finished {
    pub(super) work: WorkEstimate,
    pub(super) run: Run,
    pub(super) now: Instant,
    /// Whether it keeps its seats for a while, or has kept them.
    pub(super) lingers: bool,
}

/// A request that runs, and gets other seats.
#[derive(Debug, Clone, Copy)]
pub(super) struct Resized {
    pub(super) before: WorkEstimate,
    pub(super) after: WorkEstimate,
    /// Since when it had its previous seats.
    pub(super) since: Instant,
    pub(super) now: Instant,
}
