//! Either discipline, as the configuration says; it may say something else under load (BM-3).

use super::core::Core;
use super::discipline::Look;
use super::requests::{Requests, Stage};
use super::shuffle_sharding::Ticket;
use super::{
    Arrival, Discipline, Effects, Finish, Next, Outlook, PerFlow, Phase, Place, QueueView, Queuing, QueuingDiscipline,
    ReadingBounds, RequestId, ShuffleSharding, TurnOrder,
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
    /// The flows of requests that wait in shuffle-sharded queues. A queue per flow knows its flow.
    waiting: WaitingFlows,
}

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one for each level, and a request reaches it without a detour")]
enum Chosen {
    ShuffleSharded(ShuffleSharding),
    PerFlow(Box<PerFlow<Ticket>>),
}

/// The flows of waiting requests.
#[derive(Debug, Default)]
struct WaitingFlows {
    /// By the slots of the requests.
    flows: Vec<WaitingFlow>,
    noted: u64,
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
    ($chosen:expr, $order:ident => $does:expr) => {
        match $chosen {
            Chosen::ShuffleSharded($order) => $does,
            Chosen::PerFlow($order) => {
                let $order = $order.as_mut();
                apart(|| $does)
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

/// Keeps the code of one discipline out of that of the other, so that each is as fast as it is alone.
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
        look_at_either!(&self.chosen, discipline => discipline.outlook(flow, service_seconds))
    }

    /// Goes over to the discipline that the configuration names.
    #[cold]
    fn change<T>(&mut self, now: Instant, queuing: Queuing, requests: &mut Requests<T, Ticket>) {
        let waiting = self.by_arrival(requests);
        self.waiting.flows.clear();
        self.chosen = match queuing.discipline {
            QueuingDiscipline::ShuffleSharded => Chosen::ShuffleSharded(TurnOrder::new(now)),
            QueuingDiscipline::PerFlow => Chosen::PerFlow(Box::new(TurnOrder::new(now))),
        };
        requests.leave_queues();
        either!(&mut self.chosen, order => {
            TurnOrder::configure(order, now, Some(queuing), requests);
            TurnOrder::advance(order, now, 0, requests);
        });
        for (slot, waiting) in waiting {
            let flow = Flow::from(waiting.hash).with_weight(waiting.weight);
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
            if let Some(request) = requests.slot_mut(slot) {
                (request.queue, request.stage) = (queue, Stage::Waiting(ticket));
            }
            either!(&mut self.chosen, order => order.push(queue, slot, requests));
            if matches!(self.chosen, Chosen::ShuffleSharded(_)) {
                self.waiting.note(slot as usize, flow);
            }
        }
    }

    /// The slots of all waiting requests and their flows, in the order of their arrival.
    fn by_arrival<T>(&self, requests: &Requests<T, Ticket>) -> Vec<(u32, WaitingFlow)> {
        let waiting = requests.iter().filter(|(_, request)| request.phase() == Some(Phase::Waiting));
        let with_flow = |(id, queue): (RequestId, u32)| {
            let flow = match &self.chosen {
                Chosen::ShuffleSharded(_) => self.waiting.flows[id.slot()],
                Chosen::PerFlow(order) => {
                    let (hash, weight) = order.flow_of(queue);
                    WaitingFlow { hash, weight, arrival: order.arrival_of(id.slot_number()).into() }
                }
            };
            (id.slot_number(), flow)
        };
        let mut slots: Vec<_> = waiting.map(|(id, request)| with_flow((id, request.queue))).collect();
        slots.sort_unstable_by_key(|(_, flow)| flow.arrival);
        slots
    }
}

impl Discipline for ConfiguredDiscipline {
    fn new(now: Instant) -> Self {
        Self { chosen: Chosen::ShuffleSharded(TurnOrder::new(now)), waiting: WaitingFlows::default() }
    }

    fn configure<T>(&mut self, now: Instant, queuing: Option<Queuing>, requests: &mut Requests<T, Ticket>) {
        match queuing {
            Some(queuing) if queuing.discipline != self.discipline() => self.change(now, queuing, requests),
            _ => either!(&mut self.chosen, order => TurnOrder::configure(order, now, queuing, requests)),
        }
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
            Chosen::ShuffleSharded(order) => {
                let arrival = core.arrive(order, now, flow, work, payload, effects);
                if let Arrival::Waiting { id, .. } = &arrival {
                    self.waiting.note(id.slot(), flow);
                }
                arrival
            }
            Chosen::PerFlow(order) => apart(|| core.arrive(order.as_mut(), now, flow, work, payload, effects)),
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
        either!(&mut self.chosen, order => core.finish(order, now, id, effects))
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
    fn head(&mut self, now: Instant) -> Option<Next> {
        either!(&mut self.chosen, order => order.next(now))
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
}

// === impl WaitingFlows ===

impl WaitingFlows {
    #[inline]
    fn note(&mut self, slot: usize, flow: Flow<'_>) {
        if self.flows.len() <= slot {
            self.flows.resize(slot + 1, WaitingFlow::default());
        }
        self.noted += 1;
        self.flows[slot] = WaitingFlow { hash: flow.hash(), weight: flow.weight(), arrival: self.noted };
    }
}
