//! The engine: controller, configuration and queue sets in one, for those who need no locks.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use evenkeel_api::Kind;
use evenkeel_api::annotations::NotUnderstood;

use crate::borrowing::{DemandPeriod, DivideSeats, FaithfulDivision, Granted, Ledger};
use crate::configuration::{Configuration, LevelId};
use crate::controller::{
    Applied, Borrowing, ControlledLevel, Controller, Dangling, LedgerTerms, Levels, Objects, ServerConfig, TooFewSeats,
    Unusable,
};
use crate::level::{LedgerAccount, Level, NewRequest, ObserveLevels};
use crate::queue_set::{Arrival, Effects, Ended, Finish, QueueSet, QueueSetConfig, RequestId};
use crate::retry_after::RetryAfter;
use crate::time::{Instant, Nanos};
use crate::{Attributes, Classification};

/// All decisions about the requests of one server. `T` is what the caller keeps with each request, `D` divides the
/// seats among the levels, and `O` observes the levels.
///
/// # How it is called
///
/// Objects go in with [`apply`](Self::apply). A request is [classified](Self::classify), then it [arrives](Self::arrive) with
/// an estimate of its work, and from then on goes by its [`Ticket`]: [`cancel`](Self::cancel) while it waits, and
/// [`finish`](Self::finish) when its handler has returned. [`next_timeout`](Self::next_timeout) says when time alone changes
/// something, and [`handle_timeout`](Self::handle_timeout) is to be called then: seats of lingering requests become free,
/// requests have waited for too long, the seats are divided anew. Requests that start, and requests whose time is over, are
/// told to the [`EngineEffects`].
///
/// ```
/// use evenkeel_engine::controller::Objects;
/// use evenkeel_engine::level::NewRequest;
/// use evenkeel_engine::queue_set::Arrival;
/// use evenkeel_engine::time::{Instant, SECOND};
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
/// let level = class.schema.level.id;
/// let new = NewRequest::new(class.flow(), WorkEstimate::ONE_SEAT).wait_until(now + 15 * SECOND);
/// let arrival = engine.arrive(now, level, new, "my request", &mut started);
/// let Some(Arrival::Started { id, .. }) = arrival else { panic!("there are seats") };
/// assert!(engine.finish(now, Ticket { level, id }, &mut started).is_some());
///
/// // Nothing waits and nothing lingers: the next thing to do is to divide the seats.
/// assert_eq!(engine.next_timeout(), Some(now + 10 * SECOND));
/// ```
#[derive(Debug)]
pub struct Engine<T, D = FaithfulDivision, O: ObserveLevels = ()> {
    controller: Controller<D>,
    configuration: Arc<Configuration>,
    levels: EngineLevels<T, O>,
    wants_reapply: bool,
}

/// Names a request of an engine.
///
/// Not `#[non_exhaustive]`: it is a pair of numbers, which callers keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket {
    /// The level that it is in.
    pub level: LevelId,
    /// The request among those of the level.
    pub id: RequestId,
}

/// Receives the effects of an event, in whichever level. A closure receives the starts only; the payloads of requests whose time
/// is over are dropped.
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

    /// A waiting request is rejected, since its level is full and a request of a flow with less took its place (PF-7).
    fn displaced(&mut self, level: LevelId, ended: Ended<T>) {
        let _ = level;
        drop(ended);
    }

    /// The time of a request is over, and it is gone: it has waited for its whole limit, or has stopped lingering.
    fn timed_out(&mut self, level: LevelId, ended: Ended<T>) {
        let _ = level;
        drop(ended);
    }
}

/// The result of applying a set of objects.
#[derive(Debug)]
#[non_exhaustive]
pub struct ApplyReport {
    /// For every schema that was given, whether its level exists.
    pub dangling: Vec<Dangling>,
    /// The levels that were given and could not be used, by name.
    pub unusable: Vec<(String, Unusable)>,
    /// Annotations that are not understood, each with the kind and the name of its object (BM-2).
    pub not_understood: Vec<(Kind, String, NotUnderstood)>,
    /// Whether there are fewer seats than levels that have to have one, where seats are divided exactly (LB-2a).
    pub too_few_seats: Option<TooFewSeats>,
}

/// A level, to look at.
#[derive(Debug)]
#[non_exhaustive]
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

/// The levels, by their index.
struct EngineLevels<T, O: ObserveLevels> {
    levels: Vec<Option<LevelEntry<T, O::Observer>>>,
    /// The suggestions of levels that are gone, by name: they are never forgotten (HF-13).
    gone: BTreeMap<Box<str>, RetryAfter>,
    observe: O,
    /// Decides which level may start requests, where levels borrow at once. Levels go by their indexes.
    ledger: Option<Ledger>,
}

struct LevelEntry<T, O> {
    id: LevelId,
    name: Box<str>,
    level: Level<T, O>,
    retry_after: RetryAfter,
}

/// The levels, and the effects that are told of requests which the controller starts.
struct LevelsWithEffects<'a, T, O: ObserveLevels, E> {
    levels: &'a mut EngineLevels<T, O>,
    effects: &'a mut E,
}

/// Passes the effects of a queue set on to the engine's effects.
struct InLevel<'a, E> {
    level: LevelId,
    effects: &'a mut E,
}

/// The effects where no request can start.
struct Nothing;

// === impl Engine ===

impl<T> Engine<T> {
    /// An engine for a server with that many seats, which divides them as Kubernetes does. It starts with the mandatory
    /// objects (CC-1).
    pub fn new(server_limit: i64, now: Instant) -> Self {
        Self::with_config(ServerConfig::new(server_limit), now)
    }
}

impl<T, D: DivideSeats> Engine<T, D> {
    /// An engine that divides the seats as the configuration says.
    pub fn with_config(config: ServerConfig<D>, now: Instant) -> Self {
        Self::observed(config, (), now)
    }
}

impl<T, D: DivideSeats, O: ObserveLevels> Engine<T, D, O> {
    /// The same, with an observer for each level.
    pub fn observed(config: ServerConfig<D>, observe: O, now: Instant) -> Self {
        let mut levels = EngineLevels { levels: Vec::new(), gone: BTreeMap::new(), observe, ledger: None };
        let mut told = LevelsWithEffects { levels: &mut levels, effects: &mut Nothing };
        let (controller, applied) = Controller::with_config(config, &mut told, now);
        Self { controller, configuration: Arc::new(applied.configuration), levels, wants_reapply: false }
    }

    /// Follows these objects from now on.
    pub fn apply(&mut self, objects: Objects, now: Instant, effects: &mut impl EngineEffects<T>) -> ApplyReport {
        let applied = self.controller.apply(objects, &mut LevelsWithEffects { levels: &mut self.levels, effects }, now);
        self.install(applied)
    }

    /// Digests the objects once more; to be called when [`wants_reapply`](Self::wants_reapply) says so.
    pub fn reapply(&mut self, now: Instant, effects: &mut impl EngineEffects<T>) -> ApplyReport {
        let applied = self.controller.reapply(&mut LevelsWithEffects { levels: &mut self.levels, effects }, now);
        self.install(applied)
    }

    /// Whether a level that is on its way out has become idle, so that [`reapply`](Self::reapply) would remove it.
    pub fn wants_reapply(&self) -> bool {
        self.wants_reapply
    }

    /// The server has so many seats in all from now on. They are divided among the levels at once. Requests that run go on;
    /// where there are fewer seats than they take, nothing starts until enough of them have ended. It costs little: see
    /// [`Controller::set_server_limit`].
    pub fn set_server_limit(
        &mut self,
        server_limit: i64,
        now: Instant,
        effects: &mut impl EngineEffects<T>,
    ) -> Option<TooFewSeats> {
        self.controller.set_server_limit(
            server_limit,
            &mut LevelsWithEffects { levels: &mut self.levels, effects },
            now,
        )
    }

    /// Levels borrow in this way from now on. Requests that run go on, and those that wait keep their places (BM-3).
    pub fn set_borrowing(&mut self, borrowing: Borrowing, now: Instant, effects: &mut impl EngineEffects<T>) {
        self.controller.set_borrowing(borrowing, &mut LevelsWithEffects { levels: &mut self.levels, effects }, now);
    }

    /// Levels that queue per flow keep seats for newcomers where those would wait for longer than this from now on (PF-10).
    pub fn set_newcomer_wait(&mut self, wait: Nanos, now: Instant, effects: &mut impl EngineEffects<T>) -> ApplyReport {
        let applied =
            self.controller.set_newcomer_wait(wait, &mut LevelsWithEffects { levels: &mut self.levels, effects }, now);
        self.install(applied)
    }

    /// The ledger, if levels borrow at once.
    pub fn ledger(&self) -> Option<&Ledger> {
        self.levels.ledger.as_ref()
    }

    /// When something is due, if nothing else happens before.
    pub fn next_timeout(&mut self) -> Option<Instant> {
        let entries = self.levels.levels.iter_mut().flatten();
        entries.filter_map(|entry| entry.level.next_timeout()).chain(self.controller.next_timeout()).min()
    }

    /// Does what is due by now: frees the seats of requests that have lingered, rejects requests that have waited as long as
    /// they may, removes levels that have no object and no requests any more, and divides the seats. To call it too early or
    /// too often does no harm.
    pub fn handle_timeout(&mut self, now: Instant, effects: &mut impl EngineEffects<T>) {
        for index in 0..self.levels.levels.len() {
            let Some(id) = self.levels.levels[index].as_ref().map(|entry| entry.id) else { continue };
            self.levels.event(id, now, effects, |level, told| level.handle_timeout(now, told));
            self.note_idleness(id);
        }
        if self.wants_reapply {
            self.reapply(now, effects);
        }
        self.controller.handle_timeout(&mut LevelsWithEffects { levels: &mut self.levels, effects }, now);
    }

    /// Divides the seats among the levels by what they have asked for since the last time, whether that is due or not.
    pub fn adjust(&mut self, now: Instant, effects: &mut impl EngineEffects<T>) {
        self.controller.adjust(&mut LevelsWithEffects { levels: &mut self.levels, effects }, now);
    }

    /// The configuration that governs requests now.
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
        request: NewRequest<'_>,
        payload: T,
        effects: &mut impl EngineEffects<T>,
    ) -> Option<Arrival<T>> {
        let arrival = self.levels.arrive(level, now, request, payload, effects)?;
        if matches!(arrival, Arrival::Rejected { .. }) {
            self.note_idleness(level);
        }
        Some(arrival)
    }

    /// The handler of an executing request has returned. `None` if the request is not executing.
    pub fn finish(&mut self, now: Instant, ticket: Ticket, effects: &mut impl EngineEffects<T>) -> Option<Finish<T>> {
        self.finish_charged(now, ticket, 0, effects)
    }

    /// The same, and its flow is [charged](Self::charge) that much more seat-time, or less. Nothing starts between the two.
    pub fn finish_charged(
        &mut self,
        now: Instant,
        ticket: Ticket,
        seat_time: Nanos,
        effects: &mut impl EngineEffects<T>,
    ) -> Option<Finish<T>> {
        let Ticket { level, id } = ticket;
        let finish = self.levels.event(level, now, effects, |level, told| {
            if seat_time != 0 {
                level.charge(now, id, seat_time, told);
            }
            level.finish(now, id, told)
        })?;
        self.note_idleness(level);
        finish
    }

    /// The flow of an executing request is charged that much more seat-time, or less: see [`QueueSet::charge`]. Tells whether the
    /// request is executing.
    pub fn charge(
        &mut self,
        now: Instant,
        ticket: Ticket,
        seat_time: Nanos,
        effects: &mut impl EngineEffects<T>,
    ) -> bool {
        let Ticket { level, id } = ticket;
        let charged = self.levels.event(level, now, effects, |level, told| level.charge(now, id, seat_time, told));
        charged.unwrap_or(false)
    }

    /// An executing request holds so many seats from now on: see [`QueueSet::set_seats`]. Tells how many it held.
    pub fn set_seats(
        &mut self,
        now: Instant,
        ticket: Ticket,
        seats: u32,
        effects: &mut impl EngineEffects<T>,
    ) -> Option<u32> {
        let Ticket { level, id } = ticket;
        self.levels.event(level, now, effects, |level, told| level.set_seats(now, id, seats, told))?
    }

    /// A lingering request gives its seats back before its time. `None` if the request is not lingering.
    pub fn release(&mut self, now: Instant, ticket: Ticket, effects: &mut impl EngineEffects<T>) -> Option<T> {
        let Ticket { level, id } = ticket;
        self.levels.event(level, now, effects, |level, told| level.release(now, id, told))?
    }

    /// A waiting request gives up. `None` if the request is not waiting.
    pub fn cancel(&mut self, now: Instant, ticket: Ticket, effects: &mut impl EngineEffects<T>) -> Option<T> {
        let Ticket { level, id } = ticket;
        let payload = self.levels.event(level, now, effects, |level, told| level.cancel(now, id, told))?;
        self.note_idleness(level);
        payload
    }

    /// A request of a level was rejected in that second of the wall clock: how many seconds its client should wait before
    /// it tries again (HF-12).
    pub fn retry_after(&mut self, level: LevelId, unix_second: i64) -> u8 {
        match self.levels.get_mut(level) {
            Some(entry) => {
                entry.retry_after.record_drop(unix_second);
                entry.retry_after.seconds()
            }
            None => RetryAfter::default().seconds(),
        }
    }

    /// The payload of a request, to be changed; `None` if the request is gone.
    pub fn payload_mut(&mut self, ticket: Ticket) -> Option<&mut T> {
        self.levels.get_mut(ticket.level)?.level.payload_mut(ticket.id)
    }

    /// The control plane, to look at.
    pub fn controller(&self) -> &Controller<D> {
        &self.controller
    }

    /// All levels in play, in ascending byte order of their names: everything that metrics, dumps and dashboards show.
    pub fn levels(&self) -> impl Iterator<Item = LevelView<'_, T>> {
        self.controller.levels().filter_map(|(name, control)| {
            let entry = self.levels.get(control.id())?;
            let retry_after_seconds = entry.retry_after.seconds();
            Some(LevelView { name, control, queue_set: entry.level.queue_set(), retry_after_seconds })
        })
    }

    /// The requests and queues of a level, unless the level is gone. This costs no more than an index into a table.
    #[inline]
    pub fn queue_set(&self, level: LevelId) -> Option<&QueueSet<T>> {
        self.levels.get(level).map(|entry| entry.level.queue_set())
    }

    /// The observer of a level, unless the level is gone.
    pub fn observer(&self, level: LevelId) -> Option<&O::Observer> {
        self.levels.get(level).map(|entry| entry.level.observer())
    }

    fn install(&mut self, applied: Applied) -> ApplyReport {
        let Applied { configuration, dangling, unusable, not_understood, too_few_seats } = applied;
        self.configuration = Arc::new(configuration);
        self.wants_reapply = false;
        ApplyReport { dangling, unusable, not_understood, too_few_seats }
    }

    /// A level that has no object any more goes when its last request has ended (CC-15).
    fn note_idleness(&mut self, level: LevelId) {
        let is_idle = self.levels.get(level).is_some_and(|entry| entry.level.queue_set().is_idle());
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

    fn displaced(&mut self, ended: Ended<T>) {
        self.effects.displaced(self.level, ended);
    }

    fn timed_out(&mut self, ended: Ended<T>) {
        self.effects.timed_out(self.level, ended);
    }
}

// === impl EngineLevels ===

impl<T, O: ObserveLevels> fmt::Debug for EngineLevels<T, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.levels.iter().flatten().map(|entry| &entry.name);
        f.debug_list().entries(names).finish()
    }
}

impl<T, O: ObserveLevels> EngineLevels<T, O> {
    fn get(&self, level: LevelId) -> Option<&LevelEntry<T, O::Observer>> {
        self.levels.get(level.index())?.as_ref().filter(|found| found.id == level)
    }

    fn get_mut(&mut self, level: LevelId) -> Option<&mut LevelEntry<T, O::Observer>> {
        self.levels.get_mut(level.index())?.as_mut().filter(|found| found.id == level)
    }

    /// A request arrives at a level.
    fn arrive<E: EngineEffects<T>>(
        &mut self,
        id: LevelId,
        now: Instant,
        request: NewRequest<'_>,
        payload: T,
        effects: &mut E,
    ) -> Option<Arrival<T>> {
        let Self { levels, ledger, .. } = self;
        let found = levels.get_mut(id.index())?.as_mut().filter(|found| found.id == id)?;
        let told = &mut InLevel { level: id, effects: &mut *effects };
        let Some(ledger) = ledger else { return Some(found.level.arrive(now, request, payload, told)) };
        let account = &mut LedgerAccount { ledger, level: id.index() };
        let arrival = found.level.arrive_by_grant(now, request, payload, told, account);
        self.start_granted(now, effects);
        Some(arrival)
    }

    /// Something else happens in a level; `None` if there is no such level.
    fn event<R, E: EngineEffects<T>>(
        &mut self,
        id: LevelId,
        now: Instant,
        effects: &mut E,
        event: impl FnOnce(&mut Level<T, O::Observer>, &mut InLevel<'_, E>) -> R,
    ) -> Option<R> {
        let Self { levels, ledger, .. } = self;
        let found = levels.get_mut(id.index())?.as_mut().filter(|found| found.id == id)?;
        let told = &mut InLevel { level: id, effects: &mut *effects };
        let Some(ledger) = ledger else { return Some(event(&mut found.level, told)) };
        let account = &mut LedgerAccount { ledger, level: id.index() };
        let result = found.level.by_grant(now, Granted::default(), account, |level| event(level, told));
        self.start_granted(now, effects);
        Some(result)
    }

    /// Starts requests on seats that an event has left free, wherever they wait (LB-3).
    fn start_granted<E: EngineEffects<T>>(&mut self, now: Instant, effects: &mut E) {
        let Some(ledger) = &mut self.ledger else { return };
        while let Some((index, granted)) = ledger.grant_next() {
            let account = &mut LedgerAccount { ledger: &mut *ledger, level: index };
            if let Some(LevelEntry { id, level, .. }) = &mut self.levels[index] {
                level.start_granted(now, granted, &mut InLevel { level: *id, effects: &mut *effects }, account);
            }
        }
    }
}

// === impl LevelsWithEffects ===

impl<T, O: ObserveLevels, E: EngineEffects<T>> Levels for LevelsWithEffects<'_, T, O, E> {
    fn create(&mut self, id: LevelId, name: &str, config: QueueSetConfig, now: Instant) {
        let EngineLevels { levels, gone, observe, .. } = &mut *self.levels;
        if levels.len() <= id.index() {
            levels.resize_with(id.index() + 1, || None);
        }
        let level = Level::with_observer(config, observe.observe(id, name), now);
        let retry_after = gone.get(name).cloned().unwrap_or_default();
        levels[id.index()] = Some(LevelEntry { id, name: name.into(), level, retry_after });
    }

    fn configure(&mut self, id: LevelId, config: QueueSetConfig, now: Instant) {
        if let Some(entry) = self.levels.get_mut(id) {
            entry.level.configure(now, config, &mut InLevel { level: id, effects: &mut *self.effects });
        }
    }

    fn end_demand_period(&mut self, id: LevelId, now: Instant) -> DemandPeriod {
        self.levels.get_mut(id).map(|entry| entry.level.end_demand_period(now)).unwrap_or_default()
    }

    fn remove_if_idle(&mut self, id: LevelId) -> bool {
        let is_idle = self.levels.get(id).is_none_or(|entry| entry.level.queue_set().is_idle());
        let EngineLevels { levels, gone, ledger, .. } = &mut *self.levels;
        if is_idle && let Some(ledger) = ledger {
            ledger.remove(id.index());
        }
        if is_idle
            && let Some(LevelEntry { name, retry_after, .. }) = levels.get_mut(id.index()).and_then(Option::take)
            && retry_after != RetryAfter::default()
        {
            gone.insert(name, retry_after);
        }
        is_idle
    }

    fn set_ledger(&mut self, terms: Option<&LedgerTerms>, now: Instant) {
        let Some(terms) = terms else {
            self.levels.ledger = None;
            for LevelEntry { id, level, .. } in self.levels.levels.iter_mut().flatten() {
                level.end_grants(now, &mut InLevel { level: *id, effects: &mut *self.effects });
            }
            return;
        };
        let mut ledger = self.levels.ledger.take().unwrap_or_default();
        ledger.configure(terms.seats, terms.stakes.iter().map(|(level, stake)| (level.index(), *stake)));
        for LevelEntry { id, level, .. } in self.levels.levels.iter_mut().flatten() {
            let (index, told) = (id.index(), &mut InLevel { level: *id, effects: &mut *self.effects });
            ledger.set_in_use(index, level.queue_set().seats_in_use());
            let widest = ledger.widest(index);
            level.begin_grants(now, widest, told, &mut LedgerAccount { ledger: &mut ledger, level: index });
        }
        self.levels.ledger = Some(ledger);
        self.levels.start_granted(now, self.effects);
    }
}
