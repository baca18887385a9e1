//! Either discipline, as the configuration says; it may say something else under load (BM-3).

use super::core::Core;
use super::discipline::Look;
use super::requests::Requests;
use super::shuffle_sharding::Ticket;
use super::{
    Arrival, Discipline, Effects, Finish, Next, Outlook, PerFlow, Place, QueueView, Queuing, QueuingDiscipline,
    ReadingBounds, RequestId, Room, ShuffleSharding, TurnOrder,
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
}

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one for each level, and a request reaches it without a detour")]
enum Chosen {
    ShuffleSharded(ShuffleSharding),
    PerFlow(Box<PerFlow<Ticket>>),
}

/// Does the same with whichever discipline is chosen.
macro_rules! either {
    ($chosen:expr, $order:ident => $does:expr) => {
        match $chosen {
            Chosen::ShuffleSharded($order) => $does,
            Chosen::PerFlow($order) => {
                let $order = &mut **$order;
                $does
            }
        }
    };
}

/// The same without changing it.
macro_rules! look_at_either {
    ($chosen:expr, $order:ident => $does:expr) => {
        match $chosen {
            Chosen::ShuffleSharded($order) => $does,
            Chosen::PerFlow($order) => $does,
        }
    };
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
        look_at_either!(&self.chosen, discipline => discipline.outlook(flow, service_seconds))
    }

    /// Goes over to the discipline that the configuration names.
    #[cold]
    fn change<T>(&mut self, now: Instant, queuing: Queuing, requests: &mut Requests<T, Ticket>) {
        let waiting = requests.by_arrival();
        self.chosen = match queuing.discipline {
            QueuingDiscipline::ShuffleSharded => Chosen::ShuffleSharded(TurnOrder::new(now)),
            QueuingDiscipline::PerFlow => Chosen::PerFlow(Box::new(TurnOrder::new(now))),
        };
        requests.leave_queues();
        either!(&mut self.chosen, order => {
            TurnOrder::configure(order, now, Some(queuing), requests);
            TurnOrder::advance(order, now, 0, requests);
        });
        for (slot, hash, weight) in waiting {
            let flow = Flow::from(hash).with_weight(weight);
            let Some(work) = requests.slot(slot).map(|request| request.work) else { continue };
            let queue = match &mut self.chosen {
                // No queue is full while seats are free.
                Chosen::ShuffleSharded(order) => match order.place(flow, work, false) {
                    Place::Queue(queue) | Place::Full(queue) | Place::Instead { queue, .. } => queue,
                    Place::Nowhere => continue,
                },
                Chosen::PerFlow(order) => order.queue_of(flow),
            };
            let ticket = either!(&mut self.chosen, order => order.enqueue(queue, work));
            let stage = requests.waiting(ticket, hash, weight);
            if let Some(request) = requests.slot_mut(slot) {
                (request.queue, request.stage) = (queue, stage);
            }
            either!(&mut self.chosen, order => order.push(queue, slot, requests));
        }
    }
}

/// Apart, so that the code of the other discipline is as fast as it is alone.
#[inline(never)]
fn arrive_per_flow<T>(
    order: &mut PerFlow<Ticket>,
    core: &mut Core<T, Ticket>,
    now: Instant,
    flow: Flow<'_>,
    work: WorkEstimate,
    payload: T,
    effects: &mut impl Effects<T>,
) -> Arrival<T> {
    core.arrive(order, now, flow, work, payload, effects)
}

/// The same for the end of a request.
#[inline(never)]
fn finish_per_flow<T>(
    order: &mut PerFlow<Ticket>,
    core: &mut Core<T, Ticket>,
    now: Instant,
    id: RequestId,
    effects: &mut impl Effects<T>,
) -> Option<Finish<T>> {
    core.finish(order, now, id, effects)
}

impl Discipline for ConfiguredDiscipline {
    fn new(now: Instant) -> Self {
        Self { chosen: Chosen::ShuffleSharded(TurnOrder::new(now)) }
    }

    fn configure<T>(&mut self, now: Instant, queuing: Option<Queuing>, requests: &mut Requests<T, Ticket>) {
        match queuing {
            Some(queuing) if queuing.discipline != self.discipline() => self.change(now, queuing, requests),
            _ => either!(&mut self.chosen, order => TurnOrder::configure(order, now, queuing, requests)),
        }
    }

    fn resize(&mut self, seats: i64) {
        either!(&mut self.chosen, order => TurnOrder::resize(order, seats));
    }

    fn advance<T>(&mut self, core: &mut Core<T, Ticket>, now: Instant, effects: &mut impl Effects<T>) {
        either!(&mut self.chosen, order => core.advance(order, now, effects));
    }

    #[inline]
    fn arrive<T>(
        &mut self,
        core: &mut Core<T, Ticket>,
        now: Instant,
        flow: Flow<'_>,
        work: WorkEstimate,
        payload: T,
        effects: &mut impl Effects<T>,
    ) -> Arrival<T> {
        match &mut self.chosen {
            Chosen::ShuffleSharded(order) => core.arrive(order, now, flow, work, payload, effects),
            Chosen::PerFlow(order) => arrive_per_flow(order, core, now, flow, work, payload, effects),
        }
    }

    #[inline]
    fn dispatch<T>(&mut self, core: &mut Core<T, Ticket>, now: Instant, effects: &mut impl Effects<T>) {
        either!(&mut self.chosen, order => core.dispatch(order, now, effects));
    }

    #[inline]
    fn finish<T>(
        &mut self,
        core: &mut Core<T, Ticket>,
        now: Instant,
        id: RequestId,
        effects: &mut impl Effects<T>,
    ) -> Option<Finish<T>> {
        match &mut self.chosen {
            Chosen::ShuffleSharded(order) => core.finish(order, now, id, effects),
            Chosen::PerFlow(order) => finish_per_flow(order, core, now, id, effects),
        }
    }

    fn release<T>(
        &mut self,
        core: &mut Core<T, Ticket>,
        now: Instant,
        id: RequestId,
        effects: &mut impl Effects<T>,
    ) -> Option<T> {
        either!(&mut self.chosen, order => core.release(order, now, id, effects))
    }

    fn cancel<T>(
        &mut self,
        core: &mut Core<T, Ticket>,
        now: Instant,
        id: RequestId,
        effects: &mut impl Effects<T>,
    ) -> Option<T> {
        either!(&mut self.chosen, order => core.cancel(order, now, id, effects))
    }

    #[inline]
    fn head(&mut self, now: Instant, room: Room) -> Option<Next> {
        either!(&mut self.chosen, order => order.next(now, room))
    }

    #[inline]
    fn kept_from(&mut self, flow: Flow<'_>, work: WorkEstimate) -> Option<i64> {
        match &mut self.chosen {
            Chosen::ShuffleSharded(_) => Some(0),
            Chosen::PerFlow(order) => TurnOrder::kept_from(&mut **order, flow, work),
        }
    }
}

impl Look for ConfiguredDiscipline {
    type Ticket = Ticket;

    fn queue_length_limit(&self) -> i64 {
        look_at_either!(&self.chosen, order => order.queue_length_limit())
    }

    fn r(&self) -> SeatSeconds {
        look_at_either!(&self.chosen, order => order.r())
    }

    fn placed(&self) -> u64 {
        look_at_either!(&self.chosen, order => order.placed())
    }

    fn last_start(&self) -> (SeatSeconds, SeatSeconds) {
        look_at_either!(&self.chosen, order => order.last_start())
    }

    fn queue_count(&self) -> usize {
        look_at_either!(&self.chosen, order => order.queue_count())
    }

    fn queue(&self, number: usize) -> QueueView {
        look_at_either!(&self.chosen, order => order.queue(number))
    }

    #[inline]
    fn queue_length(&self, number: usize) -> usize {
        look_at_either!(&self.chosen, order => order.queue_length(number))
    }

    fn first_in(&self, number: usize) -> Option<u32> {
        look_at_either!(&self.chosen, order => order.first_in(number))
    }

    fn behind<T>(&self, slot: u32, requests: &Requests<T, Ticket>) -> Option<u32> {
        look_at_either!(&self.chosen, order => order.behind(slot, requests))
    }

    #[inline]
    fn number_of(&self, queue: u32) -> Option<usize> {
        look_at_either!(&self.chosen, order => order.number_of(queue))
    }

    fn reading_bounds(&self) -> Option<ReadingBounds> {
        look_at_either!(&self.chosen, order => order.reading_bounds())
    }

    fn kept_seats(&self) -> i64 {
        look_at_either!(&self.chosen, order => order.kept_seats())
    }
}
