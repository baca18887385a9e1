//! The engine: controller, configuration and queue sets in one, for those who need no locks.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::borrowing::{DemandPeriod, DivideSeats, FaithfulDivision};
use crate::configuration::{Configuration, LevelId};
use crate::controller::{Applied, ControlledLevel, Controller, Dangling, Levels, Objects, Unusable};
use crate::queue_set::{Arrival, Effects, Finish, QueueSet, QueueSetConfig, RequestId};
use crate::retry_after::RetryAfter;
use crate::time::Instant;
use crate::{Attributes, Classification, WorkEstimate};

/// All decisions about the requests of one server. `T` is what the caller keeps with each request, and `D` divides the
/// seats among the levels.
///
/// # How it is called
///
/// Objects go in with [`apply`](Self::apply), and the seats are divided anew with [`adjust`](Self::adjust) every
/// [`ADJUSTMENT_PERIOD`](crate::controller::ADJUSTMENT_PERIOD). A request is [classified](Self::classify), then it
/// [arrives](Self::arrive) with an estimate of its work, and from then on goes by its [`Ticket`]:
/// [`cancel`](Self::cancel) while it waits, [`finish`](Self::finish) when its handler has returned, and
/// [`release`](Self::release) when it has lingered. Requests that start are told to the [`EngineEffects`].
///
/// ```
/// use evenkeel_engine::controller::Objects;
/// use evenkeel_engine::queue_set::Arrival;
/// use evenkeel_engine::time::Instant;
/// use evenkeel_engine::{Attributes, Engine, RequestInfo, Ticket, User, WorkEstimate};
///
/// let now = Instant::from_nanos(0);
/// let mut started = |_: Ticket, _: &mut &str| {};
/// let mut engine = Engine::new(600, now);
/// engine.apply(Objects::bootstrap(), now, &mut started);
///
/// let user = User::new("alice", ["system:authenticated"]);
/// let request = RequestInfo { path: "/orders".into(), verb: "get".into(), ..RequestInfo::default() };
/// let configuration = engine.configuration();
/// let class = configuration.classify(Attributes { user: &user, request: &request });
/// assert_eq!((&*class.schema.name, &*class.schema.level.name), ("global-default", "global-default"));
///
/// let (level, hash) = (class.schema.level.id, class.flow_hash);
/// let arrival = engine.arrive(now, level, hash, WorkEstimate::ONE_SEAT, "my request", &mut started);
/// let Some(Arrival::Started { id, .. }) = arrival else { panic!("there are seats") };
/// assert!(engine.finish(now, Ticket { level, id }, &mut started).is_some());
/// ```
#[derive(Debug)]
pub struct Engine<T, D = FaithfulDivision> {
    controller: Controller<D>,
    configuration: Arc<Configuration>,
    levels: Table<T>,
    wants_reapply: bool,
}

/// Names a request of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ticket {
    /// The level that it is in.
    pub level: LevelId,
    /// The request among those of the level.
    pub id: RequestId,
}

/// Told what an event brings about, in whichever level. A closure is told of the starts only.
pub trait EngineEffects<T> {
    /// A request starts.
    fn started(&mut self, ticket: Ticket, payload: &mut T);

    /// The request that is next in a level needs more seats than are free.
    fn blocked(&mut self, level: LevelId, payload: &T) {
        let _ = (level, payload);
    }

    /// The progress meter of a level was wound back.
    fn epoch_advanced(&mut self, level: LevelId, clean: bool) {
        let _ = (level, clean);
    }
}

/// What came of a set of objects.
#[derive(Debug)]
pub struct ApplyReport {
    /// For every schema that was given, whether its level exists.
    pub dangling: Vec<Dangling>,
    /// The levels that were given and could not be used, by name.
    pub unusable: Vec<(String, Unusable)>,
}

/// A level, to look at.
#[derive(Debug)]
pub struct LevelView<'a, T> {
    /// The level's name.
    pub name: &'a str,
    /// Its object, its limits and what it has asked for.
    pub control: &'a ControlledLevel,
    /// Its requests and queues.
    pub queue_set: &'a QueueSet<T>,
    /// How long its rejected clients are told to wait, in seconds.
    pub retry_after_seconds: u8,
}

/// The queue sets, by the number of their level.
#[derive(Debug)]
struct Table<T> {
    levels: Vec<Option<Level<T>>>,
    /// What levels that are gone told their rejected clients, by name: it is never forgotten (HF-13).
    gone: BTreeMap<Box<str>, RetryAfter>,
}

#[derive(Debug)]
struct Level<T> {
    id: LevelId,
    /// `None` until the controller has said all that there is to say of it.
    name: Option<Box<str>>,
    queue_set: QueueSet<T>,
    retry_after: RetryAfter,
}

/// The table together with who is told of requests that the controller starts.
struct Told<'a, T, E> {
    levels: &'a mut Table<T>,
    effects: &'a mut E,
}

/// Tells the engine's effects what a queue set tells its own.
struct InLevel<'a, E> {
    level: LevelId,
    effects: &'a mut E,
}

/// For when there is nothing that could start.
struct Nothing;

// === impl Engine ===

impl<T> Engine<T> {
    /// An engine for a server with that many seats, which divides them as Kubernetes does. It starts with the mandatory
    /// objects (CC-1).
    pub fn new(server_limit: i64, now: Instant) -> Self {
        Self::with_division(FaithfulDivision::default(), server_limit, now)
    }
}

impl<T, D: DivideSeats> Engine<T, D> {
    /// An engine that divides the seats in another way.
    pub fn with_division(division: D, server_limit: i64, now: Instant) -> Self {
        let mut levels = Table { levels: Vec::new(), gone: BTreeMap::new() };
        let mut told = Told { levels: &mut levels, effects: &mut Nothing };
        let (controller, applied) = Controller::with_division(division, server_limit, &mut told, now);
        levels.name(controller.levels());
        Self { controller, configuration: Arc::new(applied.configuration), levels, wants_reapply: false }
    }

    /// Follows these objects from now on.
    pub fn apply(&mut self, objects: Objects, now: Instant, effects: &mut impl EngineEffects<T>) -> ApplyReport {
        let applied = self.controller.apply(objects, &mut Told { levels: &mut self.levels, effects }, now);
        self.install(applied)
    }

    /// Digests the objects once more; to be called when [`wants_reapply`](Self::wants_reapply) says so.
    pub fn reapply(&mut self, now: Instant, effects: &mut impl EngineEffects<T>) -> ApplyReport {
        let applied = self.controller.reapply(&mut Told { levels: &mut self.levels, effects }, now);
        self.install(applied)
    }

    /// Whether a level that is on its way out has become idle, so that [`reapply`](Self::reapply) would remove it.
    pub fn wants_reapply(&self) -> bool {
        self.wants_reapply
    }

    /// Divides the seats among the levels by what they have asked for since the last time.
    pub fn adjust(&mut self, now: Instant, effects: &mut impl EngineEffects<T>) {
        self.controller.adjust(&mut Told { levels: &mut self.levels, effects }, now);
    }

    /// What governs requests now.
    pub fn configuration(&self) -> Arc<Configuration> {
        Arc::clone(&self.configuration)
    }

    /// Where a request belongs.
    pub fn classify<'a>(&'a self, attributes: Attributes<'a>) -> Classification<'a> {
        self.configuration.classify(attributes)
    }

    /// A request arrives at a level. `None` if there is no such level any more: it has to be classified again.
    pub fn arrive(
        &mut self,
        now: Instant,
        level: LevelId,
        flow_hash: u64,
        work: WorkEstimate,
        payload: T,
        effects: &mut impl EngineEffects<T>,
    ) -> Option<Arrival<T>> {
        let set = &mut self.levels.get_mut(level)?.queue_set;
        let arrival = set.arrive(now, flow_hash, work, payload, &mut InLevel { level, effects });
        if matches!(arrival, Arrival::Rejected { .. }) {
            self.note_idleness(level);
        }
        Some(arrival)
    }

    /// The handler of an executing request has returned. `None` if the request is not executing.
    pub fn finish(&mut self, now: Instant, ticket: Ticket, effects: &mut impl EngineEffects<T>) -> Option<Finish<T>> {
        let Ticket { level, id } = ticket;
        let set = &mut self.levels.get_mut(level)?.queue_set;
        let finish = set.finish(now, id, &mut InLevel { level, effects });
        self.note_idleness(level);
        finish
    }

    /// A lingering request gives its seats back. `None` if the request is not lingering.
    pub fn release(&mut self, now: Instant, ticket: Ticket, effects: &mut impl EngineEffects<T>) -> Option<T> {
        let Ticket { level, id } = ticket;
        self.levels.get_mut(level)?.queue_set.release(now, id, &mut InLevel { level, effects })
    }

    /// A waiting request gives up. `None` if the request is not waiting.
    pub fn cancel(&mut self, now: Instant, ticket: Ticket, effects: &mut impl EngineEffects<T>) -> Option<T> {
        let Ticket { level, id } = ticket;
        let set = &mut self.levels.get_mut(level)?.queue_set;
        let payload = set.cancel(now, id, &mut InLevel { level, effects });
        self.note_idleness(level);
        payload
    }

    /// A request of a level was turned away in that second of the wall clock: how many seconds its client is to wait
    /// before it tries again (HF-12).
    pub fn retry_after(&mut self, level: LevelId, unix_second: i64) -> u8 {
        match self.levels.get_mut(level) {
            Some(level) => {
                level.retry_after.record_drop(unix_second);
                level.retry_after.seconds()
            }
            None => RetryAfter::default().seconds(),
        }
    }

    /// What a request keeps, unless it is gone, to be changed.
    pub fn payload_mut(&mut self, ticket: Ticket) -> Option<&mut T> {
        self.levels.get_mut(ticket.level)?.queue_set.payload_mut(ticket.id)
    }

    /// The control plane, to look at.
    pub fn controller(&self) -> &Controller<D> {
        &self.controller
    }

    /// All levels in play, in ascending byte order of their names: everything that metrics, dumps and dashboards show.
    pub fn levels(&self) -> impl Iterator<Item = LevelView<'_, T>> {
        self.controller.levels().filter_map(|(name, control)| {
            let level = self.levels.get(control.id())?;
            let retry_after_seconds = level.retry_after.seconds();
            Some(LevelView { name, control, queue_set: &level.queue_set, retry_after_seconds })
        })
    }

    fn install(&mut self, applied: Applied) -> ApplyReport {
        let Applied { configuration, dangling, unusable } = applied;
        self.configuration = Arc::new(configuration);
        self.levels.name(self.controller.levels());
        self.wants_reapply = false;
        ApplyReport { dangling, unusable }
    }

    /// A level that has no object any more goes when its last request has ended (CC-15).
    fn note_idleness(&mut self, level: LevelId) {
        let is_idle = self.levels.get(level).is_some_and(|level| level.queue_set.is_idle());
        if is_idle && !self.wants_reapply {
            self.wants_reapply = self.controller.is_quiescing(level);
        }
    }
}

// === impl EngineEffects ===

impl<T, F: FnMut(Ticket, &mut T)> EngineEffects<T> for F {
    fn started(&mut self, ticket: Ticket, payload: &mut T) {
        self(ticket, payload);
    }
}

impl<T> EngineEffects<T> for Nothing {
    fn started(&mut self, _ticket: Ticket, _payload: &mut T) {}
}

impl<T, E: EngineEffects<T>> Effects<T> for InLevel<'_, E> {
    fn started(&mut self, id: RequestId, payload: &mut T) {
        self.effects.started(Ticket { level: self.level, id }, payload);
    }

    fn blocked(&mut self, payload: &T) {
        self.effects.blocked(self.level, payload);
    }

    fn epoch_advanced(&mut self, clean: bool) {
        self.effects.epoch_advanced(self.level, clean);
    }
}

// === impl Table ===

impl<T> Table<T> {
    fn get(&self, level: LevelId) -> Option<&Level<T>> {
        self.levels.get(level.index())?.as_ref().filter(|found| found.id == level)
    }

    fn get_mut(&mut self, level: LevelId) -> Option<&mut Level<T>> {
        self.levels.get_mut(level.index())?.as_mut().filter(|found| found.id == level)
    }

    /// Gives new levels their names, and what was known of a level of that name.
    fn name<'a>(&mut self, levels: impl Iterator<Item = (&'a str, &'a ControlledLevel)>) {
        for (name, control) in levels {
            let before = self.gone.get(name).cloned();
            if let Some(level) = self.get_mut(control.id()).filter(|level| level.name.is_none()) {
                level.name = Some(name.into());
                level.retry_after = before.unwrap_or_default();
            }
        }
    }
}

// === impl Told ===

impl<T, E: EngineEffects<T>> Levels for Told<'_, T, E> {
    fn create(&mut self, level: LevelId, config: QueueSetConfig, now: Instant) {
        let table = &mut self.levels.levels;
        if table.len() <= level.index() {
            table.resize_with(level.index() + 1, || None);
        }
        let queue_set = QueueSet::new(config, now);
        table[level.index()] = Some(Level { id: level, name: None, queue_set, retry_after: RetryAfter::default() });
    }

    fn configure(&mut self, level: LevelId, config: QueueSetConfig, now: Instant) {
        if let Some(found) = self.levels.get_mut(level) {
            found.queue_set.configure(now, config, &mut InLevel { level, effects: &mut *self.effects });
        }
    }

    fn end_demand_period(&mut self, level: LevelId, now: Instant) -> DemandPeriod {
        let level = self.levels.get_mut(level);
        level.map(|level| level.queue_set.demand_mut().read_and_reset(now)).unwrap_or_default()
    }

    fn remove_if_idle(&mut self, level: LevelId) -> bool {
        let is_idle = self.levels.get(level).is_none_or(|level| level.queue_set.is_idle());
        let Table { levels, gone } = &mut *self.levels;
        if is_idle
            && let Some(Level { name: Some(name), retry_after, .. }) =
                levels.get_mut(level.index()).and_then(Option::take)
            && retry_after != RetryAfter::default()
        {
            gone.insert(name, retry_after);
        }
        is_idle
    }
}
