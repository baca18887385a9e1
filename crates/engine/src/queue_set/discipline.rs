//! The discipline of a level: which of the waiting requests is next. The configuration names it, and may name another one under
//! load (BM-3).

use super::requests::Requests;
use super::turn_order::{InspectQueues, QueueChoice, TurnOrder};
use super::{Outlook, PerFlow, Queuing, QueuingDiscipline, ShuffleSharding};
use crate::time::Instant;
use crate::{Flow, WorkEstimate};

/// The discipline that the configuration of a level names.
///
/// When it names another one, requests that wait join the queues of their flows there in the order in which they arrived,
/// whatever the limits. Requests that run are charged to nobody from then on; their seats are counted as before.
///
/// A queue set chooses between the two once for each event, so that the code of either is as fast as it would be alone.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one for each level, and a request reaches it without a detour")]
pub(super) enum Discipline {
    ShuffleSharded(ShuffleSharding),
    PerFlow(Box<PerFlow>),
}

// === impl Discipline ===

impl Discipline {
    /// No queues, at that time.
    pub(super) fn new(discipline: QueuingDiscipline, now: Instant) -> Self {
        match discipline {
            QueuingDiscipline::ShuffleSharded => Self::ShuffleSharded(TurnOrder::new(now)),
            QueuingDiscipline::PerFlow => Self::PerFlow(Box::new(TurnOrder::new(now))),
        }
    }

    fn name(&self) -> QueuingDiscipline {
        match self {
            Self::ShuffleSharded(_) => QueuingDiscipline::ShuffleSharded,
            Self::PerFlow(_) => QueuingDiscipline::PerFlow,
        }
    }

    /// What can be seen of the queues.
    pub(super) fn inspect(&self) -> &dyn InspectQueues {
        match self {
            Self::ShuffleSharded(order) => order,
            Self::PerFlow(order) => &**order,
        }
    }

    /// How many requests wait in the queue of that number. Every arrival asks for it, so it is not a dynamic call.
    #[inline]
    pub(super) fn queue_length(&self, number: usize) -> usize {
        match self {
            Self::ShuffleSharded(order) => order.queue_length(number),
            Self::PerFlow(order) => order.queue_length(number),
        }
    }

    /// The number of a queue as dumps show it, if the queue is still there. No dynamic call either.
    #[inline]
    pub(super) fn number_of(&self, queue: u32) -> Option<usize> {
        match self {
            Self::ShuffleSharded(order) => order.number_of(queue),
            Self::PerFlow(order) => order.number_of(queue),
        }
    }

    /// What a request of this flow would find; `None` if there are no queues.
    pub(super) fn outlook(&self, flow: Flow<'_>, service_seconds: f64) -> Option<Outlook> {
        match self {
            Self::ShuffleSharded(order) => order.outlook(flow, service_seconds),
            Self::PerFlow(order) => order.outlook(flow, service_seconds),
        }
    }

    /// The queues are to be like this from now on; `None`: there are to be none. Queues in which something waits or runs
    /// stay until that has ended.
    pub(super) fn configure<T>(&mut self, now: Instant, queuing: Option<Queuing>, requests: &mut Requests<T>) {
        match (self, queuing) {
            (discipline, Some(queuing)) if queuing.discipline != discipline.name() => {
                discipline.change(now, queuing, requests);
            }
            (Self::ShuffleSharded(order), _) => order.configure(queuing),
            (Self::PerFlow(order), _) => order.configure(queuing),
        }
    }

    /// The level has so many seats of its own from now on.
    pub(super) fn resize(&mut self, seats: i64) {
        match self {
            Self::ShuffleSharded(order) => order.resize(seats),
            Self::PerFlow(order) => order.resize(seats),
        }
    }

    /// Goes over to the discipline that the configuration names.
    #[cold]
    fn change<T>(&mut self, now: Instant, queuing: Queuing, requests: &mut Requests<T>) {
        let waiting = requests.by_arrival();
        requests.leave_queues();
        *self = Self::new(queuing.discipline, now);
        match self {
            Self::ShuffleSharded(order) => {
                order.configure(Some(queuing));
                order.advance(now, 0, requests);
                // No queue is full while seats are free.
                join_queues(order, waiting, requests, |order, flow, work| match order.place(flow, work, false) {
                    QueueChoice::Queue(queue) | QueueChoice::Full(queue) | QueueChoice::Instead { queue, .. } => {
                        Some(queue)
                    }
                    QueueChoice::Nowhere => None,
                });
            }
            Self::PerFlow(order) => {
                order.configure(Some(queuing));
                order.advance(now, 0, requests);
                join_queues(&mut **order, waiting, requests, |order, flow, _| Some(order.queue_of(flow)));
            }
        }
    }
}

/// Requests that have waited in the queues of another discipline wait in queues of this one.
fn join_queues<T, O: TurnOrder>(
    order: &mut O,
    waiting: Vec<(u32, u64, u16)>,
    requests: &mut Requests<T>,
    mut choose: impl FnMut(&mut O, Flow<'_>, WorkEstimate) -> Option<u32>,
) {
    for (slot, hash, weight) in waiting {
        let Some(work) = requests.slot(slot).map(|request| request.work) else { continue };
        let Some(queue) = choose(order, Flow::from(hash).with_weight(weight), work) else { continue };
        let arrival_r = order.enqueue(queue, work);
        let stage = requests.begin_waiting(arrival_r, hash, weight);
        if let Some(request) = requests.slot_mut(slot) {
            (request.queue, request.stage) = (queue, stage);
        }
        order.push(queue, slot, requests);
    }
}
