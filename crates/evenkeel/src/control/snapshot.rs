//! `Snapshot`: everything that a request needs to find its level. It is replaced as a whole when the objects change.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use evenkeel_api::Preset;
use evenkeel_api::annotations::CostUnit;
use evenkeel_engine::borrowing::DemandPeriod;
use evenkeel_engine::controller::{LedgerTerms, Levels};
use evenkeel_engine::queue_set::QueueSetConfig;
use evenkeel_engine::time::Instant;
use evenkeel_engine::{Configuration, LevelId, Schema, Terms};

use crate::control::accounts::{AccountSample, SchemaAccounts};
use crate::control::clock::Clock;
use crate::control::events::Listeners;
use crate::control::ledger::SharedLedger;
use crate::control::level::Level;
use crate::control::level_listeners::LevelListeners;
use crate::control::long_running::LongRunningCount;
use crate::control::uid_headers::UidHeaders;
use crate::control::upkeep::Upkeep;
use crate::control::wakers::Wakers;
use crate::sync::{Mutex, PoisonError};

/// A configuration and the levels that it leads to. It never changes.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) configuration: Arc<Configuration>,
    pub(crate) levels: LevelTable,
    /// One row for each flow schema of the configuration. Each copy is made when its first request comes: there may be
    /// thousands of flow schemas, and most never get one.
    destinations: Box<[[OnceLock<Arc<Destination>>; COPIES]]>,
    /// The accounts of each flow schema; empty if none has any.
    accounts: Box<[Option<Arc<SchemaAccounts>>]>,
    upkeep: Arc<Upkeep>,
    preset: Preset,
}

/// The level of the requests of a flow schema, and what they need there. It is all that requests share while they are under way.
/// There are copies, so that threads do not contend for one reference count.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Destination {
    pub(crate) level: Arc<Level>,
    /// The number that the series of the flow schema has in the level.
    pub(crate) series: u32,
    /// The long-running requests of the level.
    pub(crate) long_running: Arc<LongRunningCount>,
    schema: usize,
    configuration: Arc<Configuration>,
    /// The headers with the UIDs of schema and level, for a Kubernetes API only (HF-15).
    pub(crate) uid_headers: Option<UidHeaders>,
    /// The accounts of the flow schema, if its objects say something of costs or rates.
    pub(crate) accounts: Option<Arc<SchemaAccounts>>,
    /// The same place for requests whose routes say what their cost is counted in, as far as there were any.
    of_routes: Mutex<Vec<(CostUnit, Option<Arc<Destination>>)>>,
    pub(crate) upkeep: Arc<Upkeep>,
}

/// How many copies there are of everything that requests share.
const COPIES: usize = 8;

thread_local! {
    /// The index of the copy that the thread uses.
    static COPY: usize = {
        static THREADS: AtomicUsize = AtomicUsize::new(0);
        THREADS.fetch_add(1, Ordering::Relaxed) % COPIES
    };
}

/// The levels, by the index of their names.
#[derive(Debug, Clone, Default)]
pub(crate) struct LevelTable(Vec<Option<Arc<Level>>>);

/// The levels while the controller changes them, and the tasks to be woken because of that.
#[derive(Debug)]
pub(crate) struct LevelChanges {
    pub(crate) table: LevelTable,
    pub(crate) wakers: Wakers,
    /// Makes the listeners of new levels.
    pub(crate) listeners: Listeners,
    pub(crate) clock: Clock,
    /// The preset of new levels.
    pub(crate) preset: Preset,
    /// The ledger, which is used if levels borrow at once.
    pub(crate) ledger: Arc<SharedLedger>,
}

// === impl Snapshot ===

impl Snapshot {
    pub(crate) fn new(configuration: Configuration, levels: LevelTable, upkeep: &Arc<Upkeep>, preset: Preset) -> Self {
        for schema in configuration.schemas() {
            if let Some(level) = levels.get(schema.level.id) {
                level.listeners().metrics.update_series(schema);
            }
        }
        let destinations = configuration.schemas().iter().map(|_| Default::default()).collect();
        let needs_accounts = |schema: &Schema| schema.terms.as_deref().is_some_and(Terms::needs_accounts);
        let has_accounts = configuration.schemas().iter().any(needs_accounts);
        for level in levels.iter() {
            let of_level = configuration.schemas().iter().filter(|schema| schema.level.id == level.id);
            level.accounts.keep_only(|| of_level.collect());
        }
        let accounts_of = |schema: &Schema| levels.get(schema.level.id)?.accounts.of(schema);
        let accounts =
            if has_accounts { configuration.schemas().iter().map(accounts_of).collect() } else { Box::default() };
        let (configuration, upkeep) = (Arc::new(configuration), Arc::clone(upkeep));
        Self { configuration, levels, destinations, accounts, upkeep, preset }
    }

    /// Where the requests of that flow schema go.
    #[inline]
    pub(crate) fn destination(&self, schema: usize) -> &Arc<Destination> {
        // A thread that is ending uses that of another.
        let copy = &self.destinations[schema][COPY.try_with(|copy| *copy).unwrap_or(0)];
        copy.get().unwrap_or_else(|| self.add_destination(schema, copy))
    }

    /// The accounts of that flow schema, if it has any.
    pub(crate) fn accounts_of(&self, schema: usize) -> Option<&Arc<SchemaAccounts>> {
        self.accounts.get(schema)?.as_ref()
    }

    /// The counts of costs and rates, of each level that has any.
    #[cfg_attr(not(feature = "metrics"), expect(dead_code, reason = "metrics alone show it"))]
    pub(crate) fn account_samples(&self) -> Vec<AccountSample> {
        let name = |level: &Level| self.configuration.schemas().iter().find(|schema| schema.level.id == level.id);
        let sample = |level: &Arc<Level>| level.accounts.sample(&name(level)?.level.name);
        self.levels.iter().filter_map(sample).collect()
    }

    /// Makes a copy. Each is made anew: clones of one header value would share a reference count.
    #[cold]
    fn add_destination<'a>(&self, schema: usize, copy: &'a OnceLock<Arc<Destination>>) -> &'a Arc<Destination> {
        // Made before it is put in place, so that nobody takes a level's lock while others wait for the copy.
        let made = Destination::new(&self.configuration, schema, &self.levels, &self.upkeep, self.preset);
        let made = Arc::new(Destination { accounts: self.accounts_of(schema).cloned(), ..made });
        copy.get_or_init(|| made)
    }
}

// === impl Destination ===

impl Destination {
    fn new(
        configuration: &Arc<Configuration>,
        schema: usize,
        levels: &LevelTable,
        upkeep: &Arc<Upkeep>,
        preset: Preset,
    ) -> Self {
        let found = &configuration.schemas()[schema];
        let id = found.level.id;
        // A configuration leads only to levels that exist. A missing one is treated as a level that has just been removed.
        let level = levels
            .get(id)
            .map_or_else(|| Arc::new(Level::removed(id, LevelListeners::of_nobody(&upkeep.clock))), Arc::clone);
        let (series, long_running) = {
            let metrics = &mut level.listeners().metrics;
            (metrics.series(found), Arc::clone(&metrics.long_running))
        };
        let uid_headers = (preset == Preset::Kubernetes).then(|| UidHeaders::new(&found.uid, &found.level.uid));
        let (configuration, upkeep) = (Arc::clone(configuration), Arc::clone(upkeep));
        Self {
            level,
            series,
            long_running,
            schema,
            configuration,
            uid_headers,
            accounts: None,
            of_routes: Mutex::default(),
            upkeep,
        }
    }

    /// The same place with the accounts of requests whose route says what their cost is counted in; `None` if the flow schema says it
    /// itself, or if nothing depends on it.
    #[cold]
    pub(crate) fn of_route(&self, unit: &CostUnit) -> Option<Arc<Self>> {
        let mut known = self.of_routes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, of_route)) = known.iter().find(|(known, _)| known == unit) {
            return of_route.clone();
        }
        let accounts = self.level.accounts.of_route(self.schema(), unit);
        let of_route = accounts.map(|accounts| Arc::new(self.with_accounts(accounts)));
        known.push((unit.clone(), of_route.clone()));
        of_route
    }

    fn with_accounts(&self, accounts: Arc<SchemaAccounts>) -> Self {
        Self {
            level: Arc::clone(&self.level),
            series: self.series,
            long_running: Arc::clone(&self.long_running),
            schema: self.schema,
            configuration: Arc::clone(&self.configuration),
            uid_headers: self.uid_headers.clone(),
            accounts: Some(accounts),
            of_routes: Mutex::default(),
            upkeep: Arc::clone(&self.upkeep),
        }
    }

    /// What kind of service it belongs to.
    pub(crate) fn preset(&self) -> Preset {
        if self.uid_headers.is_some() { Preset::Kubernetes } else { Preset::Plain }
    }

    /// The flow schema.
    pub(crate) fn schema(&self) -> &Schema {
        &self.configuration.schemas()[self.schema]
    }
}

// === impl LevelTable ===

impl LevelTable {
    pub(crate) fn get(&self, id: LevelId) -> Option<&Arc<Level>> {
        self.0.get(id.index())?.as_ref().filter(|level| level.id == id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Level>> {
        self.0.iter().flatten()
    }
}

// === impl LevelChanges ===

impl Levels for LevelChanges {
    fn create(&mut self, id: LevelId, name: &str, config: QueueSetConfig, now: Instant) {
        let levels = &mut self.table.0;
        if levels.len() <= id.index() {
            levels.resize(id.index() + 1, None);
        }
        let listeners = LevelListeners::new(&self.listeners, id, name, self.preset, &self.clock, now);
        levels[id.index()] = Some(Arc::new(Level::new(id, config, listeners, now)));
    }

    fn configure(&mut self, id: LevelId, config: QueueSetConfig, now: Instant) {
        if let Some(level) = self.table.get(id) {
            let mut core = level.lock();
            let now = core.at(now);
            core.configure(now, config, &mut self.wakers);
        }
    }

    fn end_demand_period(&mut self, id: LevelId, now: Instant) -> DemandPeriod {
        let Some(level) = self.table.get(id) else { return DemandPeriod::default() };
        let mut core = level.lock();
        let now = core.at(now);
        core.level.end_demand_period(now)
    }

    fn remove_if_idle(&mut self, id: LevelId) -> bool {
        let Some(level) = self.table.get(id) else { return true };
        // Under one lock: the next thread to take it sees either a request or a level that is gone.
        let mut core = level.lock();
        core.is_removed = core.queue_set().is_idle();
        let is_removed = core.is_removed;
        if is_removed {
            core.leave_ledger(&mut self.wakers);
        }
        let queues = core.take_queues();
        drop(core);
        drop(queues);
        if is_removed {
            self.table.0[id.index()] = None;
        }
        is_removed
    }
    fn set_ledger(&mut self, terms: Option<&LedgerTerms>, now: Instant) {
        let Some(terms) = terms else {
            for level in self.table.0.iter().flatten() {
                level.lock().leave_ledger(&mut self.wakers);
            }
            self.ledger.clear();
            return;
        };
        self.ledger.begin_change(terms);
        for (id, stake) in &terms.stakes {
            if let Some(level) = self.table.get(*id) {
                level.lock().join_ledger(now, level, *stake, &self.ledger, &mut self.wakers);
            }
        }
        self.ledger.end_change(now, &mut self.wakers.handover);
        // Before the levels are configured: what each of them wishes next decides who gets the seats after it, as in the engine.
        self.wakers.start_granted();
    }
}
