//! `FlowControl`: decides for a whole service which requests run, wait or are rejected.

mod apply;
mod change;
mod find_limit;
mod on_account;
mod rate_fields;
mod revoke;
mod take_in;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use evenkeel_api::Preset;
use evenkeel_api::v1::FlowSchema;
use evenkeel_engine::auto_limit::{AutoLimit, Concurrency, Learnt};
use evenkeel_engine::controller::{Controller, Objects};
use evenkeel_engine::time::{Instant, Nanos};
use evenkeel_engine::{Attributes, Configuration, LevelId, RequestInfo, User};

use crate::control::builder::FlowControlBuilder;
use crate::control::canary::CanarySlot;
use crate::control::clock::{Clock, nanos};
use crate::control::digests::Digests;
use crate::control::events::{self, ArrivalsTo, Listener, Listeners};
#[cfg(feature = "fleet")]
use crate::control::fleet::FleetMembership;
use crate::control::flight::FlightChange;
use crate::control::known_levels::KnownLevels;
use crate::control::ledger::SharedLedger;
use crate::control::limit::Finder;
use crate::control::recorder::RecorderTap;
use crate::control::seat_division::{DivisionChoice, SeatController};
use crate::control::shadow::ShadowTap;
use crate::control::snapshot::{LevelChanges, LevelTable, Snapshot};
use crate::control::trace::LogChoice;
use crate::control::upkeep::Upkeep;
use crate::control::wakers::Wakers;
use crate::sync::{Mutex, MutexGuard, PoisonError};

pub use apply::ObjectsReport;
#[cfg(feature = "fleet")]
pub(crate) use change::Change;
pub(crate) use rate_fields::RateFields;

/// Decides which requests of a service run, wait or are rejected. Clones share everything.
///
/// ```
/// use evenkeel::{Attributes, FlowControl, RequestInfo, User, WorkEstimate};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let flow = FlowControl::builder().server_concurrency(100).build();
/// let user = User::new("alice", ["system:authenticated"]);
/// let request = RequestInfo::for_path("get", "/orders");
///
/// let permit = flow.admit(Attributes { user: &user, request: &request }, WorkEstimate::ONE_SEAT).await.unwrap();
/// assert_eq!(permit.priority_level(), "everyone");
/// drop(permit); // The request has ended, and its seat is free again.
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct FlowControl {
    shared: Arc<FlowControlShared>,
}

#[derive(Debug)]
pub(crate) struct FlowControlShared {
    snapshot: ArcSwap<Snapshot>,
    control: Mutex<Control>,
    pub(crate) known_levels: KnownLevels,
    /// What the layers digest requests with, for dumps.
    pub(crate) digests: Digests,
    upkeep: Arc<Upkeep>,
    wait_limit_ns: AtomicI64,
    arrivals: ArrivalsTo,
    /// The way to the shadow, if there is one.
    pub(crate) shadow: Arc<ShadowTap>,
    /// The canary, if there is one, which decides about a part of the flows.
    pub(crate) canary: CanarySlot,
    /// The way to the flight recorder, if there is one.
    pub(crate) recorder: Arc<RecorderTap>,
    pub(crate) preset: Preset,
    /// The fleet that it shares the seats with.
    #[cfg(feature = "fleet")]
    pub(crate) fleet: std::sync::OnceLock<FleetMembership>,
    /// How seats are divided, for the shadow.
    pub(crate) division: DivisionChoice,
    /// The schema that exempts paths, which is part of every set of objects.
    pub(crate) exempt_paths: Option<Arc<FlowSchema>>,
    pub(crate) log: LogChoice,
}

/// The control plane.
#[derive(Debug)]
struct Control {
    controller: SeatController,
    listeners: Listeners,
    ledger: Arc<SharedLedger>,
    /// The finder of the limit, unless the number of seats was set.
    finder: Option<Finder>,
    /// The report on the objects that were given last, so that the same warnings are not given again.
    report: ObjectsReport,
}

/// The parts that a flow control is made of.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) preset: Preset,
    pub(crate) concurrency: Concurrency,
    /// What an earlier run has learnt of the service.
    pub(crate) learnt: Option<Learnt>,
    pub(crate) division: DivisionChoice,
    pub(crate) listeners: Listeners,
    pub(crate) wait_limit: Duration,
    pub(crate) revoke_after: Nanos,
    pub(crate) clock: Clock,
    pub(crate) exempt_paths: Option<Arc<FlowSchema>>,
    pub(crate) log: LogChoice,
    pub(crate) objects: Objects,
}

/// The controller, locked.
pub(crate) struct ControllerGuard<'a>(MutexGuard<'a, Control>);

// === impl FlowControl ===

impl FlowControl {
    /// Sets up the flow control of a service.
    pub fn builder() -> FlowControlBuilder {
        FlowControlBuilder::default()
    }

    pub(crate) fn new(setup: Setup) -> Self {
        let Setup { preset, concurrency, learnt, division, listeners, wait_limit, revoke_after, .. } = setup;
        let Setup { clock, exempt_paths, log, objects, .. } = setup;
        let now = clock.now();
        let arrivals = listeners.arrivals.clone();
        let upkeep = Arc::new(Upkeep::new(clock));
        upkeep.revoker.set_after(revoke_after);
        let ledger = Arc::new(SharedLedger::new());
        let (table, wakers) = (LevelTable::default(), Wakers::default());
        let (clock, shared_ledger) = (upkeep.clock.clone(), Arc::clone(&ledger));
        let mut changes =
            LevelChanges { table, wakers, listeners: listeners.clone(), clock, ledger: shared_ledger, preset };
        let limit = concurrency.auto().map(|bounds| AutoLimit::new(bounds, concurrency.first(), learnt));
        let seats = limit.as_ref().map_or_else(|| concurrency.first(), AutoLimit::limit);
        let config = division.config(preset, seats.into());
        let (controller, applied) = Controller::with_config(config, &mut changes, now);
        let snapshot = Snapshot::new(applied.configuration, changes.table, &upkeep, preset);
        let flow = Self {
            shared: Arc::new(FlowControlShared {
                snapshot: ArcSwap::from_pointee(snapshot),
                control: Mutex::new(Control {
                    controller,
                    listeners,
                    ledger,
                    finder: None,
                    report: ObjectsReport::default(),
                }),
                known_levels: KnownLevels::default(),
                digests: Digests::default(),
                upkeep,
                wait_limit_ns: AtomicI64::new(nanos(wait_limit)),
                arrivals,
                shadow: Arc::default(),
                canary: CanarySlot::default(),
                recorder: Arc::default(),
                preset,
                #[cfg(feature = "fleet")]
                fleet: std::sync::OnceLock::new(),
                division,
                exempt_paths,
                log,
            }),
        };
        if let Some(limit) = limit {
            flow.shared.begin_to_find(&mut flow.shared.control(), Finder::new(limit, now), now);
        }
        flow.follow(objects.with_mandatory_levels());
        flow
    }

    /// The kind of service that it is for.
    pub fn preset(&self) -> Preset {
        self.shared.preset
    }

    /// How long requests wait at most from now on, if they do not say so themselves: see
    /// [`FlowControlBuilder::wait_limit`]. Requests that wait already keep their limit.
    pub fn set_wait_limit(&self, limit: Duration) {
        let before = self.shared.wait_limit_ns.swap(nanos(limit), Ordering::Relaxed);
        if before != nanos(limit) {
            self.shared.record_setting(|| FlightChange {
                what: format!("requests wait for {limit:?} at most"),
                ..FlightChange::default()
            });
        }
        self.shared.set_canary_wait_limit(limit);
    }

    /// Whether some flow schema tells its flows apart by the addresses of clients (`evenkeel.dev/flow-by: address`). Then code
    /// that knows the addresses adds [`ClientAddress`](crate::identify::ClientAddress) to requests.
    #[inline]
    pub fn asks_for_addresses(&self) -> bool {
        self.shared.snapshot.load().configuration.asks_for_addresses()
            || self.shared.shadow.with_configuration(Configuration::asks_for_addresses) == Some(true)
            || self.shared.canary.with_configuration(Configuration::asks_for_addresses) == Some(true)
    }

    /// Names the headers, in lower case, by which some flow schema matches requests (`evenkeel.dev/match-headers`) or tells its flows apart
    /// (`evenkeel.dev/flow-by: header`), for those who log why a request was classified as it was.
    pub fn each_asked_header(&self, mut name: impl FnMut(&str)) {
        self.shared.snapshot.load().configuration.asked_headers().iter().for_each(|header| name(header));
    }

    /// Whether two requests of one user belong to the same flow schema. For those who read a request in two ways, and must not decide by
    /// the wrong one.
    pub fn belong_together(&self, user: &User, one: &RequestInfo<'_>, other: &RequestInfo<'_>) -> bool {
        let snapshot = self.shared.snapshot.load();
        let schema = |request| snapshot.configuration.classify(Attributes { user, request }).index;
        schema(one) == schema(other)
    }

    /// Makes a listener for each level that there is or will be, and tells it of everything that happens from now on: see
    /// [`FlowControlBuilder::listen`].
    pub fn listen<L: Listener + 'static>(&self, make: impl Fn(LevelId, &str) -> L + Send + Sync + 'static) {
        let make: events::MakeListener = Arc::new(move |id, name| Box::new(make(id, name)));
        let mut control = self.shared.control();
        for (name, level) in self.shared.known_levels.all() {
            let (mut listeners, is_removed) = level.listeners_and(|core| {
                core.events.hear_costs = true;
                core.is_removed
            });
            if !is_removed {
                listeners.add(make(level.id, &name));
            }
        }
        control.listeners.others.push(make);
    }

    /// Tells all [listeners](crate::events::Listener) what has happened so far. Without this call, they get events when some
    /// dozens have come together, or when the counts of the library itself are read.
    pub fn deliver_events(&self) {
        for (_, level) in self.shared.known_levels.all() {
            drop(level.listeners());
        }
    }

    /// When the clock of the flow control began, which [`SeatTimes`](crate::request::SeatTimes) count from; `None` if it is
    /// set by hand.
    pub fn clock_start(&self) -> Option<std::time::Instant> {
        self.shared.upkeep.clock.std_start()
    }

    /// Whether requests run or wait.
    pub(crate) fn is_busy(&self) -> bool {
        self.shared.known_levels.all().iter().any(|(_, level)| !level.lock().queue_set().is_idle())
    }

    pub(crate) fn shared(&self) -> &Arc<FlowControlShared> {
        &self.shared
    }
}

// === impl FlowControlShared ===

impl Drop for FlowControlShared {
    fn drop(&mut self) {
        self.upkeep.close();
    }
}

impl FlowControlShared {
    /// The name of its service, if it has one.
    pub(crate) fn service(&self) -> Option<&str> {
        self.log.service.as_deref()
    }

    pub(crate) fn wait_limit(&self) -> Duration {
        Duration::from_nanos(self.wait_limit_ns.load(Ordering::Relaxed).unsigned_abs())
    }

    pub(crate) fn wait_limit_default(&self) -> Nanos {
        self.wait_limit_ns.load(Ordering::Relaxed)
    }

    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// How many seats the server has now.
    pub(crate) fn seat_limit(&self) -> i64 {
        self.control().controller.server_limit()
    }

    pub(crate) fn now(&self) -> Instant {
        self.upkeep.clock.now()
    }

    pub(crate) fn upkeep(&self) -> &Arc<Upkeep> {
        &self.upkeep
    }

    fn control(&self) -> MutexGuard<'_, Control> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it shares its seats with other instances: then the fleet says how many it has.
    #[cfg_attr(not(feature = "fleet"), expect(clippy::unused_self, reason = "without the feature nobody shares seats"))]
    pub(crate) fn is_in_fleet(&self) -> bool {
        #[cfg(feature = "fleet")]
        return self.fleet.get().is_some();
        #[cfg(not(feature = "fleet"))]
        false
    }

    /// The seats of the service that it shares with other instances; `None` if it has all of them.
    #[cfg_attr(not(feature = "fleet"), expect(clippy::unused_self, reason = "without the feature nobody shares seats"))]
    pub(crate) fn fleet_seats(&self) -> Option<i64> {
        #[cfg(feature = "fleet")]
        return self.fleet.get().map(FleetMembership::service_seats);
        #[cfg(not(feature = "fleet"))]
        None
    }

    /// The controller, which stays as it is until the first part is dropped, and the snapshot that it made last.
    pub(crate) fn controlled(&self) -> (ControllerGuard<'_>, Arc<Snapshot>) {
        let control = ControllerGuard(self.control());
        (control, self.snapshot.load_full())
    }
}

// === impl ControllerGuard ===

impl std::ops::Deref for ControllerGuard<'_> {
    type Target = SeatController;

    fn deref(&self) -> &SeatController {
        &self.0.controller
    }
}
