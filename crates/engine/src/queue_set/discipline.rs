//! What a discipline is: the order in which the waiting requests of a level start.

use std::fmt;

use super::Queuing;
use super::requests::Requests;
use crate::time::Instant;
use crate::{Flow, WorkEstimate};

/// Decides who of those that wait in a level is next: where a request waits (placing), whose turn it is (choosing), and
/// what the turn costs (charging), by a time of its own (virtual time).
///
/// A [`QueueSet`](super::QueueSet) tells it of every event. Whether there are seats for the request that is next is not its
/// concern. [`ShuffleSharding`](super::ShuffleSharding) decides as Kubernetes does.
///
/// Queues go by keys, which mean something only to the discipline. A request keeps its key until its seats are free, also
/// when its queue is gone by then. The trait is used by static dispatch, and cannot be implemented outside of this crate.
pub trait Discipline: fmt::Debug + Sized {
    /// What is kept with each request while it waits.
    type Ticket: Copy + Default + fmt::Debug;

    /// No queues, at that time.
    fn new(now: Instant) -> Self;

    /// The queues are to be like this from now on; `None`: there are to be none. Queues in which something waits or runs
    /// stay until that has ended.
    fn configure(&mut self, queuing: Option<Queuing>);

    /// Brings the virtual time up to now, with everything as it has been since the last event. If readings were wound
    /// back, tells whether none of them went below zero by it.
    fn advance<T>(&mut self, now: Instant, limit: i64, requests: &mut Requests<T, Self::Ticket>) -> Option<bool>;

    /// Chooses a queue for a request of that flow. `is_saturated` says that no seat is free: only then may a queue be full.
    fn place(&mut self, flow: Flow<'_>, is_saturated: bool) -> Place;

    /// Whether [`next`](Self::next) would choose the request if it were the only one to wait.
    fn would_choose(&self, queue: u32, work: WorkEstimate) -> bool;

    /// A request starts that nobody has to wait for: the same as `enqueue`, `push`, `next` and `start`. `narrowed` is its
    /// work as it runs.
    fn pass(&mut self, queue: u32, work: WorkEstimate, narrowed: WorkEstimate);

    /// A request is about to wait in a queue: what is to be kept with it.
    fn enqueue(&mut self, queue: u32, work: WorkEstimate) -> Self::Ticket;

    /// The request of the last ticket is in that slot: it waits behind all others of its queue.
    fn push<T>(&mut self, queue: u32, slot: u32, requests: &mut Requests<T, Self::Ticket>);

    /// The request whose turn it is.
    fn next(&mut self, now: Instant) -> Option<Next>;

    /// There are no seats for that request, and everybody waits for it.
    fn blocked(&mut self);

    /// That request starts. Its work may have been narrowed.
    fn start<T>(&mut self, next: Next, narrowed: WorkEstimate, requests: &mut Requests<T, Self::Ticket>);

    /// A waiting request leaves its queue; it is still in its slot.
    fn cancel<T>(&mut self, slot: u32, requests: &mut Requests<T, Self::Ticket>);

    /// The handler of a request has returned.
    fn finish(&mut self, queue: u32, finished: Finished);

    /// The seats of a request are free. `has_lingered` tells whether it kept them after it had finished.
    fn release(&mut self, queue: u32, seats: u32, has_lingered: bool);

    /// The number of a queue as dumps show it, if the queue is still there.
    fn number_of(&self, queue: u32) -> Option<usize>;
}

/// Where a request is to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Nowhere: there are no queues.
    Nowhere,
    /// In the queue of that key.
    Queue(u32),
    /// In the queue of that key, which is full.
    Full(u32),
}

/// The request whose turn it is.
#[derive(Debug, Clone, Copy)]
pub struct Next {
    /// The key of its queue.
    pub(super) queue: u32,
    /// Its slot.
    pub(super) slot: u32,
    /// The seats that it needs.
    pub(super) max_seats: u32,
}

/// A request whose handler has returned.
#[derive(Debug, Clone, Copy)]
pub struct Finished {
    pub(super) work: WorkEstimate,
    pub(super) started: Instant,
    pub(super) now: Instant,
    /// Whether it keeps its seats for a while.
    pub(super) lingers: bool,
}
