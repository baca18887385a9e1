//! The controller: turns objects into levels and a compiled configuration, and divides the seats among the levels
//! (section 7.2 of the specification, and 6.3).
//!
//! It is the control plane: it runs when objects change and every ten seconds, and never on the way of a request. The
//! queue sets themselves are kept by somebody else, behind the trait [`Levels`]: a plain table in an
//! [`Engine`](crate::Engine), or a table of locks in a server of many threads. So one implementation serves both.
//!
//! [`apply`](Controller::apply) takes a new set of objects, [`reapply`](Controller::reapply) removes levels that have run out of
//! requests, and [`handle_timeout`](Controller::handle_timeout) divides the seats anew when that
//! [is due](Controller::next_timeout). [`ServerConfig`] says how many seats there are, who divides them, and how often.

mod dangling;
mod level;
mod levels;
mod objects;
mod reach;
mod seat_plan;
mod server_config;
mod usable;

pub use dangling::{DANGLING, Dangling};
pub use level::ControlledLevel;
pub use levels::{LedgerTerms, Levels};
pub use objects::Objects;
pub use seat_plan::{SeatPlan, TooFewSeats};
pub use server_config::{ADJUSTMENT_PERIOD, Borrowing, ServerConfig, UnknownBorrowing};
pub use usable::Unusable;

use std::collections::BTreeMap;
use std::sync::Arc;

use evenkeel_api::Kind;
use evenkeel_api::annotations::NotUnderstood;
use evenkeel_api::bootstrap::{self, CATCH_ALL, EXEMPT};
use evenkeel_api::v1::{FlowSchema, PriorityLevelConfiguration};

use crate::borrowing::{Adjustment, DivideSeats, FaithfulDivision, Stake};
use crate::classify::match_order;
use crate::configuration::{Configuration, LevelId, LevelInfo};
use crate::limits::nominal_sum;
use crate::queue_set::Mode;
use crate::time::{Instant, Nanos};

/// The names of the objects that there always are.
const MANDATORY: [&str; 2] = [EXEMPT, CATCH_ALL];

/// Turns objects into levels and configurations.
#[derive(Debug)]
pub struct Controller<D = FaithfulDivision> {
    server_limit: i64,
    objects: Objects,
    /// The levels, in ascending byte order of names, which is the order of all sums (CV-8).
    levels: BTreeMap<String, ControlledLevel>,
    /// The levels that are on their way out, in order. They are looked up whenever a request leaves a level idle, and there is
    /// hardly ever one.
    quiescing: Vec<LevelId>,
    free_ids: Vec<LevelId>,
    indexes: u32,
    division: D,
    period: Option<Nanos>,
    borrowing: Borrowing,
    newcomer_wait: Nanos,
    /// Whether other flow schemas match every request, as of the objects that it follows.
    is_catch_all_unreachable: bool,
    /// When the seats were last divided because that was due.
    divided_at: Instant,
    adjustment: Adjustment,
}

/// The result of applying a set of objects.
#[derive(Debug)]
#[non_exhaustive]
pub struct Applied {
    /// The configuration that governs requests from now on.
    pub configuration: Configuration,
    /// For every schema that was given, whether its level exists.
    pub dangling: Vec<Dangling>,
    /// The levels that were given and could not be used, by name.
    pub unusable: Vec<(String, Unusable)>,
    /// Annotations that are not understood, each with the kind and the name of its object (BM-2).
    pub not_understood: Vec<(Kind, String, NotUnderstood)>,
    /// Whether there are fewer seats than levels that have to have one, where seats are divided exactly (LB-2a). Some of those
    /// levels have none.
    pub too_few_seats: Option<TooFewSeats>,
}

// === impl Controller ===

impl Controller {
    /// A controller that divides seats as Kubernetes does. It starts from nothing but the mandatory objects (CC-1).
    ///
    /// `server_limit` is how many seats the server has in all.
    pub fn new(server_limit: i64, levels: &mut impl Levels, now: Instant) -> (Self, Applied) {
        Self::with_config(ServerConfig::new(server_limit), levels, now)
    }
}

impl<D: DivideSeats> Controller<D> {
    /// A controller that divides seats as the configuration says.
    pub fn with_config(config: ServerConfig<D>, levels: &mut impl Levels, now: Instant) -> (Self, Applied) {
        let ServerConfig { server_limit, division, period, borrowing, newcomer_wait } = config;
        let mut controller = Self {
            server_limit: server_limit.max(0),
            objects: Objects::default(),
            levels: BTreeMap::new(),
            quiescing: Vec::new(),
            free_ids: Vec::new(),
            indexes: 0,
            division,
            period,
            borrowing,
            newcomer_wait,
            is_catch_all_unreachable: false,
            divided_at: now,
            adjustment: Adjustment::default(),
        };
        let applied = controller.reapply(levels, now);
        (controller, applied)
    }

    /// Follows these objects from now on.
    pub fn apply(&mut self, objects: Objects, levels: &mut impl Levels, now: Instant) -> Applied {
        self.objects = objects.governing();
        self.reapply(levels, now)
    }

    /// The server has so many seats in all from now on. They are divided among the levels at once, and nothing else is done: no object
    /// is looked at, so that this can be called many times a second. Tells whether there are fewer seats than levels that have to have one.
    pub fn set_server_limit(
        &mut self,
        server_limit: i64,
        levels: &mut impl Levels,
        now: Instant,
    ) -> Option<TooFewSeats> {
        self.server_limit = server_limit.max(0);
        let too_few_seats = self.set_limits();
        self.divide(levels, now);
        too_few_seats
    }

    /// Levels borrow in this way from now on. Requests that run go on, and those that wait keep their places (BM-3).
    pub fn set_borrowing(&mut self, borrowing: Borrowing, levels: &mut impl Levels, now: Instant) {
        if self.borrowing != borrowing {
            self.borrowing = borrowing;
            if borrowing == Borrowing::Periodic {
                levels.set_ledger(None, now);
            }
            self.adjust(levels, now);
        }
    }

    /// Levels that queue per flow keep seats for newcomers where those would wait for longer than this (PF-10).
    pub fn set_newcomer_wait(&mut self, wait: Nanos, levels: &mut impl Levels, now: Instant) -> Applied {
        self.newcomer_wait = wait.max(0);
        self.reapply(levels, now)
    }

    /// How long newcomers may have to wait for a seat before some are kept for them (PF-10).
    pub fn newcomer_wait(&self) -> Nanos {
        self.newcomer_wait
    }

    /// How levels borrow.
    pub fn borrowing(&self) -> Borrowing {
        self.borrowing
    }

    /// Digests the objects once more, which removes levels that are on their way out and idle (CC-15).
    pub fn reapply(&mut self, levels: &mut impl Levels, now: Instant) -> Applied {
        let unusable = self.adopt_levels();
        let dangling = self.find_dangling();
        let is_usable = |schema: &&Arc<FlowSchema>| self.is_usable(schema);
        let usable: Vec<_> = self.objects.flow_schemas.iter().filter(is_usable).cloned().collect();
        self.retire_levels(levels);
        self.add_mandatory_levels();
        self.list_quiescing();
        self.is_catch_all_unreachable = {
            let schemas: Vec<_> = usable.iter().map(|schema| &**schema).collect();
            reach::is_catch_all_unreachable(&schemas)
        };
        let too_few_seats = self.set_limits();
        self.adjust(levels, now);
        let not_understood = self.objects.not_understood();
        Applied { configuration: self.compile(&usable), dangling, unusable, not_understood, too_few_seats }
    }

    /// Divides the seats among the levels by what they have asked for since the last time (CL-11 to CL-18).
    pub fn adjust(&mut self, levels: &mut impl Levels, now: Instant) {
        for level in self.levels.values_mut().filter(|level| level.is_running) {
            level.statistics.update(&levels.end_demand_period(level.id, now));
        }
        self.divide(levels, now);
    }

    /// Divides the seats by what is known of the demand for them.
    fn divide(&mut self, levels: &mut impl Levels, now: Instant) {
        match self.borrowing {
            Borrowing::Periodic => {
                let demands: Vec<_> = self.levels.values().map(ControlledLevel::demand).collect();
                self.division.divide(&demands, &mut self.adjustment);
            }
            Borrowing::Immediate => {
                let undivided = self.levels.values().map(ControlledLevel::undivided).collect();
                self.adjustment = Adjustment { fair_fraction: 0.0, levels: undivided };
            }
        }
        for (level, adjusted) in self.levels.values_mut().zip(&self.adjustment.levels) {
            level.adjusted = *adjusted;
        }
        if self.borrowing == Borrowing::Immediate {
            // Before anything is configured: limits that the ledger does not know of would start requests.
            self.create_levels(levels, now);
            levels.set_ledger(Some(&self.ledger_terms()), now);
        }
        for level in self.levels.values().filter(|level| level.is_running) {
            levels.configure(level.id, level.queue_set_config(self.closes_empty_levels()), now);
        }
        self.create_levels(levels, now);
    }

    /// Levels that are new come into being.
    fn create_levels(&mut self, levels: &mut impl Levels, now: Instant) {
        let closes_empty_levels = self.closes_empty_levels();
        for (name, level) in self.levels.iter_mut().filter(|(_, level)| !level.is_running) {
            levels.create(level.id, name, level.queue_set_config(closes_empty_levels), now);
            level.is_running = true;
        }
    }

    /// Whether a level that rejects and can have no seats rejects everybody. Where a ledger grants the seats, it starts nothing
    /// anyway.
    fn closes_empty_levels(&self) -> bool {
        self.borrowing == Borrowing::Periodic && self.division.is_exact()
    }

    /// The terms of the ledger (LB-1). The levels' own seats may add up to a little more than the server has, as in Kubernetes
    /// (CL-6); then their sum counts as the seats of the server.
    fn ledger_terms(&self) -> LedgerTerms {
        let stakes = self.levels.values().map(|level| (level.id, level.stake())).collect();
        LedgerTerms { seats: self.server_limit.max(self.nominal_sum()), stakes }
    }

    /// Whether every level that has to have a seat could have one if the server followed these objects with so many seats. Only
    /// where seats are divided exactly can there be too few (LB-2a).
    pub fn check_seats(&self, objects: &Objects, server_limit: i64) -> Result<(), TooFewSeats> {
        self.check_plan(&objects.clone().governing().seat_plan(), server_limit)
    }

    fn check_plan(&self, plan: &SeatPlan<'_>, server_limit: i64) -> Result<(), TooFewSeats> {
        if self.division.is_exact() { plan.check_seats(server_limit) } else { Ok(()) }
    }

    /// The fewest seats with which every level that has to have a seat gets one: see [`TooFewSeats`].
    pub fn seats_min(&self) -> u32 {
        if !self.division.is_exact() {
            return 1;
        }
        let staying = self.levels.values().filter(|level| !level.quiescing).map(|level| &*level.object);
        let needed = SeatPlan::with_reach(staying, self.is_catch_all_unreachable).seats_min();
        u32::try_from(needed).unwrap_or(u32::MAX).max(1)
    }

    /// Whether levels together never use more seats than the server has: their own add up to that at most, and others are borrowed at
    /// every event.
    pub fn is_limit_exact(&self) -> bool {
        self.division.is_exact() && self.borrowing == Borrowing::Immediate
    }

    /// What each level in play could use if the server had so many seats, by name.
    pub fn stakes_with(&self, server_limit: i64) -> impl Iterator<Item = (&str, LevelId, Stake)> {
        let objects = self.levels.values().map(|level| &*level.object);
        let plan = SeatPlan::with_reach(objects, self.is_catch_all_unreachable);
        let limits: Vec<_> = plan.limits(&self.division, server_limit).into_values().collect();
        self.levels.iter().zip(limits).map(|((name, level), limits)| (name.as_str(), level.id, level.stake_of(limits)))
    }

    /// The objects that it follows, as they were given.
    pub fn objects(&self) -> &Objects {
        &self.objects
    }

    /// When the seats are to be divided next; `None` if that is never due. Changes of the objects divide them too, but do not
    /// put off this time (CL-11).
    pub fn next_timeout(&self) -> Option<Instant> {
        self.period.map(|period| self.divided_at + period)
    }

    /// Divides the seats if that is due by now, and tells whether it was.
    pub fn handle_timeout(&mut self, levels: &mut impl Levels, now: Instant) -> bool {
        let is_due = self.next_timeout().is_some_and(|next| next <= now);
        if is_due {
            self.divided_at = now;
            self.adjust(levels, now);
        }
        is_due
    }

    /// How many seats the server has in all.
    pub fn server_limit(&self) -> i64 {
        self.server_limit
    }

    /// The seats that all levels together have of their own: `NominalCLSum` (CL-6).
    pub fn nominal_sum(&self) -> i64 {
        nominal_sum(self.levels.values().map(|level| &level.limits))
    }

    /// The part of its target that a level got at the last adjustment, if nothing held it back (CL-15).
    pub fn fair_fraction(&self) -> f64 {
        self.adjustment.fair_fraction
    }

    /// The levels in play, by name, in ascending byte order.
    pub fn levels(&self) -> impl Iterator<Item = (&str, &ControlledLevel)> {
        self.levels.iter().map(|(name, level)| (name.as_str(), level))
    }

    /// The level of that name.
    pub fn level(&self, name: &str) -> Option<&ControlledLevel> {
        self.levels.get(name)
    }

    /// Whether the level is on its way out (CC-15). What this costs does not depend on the levels that stay.
    #[inline]
    pub fn is_quiescing(&self, id: LevelId) -> bool {
        self.quiescing.binary_search(&id).is_ok()
    }

    /// Levels follow their objects (CC-6). All others are quiescing until a later step decides about them.
    fn adopt_levels(&mut self) -> Vec<(String, Unusable)> {
        let mut unusable = Vec::new();
        self.levels.values_mut().for_each(|level| level.quiescing = true);
        for object in self.objects.priority_levels.clone() {
            match usable::mode(&object, self.newcomer_wait) {
                Ok(mode) => self.adopt(object, mode),
                Err(reason) => unusable.push((object.name().to_owned(), reason)),
            }
        }
        unusable
    }

    fn adopt(&mut self, object: Arc<PriorityLevelConfiguration>, mode: Mode) {
        if let Some(level) = self.levels.get_mut(object.name()) {
            level.object = object;
            level.mode = mode;
            level.quiescing = false;
        } else {
            let id = self.free_ids.pop().unwrap_or_else(|| {
                self.indexes += 1;
                LevelId::first(self.indexes - 1)
            });
            let name = object.name().to_owned();
            self.levels.insert(name, ControlledLevel::new(id, object, mode));
        }
    }

    /// Whether the level that a schema names was accepted just now (CC-9). Levels that are only kept do not count.
    fn is_usable(&self, schema: &FlowSchema) -> bool {
        self.levels.get(&schema.spec.priority_level_configuration.name).is_some_and(|level| !level.quiescing)
    }

    fn find_dangling(&self) -> Vec<Dangling> {
        let dangling = |schema: &Arc<FlowSchema>| Dangling {
            schema: schema.name().to_owned(),
            level: schema.spec.priority_level_configuration.name.clone(),
            is_dangling: !self.is_usable(schema),
        };
        self.objects.flow_schemas.iter().map(dangling).collect()
    }

    /// Levels without an object go when they are idle (CC-15).
    fn retire_levels(&mut self, levels: &mut impl Levels) {
        let free_ids = &mut self.free_ids;
        self.levels.retain(|name, level| {
            let stays = !level.quiescing || MANDATORY.contains(&name.as_str()) || !levels.remove_if_idle(level.id);
            if !stays {
                free_ids.extend(level.id.next());
            }
            stays
        });
    }

    /// The mandatory levels always exist: as they last were (CC-13), or as they are built in (CC-14).
    fn add_mandatory_levels(&mut self) {
        for object in &bootstrap::mandatory().priority_levels {
            match (self.levels.get_mut(object.name()), usable::mode(object, self.newcomer_wait)) {
                (Some(level), _) => level.quiescing = false,
                (None, Ok(mode)) => self.adopt(Arc::new(object.clone()), mode),
                (None, Err(reason)) => unreachable!("a built-in level cannot be used: {reason}"),
            }
        }
    }

    fn list_quiescing(&mut self) {
        self.quiescing.clear();
        self.quiescing.extend(self.levels.values().filter(|level| level.quiescing).map(|level| level.id));
        self.quiescing.sort_unstable();
    }

    /// Each level gets its share of the server's seats (CC-16).
    fn set_limits(&mut self) -> Option<TooFewSeats> {
        let objects = self.levels.values().map(|level| &*level.object);
        let plan = SeatPlan::with_reach(objects, self.is_catch_all_unreachable);
        let limits: Vec<_> = plan.limits(&self.division, self.server_limit).into_values().collect();
        // Levels on their way out share the seats as long as they last, but need not be there.
        let staying = self.levels.values().filter(|level| !level.quiescing).map(|level| &*level.object);
        let staying = SeatPlan::with_reach(staying, self.is_catch_all_unreachable);
        let too_few_seats = self.check_plan(&staying, self.server_limit).err();
        // Both are in the order of names, and the mandatory levels are among these already.
        for (level, limits) in self.levels.values_mut().zip(limits) {
            level.set_limits(limits);
        }
        too_few_seats
    }

    /// Compiles the schemas that can be used, and the mandatory ones if they are missing (CC-11, CC-12).
    fn compile(&self, usable: &[Arc<FlowSchema>]) -> Configuration {
        let infos: BTreeMap<&str, Arc<LevelInfo>> =
            self.levels.iter().map(|(name, level)| (name.as_str(), Arc::new(level.info()))).collect();
        let mut schemas: Vec<&FlowSchema> = usable.iter().map(|schema| &**schema).collect();
        schemas.sort_by(|one, other| match_order(one, other));
        for (name, is_first) in [(EXEMPT, true), (CATCH_ALL, false)] {
            if schemas.iter().all(|schema| schema.name() != name)
                && let Some(built_in) = bootstrap::mandatory_flow_schema(name)
            {
                schemas.insert(if is_first { 0 } else { schemas.len() }, built_in);
            }
        }
        let level = |schema: &FlowSchema| infos.get(schema.spec.priority_level_configuration.name.as_str()).cloned();
        let ordered: Vec<_> = schemas.into_iter().filter_map(|schema| Some((schema, level(schema)?))).collect();
        let catch_all = ordered.iter().position(|(schema, _)| schema.name() == CATCH_ALL);
        Configuration::compile(&ordered, catch_all.unwrap_or_default())
    }
}
