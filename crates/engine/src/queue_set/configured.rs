//! Either discipline, as the configuration says; it may say something else under load (BM-3).

use super::discipline::Look;
use super::line::Line;
use super::requests::{Requests, Stage};
use super::shuffle_sharding::Ticket;
use super::{
    Discipline, Finished, Next, Outlook, PerFlow, Phase, Place, QueueView, Queuing, QueuingDiscipline, ReadingBounds,
    ShuffleSharding,
};
use crate::time::Instant;
use crate::{Flow, SeatSeconds, WorkEstimate};

/// The discipline that the configuration of a level names.
///
/// When it names another one, requests that wait join the queues of their flows there in the order in which they arrived,
/// whatever the limits. Requests that run are charged to nobody from then on; their seats are counted as before.
#[derive(Debug)]
pub struct ConfiguredDiscipline {
    chosen: Chosen,
    /// The flow of the request that was placed last, and of each waiting request by its slot.
    placed: WaitingFlow,
    waiting: Vec<WaitingFlow>,
}

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one for each level, and a request reaches it without a detour")]
enum Chosen {
    ShuffleSharded(ShuffleSharding),
    PerFlow(Box<PerFlow<Ticket>>),
}

/// The flow of a waiting request.
#[derive(Debug, Clone, Copy, Default)]
struct WaitingFlow {
    hash: u64,
    weight: u16,
    /// How many requests had waited before it. (The time of its arrival may be that of others too.)
    arrival: u64,
}

/// Does the same with whichever discipline is chosen.
macro_rules! either {
    ($chosen:expr, $discipline:ident => $does:expr) => {
        match $chosen {
            Chosen::ShuffleSharded($discipline) => $does,
            Chosen::PerFlow($discipline) => apart(|| $does),
        }
    };
}

/// Keeps the code of one discipline out of that of the other, which is then as fast as it is alone.
#[cold]
#[inline(never)]
fn apart<R>(does: impl FnOnce() -> R) -> R {
    does()
}

// === impl ConfiguredDiscipline ===

impl ConfiguredDiscipline {
    /// What is chosen at present.
    pub(super) fn discipline(&self) -> QueuingDiscipline {
        match &self.chosen {
            Chosen::ShuffleSharded(_) => QueuingDiscipline::ShuffleSharded,
            Chosen::PerFlow(_) => QueuingDiscipline::PerFlow,
        }
    }

    /// What a request of this flow would find; `None` if there are no queues.
    pub(super) fn outlook(&self, flow: Flow<'_>, service_seconds: f64) -> Option<Outlook> {
        either!(&self.chosen, discipline => discipline.outlook(flow, service_seconds))
    }

    /// Goes over to the discipline that the configuration names.
    #[cold]
    fn change<T>(&mut self, now: Instant, queuing: Queuing, requests: &mut Requests<T, Ticket>) {
        let waiting = self.by_arrival(requests);
        self.chosen = match queuing.discipline {
            QueuingDiscipline::ShuffleSharded => Chosen::ShuffleSharded(ShuffleSharding::new(now)),
            QueuingDiscipline::PerFlow => Chosen::PerFlow(Box::new(PerFlow::new(now))),
        };
        requests.leave_queues();
        either!(&mut self.chosen, discipline => {
            discipline.configure(now, Some(queuing), requests);
            discipline.advance(now, 0, requests);
        });
        for slot in waiting {
            let flow = Flow::from(self.waiting[slot as usize].hash).with_weight(self.waiting[slot as usize].weight);
            let Some(work) = requests.slot(slot).map(|request| request.work) else { continue };
            let queue = match &mut self.chosen {
                // No queue is full while seats are free.
                Chosen::ShuffleSharded(discipline) => match discipline.place(flow, work, false) {
                    Place::Queue(queue) | Place::Full(queue) | Place::Instead { queue, .. } => queue,
                    Place::Nowhere => continue,
                },
                Chosen::PerFlow(discipline) => discipline.queue_of(flow),
            };
            let ticket = either!(&mut self.chosen, discipline => discipline.enqueue(queue, work));
            if let Some(request) = requests.slot_mut(slot) {
                (request.queue, request.stage) = (queue, Stage::Waiting(ticket));
            }
            either!(&mut self.chosen, discipline => discipline.push(queue, slot, requests));
        }
    }

    /// The slots of all waiting requests, in the order of their arrival.
    fn by_arrival<T>(&self, requests: &Requests<T, Ticket>) -> Vec<u32> {
        let waiting = requests.iter().filter(|(_, request)| request.phase() == Some(Phase::Waiting));
        let mut slots: Vec<_> = waiting.map(|(id, _)| id.slot_number()).collect();
        slots.sort_unstable_by_key(|&slot| self.waiting[slot as usize].arrival);
        slots
    }
}

impl Discipline for ConfiguredDiscipline {
    fn new(now: Instant) -> Self {
        let (placed, waiting) = (WaitingFlow::default(), Vec::new());
        Self { chosen: Chosen::ShuffleSharded(ShuffleSharding::new(now)), placed, waiting }
    }

    fn configure<T>(&mut self, now: Instant, queuing: Option<Queuing>, requests: &mut Requests<T, Ticket>) {
        match queuing {
            Some(queuing) if queuing.discipline != self.discipline() => self.change(now, queuing, requests),
            _ => either!(&mut self.chosen, discipline => discipline.configure(now, queuing, requests)),
        }
    }

    #[inline]
    fn advance<T>(&mut self, now: Instant, limit: i64, requests: &mut Requests<T, Ticket>) -> Option<bool> {
        either!(&mut self.chosen, discipline => discipline.advance(now, limit, requests))
    }

    #[inline]
    fn place(&mut self, flow: Flow<'_>, work: WorkEstimate, is_saturated: bool) -> Place {
        (self.placed.hash, self.placed.weight) = (flow.hash(), flow.weight());
        either!(&mut self.chosen, discipline => discipline.place(flow, work, is_saturated))
    }

    #[inline]
    fn would_choose(&self, queue: u32, work: WorkEstimate) -> bool {
        either!(&self.chosen, discipline => discipline.would_choose(queue, work))
    }

    #[inline]
    fn pass(&mut self, queue: u32, work: WorkEstimate, narrowed: WorkEstimate) {
        either!(&mut self.chosen, discipline => discipline.pass(queue, work, narrowed));
    }

    #[inline]
    fn enqueue(&mut self, queue: u32, work: WorkEstimate) -> Ticket {
        either!(&mut self.chosen, discipline => discipline.enqueue(queue, work))
    }

    #[inline]
    fn push<T>(&mut self, queue: u32, slot: u32, requests: &mut Requests<T, Ticket>) {
        if self.waiting.len() <= slot as usize {
            self.waiting.resize(slot as usize + 1, WaitingFlow::default());
        }
        self.placed.arrival += 1;
        self.waiting[slot as usize] = self.placed;
        either!(&mut self.chosen, discipline => discipline.push(queue, slot, requests));
    }

    #[inline]
    fn next(&mut self, now: Instant) -> Option<Next> {
        either!(&mut self.chosen, discipline => discipline.next(now))
    }

    fn blocked(&mut self, next: Next) {
        either!(&mut self.chosen, discipline => discipline.blocked(next));
    }

    #[inline]
    fn start<T>(&mut self, next: Next, narrowed: WorkEstimate, requests: &mut Requests<T, Ticket>) {
        either!(&mut self.chosen, discipline => discipline.start(next, narrowed, requests));
    }

    fn cancel<T>(&mut self, slot: u32, requests: &mut Requests<T, Ticket>) -> bool {
        either!(&mut self.chosen, discipline => discipline.cancel(slot, requests))
    }

    #[inline]
    fn finish(&mut self, queue: u32, finished: Finished) {
        either!(&mut self.chosen, discipline => discipline.finish(queue, finished));
    }

    #[inline]
    fn release(&mut self, queue: u32, released: Finished) {
        either!(&mut self.chosen, discipline => discipline.release(queue, released));
    }

    #[inline]
    fn number_of(&self, queue: u32) -> Option<usize> {
        either!(&self.chosen, discipline => discipline.number_of(queue))
    }
}

impl Look for ConfiguredDiscipline {
    type Ticket = Ticket;

    fn queue_length_limit(&self) -> i64 {
        either!(&self.chosen, discipline => discipline.queue_length_limit())
    }

    fn r(&self) -> SeatSeconds {
        either!(&self.chosen, discipline => discipline.r())
    }

    fn placed(&self) -> u64 {
        either!(&self.chosen, discipline => discipline.placed())
    }

    fn last_start(&self) -> (SeatSeconds, SeatSeconds) {
        either!(&self.chosen, discipline => discipline.last_start())
    }

    fn queue_count(&self) -> usize {
        either!(&self.chosen, discipline => discipline.queue_count())
    }

    fn queue(&self, number: usize) -> QueueView {
        either!(&self.chosen, discipline => discipline.queue(number))
    }

    #[inline]
    fn queue_length(&self, number: usize) -> usize {
        either!(&self.chosen, discipline => discipline.queue_length(number))
    }

    fn line(&self, number: usize) -> Option<&Line<Ticket>> {
        either!(&self.chosen, discipline => discipline.line(number))
    }

    fn reading_bounds(&self) -> Option<ReadingBounds> {
        either!(&self.chosen, discipline => discipline.reading_bounds())
    }
}
