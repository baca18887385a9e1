//! `FlowControl`: decides for a whole service which requests run, wait or are rejected.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use evenkeel_api::annotations::NotUnderstood;
use evenkeel_api::v1::FlowSchema;
use evenkeel_api::{Kind, Preset};
use evenkeel_engine::controller::{Applied, Borrowing, Controller, Dangling, Objects, TooFewSeats, Unusable};
use evenkeel_engine::digest::Query;
use evenkeel_engine::queue_set::{Arrival, Rejection, RequestId};
use evenkeel_engine::time::Instant;
use evenkeel_engine::{Attributes, Classification, LevelId, LevelInfo, RequestInfo, User, WorkEstimate};

use crate::control::admission::Admission;
use crate::control::admit::{Admit, Arrived, Place, Waiting};
use crate::control::builder::FlowControlBuilder;
use crate::control::clock::{Clock, nanos};
use crate::control::core_events::Arriving;
use crate::control::counts::{Access, Mark};
use crate::control::digests::{DigestId, Digests};
use crate::control::events::{self, ArrivalsTo, Listener, Listeners};
use crate::control::into_objects::IntoObjects;
use crate::control::kept_details::KeptDetails;
use crate::control::known_levels::KnownLevels;
use crate::control::ledger::SharedLedger;
use crate::control::level::Level;
use crate::control::long_running::Counting;
use crate::control::object_problems::{self, InvalidObjects};
use crate::control::permit::Permit;
use crate::control::rejected::Rejected;
use crate::control::request::{Details, FlowRequest, Incoming};
use crate::control::seat_division::{DivisionChoice, SeatController, preset_borrowing};
use crate::control::snapshot::{Destination, LevelChanges, LevelTable, Snapshot};
use crate::control::trace;
use crate::control::upkeep::Upkeep;
use crate::control::wakers::Wakers;
use crate::control::work::{EstimateWork, WorkInput};
use crate::sync::{Mutex, MutexGuard, PoisonError};

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
    shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    snapshot: ArcSwap<Snapshot>,
    control: Mutex<Control>,
    pub(crate) known_levels: KnownLevels,
    /// What the layers digest requests with, for dumps.
    pub(crate) digests: Digests,
    upkeep: Arc<Upkeep>,
    wait_limit_ns: AtomicU64,
    arrivals: ArrivalsTo,
    pub(crate) preset: Preset,
    /// Part of every set of objects.
    exempt_paths: Option<Arc<FlowSchema>>,
}

/// The control plane.
#[derive(Debug)]
struct Control {
    controller: SeatController,
    listeners: Listeners,
    ledger: Arc<SharedLedger>,
    /// What came of the objects that were given last, so that the same warnings are not given again.
    report: Report,
}

/// What a flow control is made of.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) preset: Preset,
    pub(crate) server_concurrency: i64,
    pub(crate) division: DivisionChoice,
    pub(crate) listeners: Listeners,
    pub(crate) wait_limit: Duration,
    pub(crate) clock: Clock,
    pub(crate) exempt_paths: Option<Arc<FlowSchema>>,
    pub(crate) objects: Objects,
}

/// What the controller has changed.
enum Change {
    /// How the seats are divided, if anything.
    Division,
    /// How many seats there are, and perhaps they are too few.
    Seats(Option<TooFewSeats>),
    /// The objects.
    Objects(Box<Applied>),
}

/// The controller, locked.
pub(crate) struct ControllerGuard<'a>(MutexGuard<'a, Control>);

/// What came of a set of objects.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Report {
    /// For every flow schema that was given, whether its level exists.
    pub dangling: Vec<Dangling>,
    /// The levels that were given and could not be used, by name.
    pub unusable: Vec<(String, Unusable)>,
    /// Annotations that are not understood, each with the kind and the name of its object. Their defaults are used.
    pub not_understood: Vec<(Kind, String, NotUnderstood)>,
    /// Whether there are fewer seats than levels that have to have one: some of them have none (LB-2a).
    pub too_few_seats: Option<TooFewSeats>,
}

/// The nanoseconds of a duration; those of some five hundred years at most.
fn whole_ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

// === impl FlowControl ===

impl FlowControl {
    /// Sets up the flow control of a service.
    pub fn builder() -> FlowControlBuilder {
        FlowControlBuilder::default()
    }

    pub(crate) fn new(setup: Setup) -> Self {
        let Setup { preset, server_concurrency, division, listeners, wait_limit, clock, exempt_paths, objects } = setup;
        let now = clock.now();
        let arrivals = listeners.arrivals.clone();
        let upkeep = Arc::new(Upkeep::new(clock));
        let ledger = Arc::new(SharedLedger::new());
        let (table, wakers) = (LevelTable::default(), Wakers::default());
        let (clock, shared_ledger) = (upkeep.clock.clone(), Arc::clone(&ledger));
        let mut changes =
            LevelChanges { table, wakers, listeners: listeners.clone(), clock, ledger: shared_ledger, preset };
        let config = division.config(preset, server_concurrency);
        let (controller, applied) = Controller::with_config(config, &mut changes, now);
        let snapshot = Snapshot::new(applied.configuration, changes.table, &upkeep, preset);
        let flow = Self {
            shared: Arc::new(Shared {
                snapshot: ArcSwap::from_pointee(snapshot),
                control: Mutex::new(Control { controller, listeners, ledger, report: Report::default() }),
                known_levels: KnownLevels::default(),
                digests: Digests::default(),
                upkeep,
                wait_limit_ns: AtomicU64::new(whole_ns(wait_limit)),
                arrivals,
                preset,
                exempt_paths,
            }),
        };
        flow.follow(objects.with_mandatory_levels());
        flow
    }

    /// What kind of service it is for.
    pub fn preset(&self) -> Preset {
        self.shared.preset
    }

    /// Follows these objects from now on. Requests that run go on, and requests that wait keep their places.
    ///
    /// The mandatory levels `exempt` and `catch-all` are always among the objects. If anything is wrong with the objects, nothing
    /// changes, and the error lists every problem: see [`FlowControlBuilder::try_build`].
    ///
    /// ```
    /// use evenkeel::FlowControl;
    ///
    /// fn reload(flow: &FlowControl, manifest: &str) {
    ///     match flow.apply(manifest) {
    ///         Ok(report) if report.too_few_seats.is_some() => eprintln!("some level has no seats"),
    ///         Ok(_) => {}
    ///         Err(invalid) => eprintln!("the old objects stay in effect: {invalid}"),
    ///     }
    /// }
    /// ```
    pub fn apply(&self, objects: impl IntoObjects) -> Result<Report, InvalidObjects> {
        let objects = objects.into_objects(self.preset())?;
        object_problems::check(&objects, self.shared.exempt_paths.as_ref(), self.preset())?;
        Ok(self.follow(objects.with_mandatory_levels()))
    }

    /// The same for objects that a store holds. They have been validated before, perhaps by other rules: what can be used of
    /// them is used, and the report and a warning name flow schemas without a level and levels that cannot be used.
    ///
    /// For a [Kubernetes API](Preset::Kubernetes), a mandatory object that is not among them has been deleted, and flow schemas
    /// that lead there are without a level, as in a kube-apiserver (CC-9).
    pub fn apply_stored(&self, objects: Objects) -> Report {
        match self.shared.preset {
            Preset::Plain => self.follow(objects.with_mandatory_levels()),
            Preset::Kubernetes => self.follow(objects),
        }
    }

    fn follow(&self, mut objects: Objects) -> Report {
        objects.flow_schemas.extend(self.shared.exempt_paths.clone());
        self.shared
            .change(|controller, changes, now| Change::Objects(Box::new(controller.apply(objects, changes, now))))
    }

    /// What came of the objects that it follows.
    pub fn report(&self) -> Report {
        self.shared.control().report.clone()
    }

    /// Whether every level that has to have a seat would have one under these objects. [`apply`](Self::apply) does not ask: some
    /// level is then without seats, which its [`Report`] says.
    ///
    /// ```
    /// use evenkeel::objects::Objects;
    /// use evenkeel::{FlowControl, PriorityLevelConfiguration};
    ///
    /// let level = |name| PriorityLevelConfiguration::builder(name).limited(|l| l.shares(10).reject()).build().into();
    /// let objects: Objects = ["orders", "reports", "rest"].map(level).into_iter().collect();
    /// let flow = FlowControl::builder().server_concurrency(2).drive_by_hand().build();
    /// let too_few = flow.check_objects(&objects).unwrap_err();
    /// assert!(too_few.to_string().starts_with("2 seats are too few for 4 priority levels with shares"));
    /// ```
    pub fn check_objects(&self, objects: &Objects) -> Result<(), TooFewSeats> {
        let control = self.shared.control();
        control.controller.check_seats(objects, control.controller.server_limit())
    }

    /// The same on a server with so many seats.
    pub fn check_objects_with(&self, objects: &Objects, seats: u32) -> Result<(), TooFewSeats> {
        self.shared.control().controller.check_seats(objects, seats.into())
    }

    /// The same for the objects that it follows, on a server with so many seats.
    pub fn check_server_concurrency(&self, seats: u32) -> Result<(), TooFewSeats> {
        let control = self.shared.control();
        control.controller.check_seats(control.controller.objects(), seats.into())
    }

    /// The server has so many seats in all from now on: see [`FlowControlBuilder::server_concurrency`]. They are divided among
    /// the levels at once. Requests that run go on, and where there are fewer seats than they take, no other request starts until
    /// enough of them have ended.
    ///
    /// ```
    /// use evenkeel::FlowControl;
    ///
    /// let flow = FlowControl::builder().server_concurrency(100).build();
    /// let seats = || flow.status().iter().map(|level| level.current_limit).sum::<i64>();
    /// let before = seats();
    /// flow.set_server_concurrency(200);
    /// assert!(seats() > before);
    /// ```
    pub fn set_server_concurrency(&self, seats: u32) {
        if seats == 0 {
            trace::no_seats();
        }
        self.shared
            .change(|controller, changes, now| Change::Seats(controller.set_server_limit(seats.into(), changes, now)));
    }

    /// Levels borrow seats from each other in this way from now on; `None`: as the preset does. See
    /// [`FlowControlBuilder::borrowing`].
    /// Requests that run go on, and requests that wait keep their places (BM-3).
    pub fn set_borrowing(&self, borrowing: impl Into<Option<Borrowing>>) {
        let borrowing = borrowing.into().unwrap_or_else(|| preset_borrowing(self.preset()));
        self.shared.change(|controller, changes, now| {
            controller.set_borrowing(borrowing, changes, now);
            Change::Division
        });
    }

    /// How long newcomers may have to wait for a seat from now on before some are kept for them: see
    /// [`FlowControlBuilder::newcomer_wait`].
    pub fn set_newcomer_wait(&self, wait: Duration) {
        let wait = nanos(wait);
        self.shared.change(|controller, changes, now| {
            if controller.newcomer_wait() == wait {
                return Change::Division;
            }
            Change::Objects(Box::new(controller.set_newcomer_wait(wait, changes, now)))
        });
    }

    /// Whether some flow schema tells its flows apart by the addresses of clients (`evenkeel.dev/flow-by: address`). Whoever knows
    /// them adds [`ClientAddress`](crate::identify::ClientAddress) to requests then.
    #[inline]
    pub fn asks_for_addresses(&self) -> bool {
        self.shared.snapshot.load().configuration.asks_for_addresses()
    }

    /// How levels borrow seats from each other.
    pub fn borrowing(&self) -> Borrowing {
        self.shared.control().controller.borrowing()
    }

    /// How long requests wait at most from now on, if they do not say so themselves: see
    /// [`FlowControlBuilder::wait_limit`]. Requests that wait already keep their limit.
    pub fn set_wait_limit(&self, limit: Duration) {
        self.shared.wait_limit_ns.store(whole_ns(limit), Ordering::Relaxed);
    }

    /// Whether two requests of one user belong to the same flow schema. For those who read a request in two ways, and must not decide by
    /// the wrong one.
    pub fn belong_together(&self, user: &User, one: &RequestInfo<'_>, other: &RequestInfo<'_>) -> bool {
        let snapshot = self.shared.snapshot.load();
        let schema = |request| snapshot.configuration.classify(Attributes { user, request }).index;
        schema(one) == schema(other)
    }

    /// Lets a request in: the future waits until the request may run, and gives its [`Permit`].
    ///
    /// The request arrives with the first poll, and leaves its queue when the future is dropped.
    pub fn admit<'a, W: EstimateWork>(&'a self, attributes: Attributes<'a>, work: W) -> Admit<'a, W> {
        self.admit_request(FlowRequest::new(attributes).work(work))
    }

    /// The same for a request about which there is more to say.
    pub fn admit_request<'a, W: EstimateWork>(&'a self, request: FlowRequest<'a, W>) -> Admit<'a, W> {
        Admit::new(self, request)
    }

    /// A request arrives now, before the future that it gives is polled: it is classified, and started, put into a queue or
    /// rejected. The future borrows nothing, so that it can be sent to another task.
    pub fn arrive<W: EstimateWork>(&self, attributes: Attributes<'_>, work: W) -> Arrived {
        self.arrive_request(FlowRequest::new(attributes).work(work))
    }

    /// The same for a request about which there is more to say.
    #[expect(clippy::needless_pass_by_value, reason = "a request arrives once")]
    pub fn arrive_request<W: EstimateWork>(&self, request: FlowRequest<'_, W>) -> Arrived {
        Arrived::new(self.take_in_request(&request))
    }

    #[inline]
    pub(crate) fn take_in_request<W: EstimateWork>(&self, request: &FlowRequest<'_, W>) -> Place {
        let FlowRequest { attributes, work, patience, details, is_watch, is_long_running, watches, times } = request;
        let (attributes, patience, is_watch, watches) = (*attributes, *patience, *is_watch, *watches);
        let (head, digest) = (details.as_deref().map(Details::head), DigestId::default());
        let estimate = |level: &LevelInfo| {
            let query = Query::new("");
            work.estimate(&WorkInput { attributes, level, query, watches, extra: &() })
        };
        self.take_in(&Incoming {
            attributes,
            estimate,
            patience,
            head,
            digest,
            is_watch,
            is_long_running: is_watch || *is_long_running,
            watches,
            times: times.as_ref(),
        })
    }

    #[inline]
    pub(crate) fn take_in<E: Fn(&LevelInfo) -> WorkEstimate>(&self, request: &Incoming<'_, E>) -> Place {
        loop {
            // A level that is gone by the time its lock is taken was in a configuration that is gone too.
            if let Some(place) = self.try_admit(request) {
                return place;
            }
            // Whoever removed it is about to put the next one in place.
            drop(self.shared.control());
        }
    }

    /// Does what is due: frees the seats of requests that have lingered, rejects requests that have waited as long as they
    /// may, divides the seats among the levels every ten seconds, and removes levels that have run out of requests. Returns the
    /// time until something is due again, if nothing else happens before.
    ///
    /// A flow control that was [built](FlowControlBuilder::build) inside of a tokio runtime calls this by itself.
    pub fn tick(&self) -> Duration {
        self.shared.tick()
    }

    /// Divides the seats among the levels now, whenever it was done last.
    pub fn adjust(&self) {
        self.shared.adjust();
    }

    /// When the clock of the flow control began, which [`SeatTimes`](crate::request::SeatTimes) count from; `None` if it is
    /// set by hand.
    pub fn clock_start(&self) -> Option<std::time::Instant> {
        self.shared.upkeep.clock.std_start()
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// `None` if the level was removed between looking it up and taking its lock.
    #[inline]
    fn try_admit<E: Fn(&LevelInfo) -> WorkEstimate>(&self, request: &Incoming<'_, E>) -> Option<Place> {
        let snapshot = self.shared.snapshot.load();
        let class = snapshot.configuration.classify(request.attributes);
        let work = match class.schema.seats {
            Some(seats) => WorkEstimate::seats(seats),
            None => (request.estimate)(&class.schema.level),
        };
        let destination = snapshot.destination(class.index);
        let Destination { level, upkeep, long_running, .. } = &**destination;
        let mut wakers = Wakers::default();
        let now = upkeep.clock.now();
        upkeep.server.before_event(now);
        let mark = Mark {
            series: destination.series,
            access: Access::of(request.attributes.request),
            is_watch: request.is_watch,
            digest: request.digest,
        };
        let details = request.head.map(|head| KeptDetails::new(|| head.to_details()));
        let mut core = level.lock_for_event();
        if core.is_removed {
            return None;
        }
        let now = core.at(now);
        if let Some(times) = request.times {
            times.note_arrival(now);
        }
        // What takes no seat is bounded as what has given its seats back.
        let is_long_running = request.is_long_running || work.is_seatless();
        if is_long_running && !long_running.enter(class.schema.level.max_long_running) {
            let reason = Rejection::TooManyLongRunning;
            core.refuse(now, mark, class.flow(), work, reason);
            drop(core);
            let advice = level.listeners().retry.advise_long_running();
            request.note_rejected(now);
            self.tell_of_arrival(request, &class, work, level, None, now);
            trace::rejected(class.schema, work, reason);
            return Some(Place::Rejected(Box::new(Rejected::new(reason, advice, work.max_seats(), None, destination))));
        }
        let wait_limit = request.patience.limit(self.shared.wait_limit_of(&class.schema.level), self.shared.preset);
        let wait_until = now + nanos(wait_limit);
        let watches = request.watches;
        let arriving = Arriving { flow: class.flow(), work, wait_until, mark, details, watches, is_long_running };
        let (id, queue, is_started, change) = match core.arrive(now, arriving, &mut wakers) {
            Arrival::Started { id, queue } => (id, queue, true, None),
            Arrival::Waiting { id, queue } => (id, Some(queue), false, core.take_earlier_timeout()),
            Arrival::Rejected { reason, queue, .. } => {
                drop(core);
                let advice = level.advise();
                request.note_rejected(now);
                wakers.wake();
                self.tell_of_arrival(request, &class, work, level, None, now);
                if is_long_running {
                    long_running.leave();
                }
                trace::rejected(class.schema, work, reason);
                let rejected = Rejected::new(reason, advice, work.max_seats(), number(queue), destination);
                return Some(Place::Rejected(Box::new(rejected)));
            }
        };
        let is_batch = core.events.is_batch();
        drop(core);
        // Made before anybody is woken: a waker that panics must not cost seats.
        let counting = Counting::new(is_long_running);
        let (destination, seats) = (Arc::clone(destination), AtomicU32::new(work.max_seats()));
        let times = request.times.cloned();
        let admission = Admission {
            destination,
            id,
            seats,
            queue: number(queue),
            counting,
            times,
            has_expired: false,
            has_failed: AtomicBool::new(false),
        };
        if let Some(change) = change {
            upkeep.schedule(level, change, &mut wakers);
        }
        wakers.wake();
        self.tell_of_arrival(request, &class, work, level, Some(id), now);
        level.hand_on_batch(is_batch);
        if !is_started {
            trace::queued(class.schema, work);
        }
        Some(if is_started {
            Place::Started(Permit::new(admission))
        } else {
            Place::Waiting(Waiting::new(admission, wait_until))
        })
    }
}

// The part of `FlowControl` that is about events.
impl FlowControl {
    /// Tells whoever wants to know of a request that it has arrived. No lock is held.
    #[inline]
    fn tell_of_arrival<E>(
        &self,
        request: &Incoming<'_, E>,
        class: &Classification<'_>,
        work: WorkEstimate,
        level: &Level,
        id: Option<RequestId>,
        at: Instant,
    ) {
        if let Some(wanted) = &level.wanted_names
            && wanted.may_want(&class.flow())
            && let Some(attribution) = &mut level.listeners().attribution
        {
            attribution.learn_name(&class.flow());
        }
        if let Some(listener) = &self.shared.arrivals.0 {
            listener.on_arrival(&events::Arrival {
                attributes: request.attributes,
                flow_schema: &class.schema.name,
                level: level.id,
                flow_distinguisher: class.distinguisher,
                flow_hash: class.flow_hash,
                work,
                request: id,
                at,
            });
        }
    }

    /// Makes a listener for each level that there is or will be, and tells it of everything that happens from now on: see
    /// [`FlowControlBuilder::listen`].
    pub fn listen<L: Listener + 'static>(&self, make: impl Fn(LevelId, &str) -> L + Send + Sync + 'static) {
        let make: events::MakeListener = Arc::new(move |id, name| Box::new(make(id, name)));
        let mut control = self.shared.control();
        for (name, level) in self.shared.known_levels.all() {
            let (mut listeners, is_removed) = level.listeners_and(|core| core.is_removed);
            if !is_removed {
                listeners.add(make(level.id, &name));
            }
        }
        control.listeners.others.push(make);
    }

    /// Tells all [listeners](crate::events::Listener) what has happened so far. Without that they are told when some dozens of events
    /// have come together, or when somebody looks at what the library itself counts.
    pub fn deliver_events(&self) {
        for (_, level) in self.shared.known_levels.all() {
            drop(level.listeners());
        }
    }
}

/// The number of a queue. There are never so many that it does not fit.
fn number(queue: Option<usize>) -> Option<u32> {
    queue.and_then(|queue| u32::try_from(queue).ok())
}

// === impl ControllerGuard ===

impl std::ops::Deref for ControllerGuard<'_> {
    type Target = SeatController;

    fn deref(&self) -> &SeatController {
        &self.0.controller
    }
}

// === impl Report ===

impl Report {
    /// What is wrong now and was not before.
    fn news_since(&self, before: &Self) -> Self {
        let dangling = self.dangling.iter().filter(|found| found.is_dangling && !before.dangling.contains(found));
        let unusable = self.unusable.iter().filter(|found| !before.unusable.contains(found));
        let not_understood = self.not_understood.iter().filter(|found| !before.not_understood.contains(found));
        Self {
            dangling: dangling.cloned().collect(),
            unusable: unusable.cloned().collect(),
            not_understood: not_understood.cloned().collect(),
            too_few_seats: self.too_few_seats.clone().filter(|found| before.too_few_seats.as_ref() != Some(found)),
        }
    }
}

// === impl Shared ===

impl Drop for Shared {
    fn drop(&mut self) {
        self.upkeep.close();
    }
}

impl Shared {
    pub(crate) fn wait_limit(&self) -> Duration {
        Duration::from_nanos(self.wait_limit_ns.load(Ordering::Relaxed))
    }

    /// How long requests of a level wait, if nothing else is said.
    #[inline]
    pub(crate) fn wait_limit_of(&self, level: &LevelInfo) -> Duration {
        let limit = level.wait_limit.and_then(|limit| u64::try_from(limit).ok());
        limit.map_or_else(|| self.wait_limit(), Duration::from_nanos)
    }

    pub(crate) fn now(&self) -> Instant {
        self.upkeep.clock.now()
    }

    fn control(&self) -> MutexGuard<'_, Control> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the controller change the levels, and puts a new snapshot in place if there is a new configuration. Tells what there is to say
    /// of the objects.
    fn change(&self, change: impl FnOnce(&mut SeatController, &mut LevelChanges, Instant) -> Change) -> Report {
        let mut control = self.control();
        let now = self.upkeep.clock.now();
        let table = self.snapshot.load().levels.clone();
        let (listeners, clock) = (control.listeners.clone(), self.upkeep.clock.clone());
        let (ledger, preset) = (Arc::clone(&control.ledger), self.preset);
        let mut changes = LevelChanges { table, wakers: Wakers::default(), listeners, clock, ledger, preset };
        let change = change(&mut control.controller, &mut changes, now);
        self.known_levels.update(&control.controller, &changes.table, now, &self.upkeep);
        let division = trace::Division::of(&control.controller);
        let mut is_to_go = false;
        let report = match change {
            Change::Division => control.report.clone(),
            Change::Seats(too_few_seats) => Report { too_few_seats, ..control.report.clone() },
            Change::Objects(applied) => {
                let Applied { configuration, dangling, unusable, not_understood, too_few_seats, .. } = *applied;
                for (_, level) in control.controller.levels() {
                    if let Some(found) = changes.table.get(level.id()) {
                        found.set_quiescing(level.is_quiescing());
                        // Its last request may have ended after the controller looked and before it was marked.
                        is_to_go |= level.is_quiescing() && found.lock().queue_set().is_idle();
                    }
                }
                self.snapshot.store(Arc::new(Snapshot::new(configuration, changes.table, &self.upkeep, self.preset)));
                Report { dangling, unusable, not_understood, too_few_seats }
            }
        };
        let before = std::mem::replace(&mut control.report, report.clone());
        let news = report.news_since(&before);
        // Whoever is told something from here on may look at the flow control.
        drop(control);
        if is_to_go {
            self.upkeep.note_idle_level();
        }
        changes.wakers.wake();
        division.tell();
        trace::dangling(&news.dangling);
        trace::unusable(&news.unusable);
        trace::not_understood(&news.not_understood);
        trace::too_few_seats(news.too_few_seats.as_ref());
        report
    }

    /// The controller, which stays as it is until the first part is dropped, and the snapshot that it made last.
    pub(crate) fn controlled(&self) -> (ControllerGuard<'_>, Arc<Snapshot>) {
        let control = ControllerGuard(self.control());
        (control, self.snapshot.load_full())
    }

    fn adjust(&self) {
        self.change(|controller, changes, now| {
            controller.adjust(changes, now);
            Change::Division
        });
    }

    pub(crate) fn tick(&self) -> Duration {
        let next_in_levels = self.upkeep.handle_timeouts();
        if self.upkeep.take_idle_note() {
            self.remove_idle_levels();
        }
        let now = self.upkeep.clock.now();
        let is_due = self.next_division().is_some_and(|next| next <= now);
        if is_due {
            self.change(|controller, changes, now| {
                controller.handle_timeout(changes, now);
                Change::Division
            });
        }
        let next = next_in_levels.into_iter().chain(self.next_division()).min();
        next.map_or(Duration::MAX, |next| Duration::from_nanos(u64::try_from(next - now).unwrap_or(0)))
    }

    /// The flow schemas that are not used because their levels are missing.
    pub(crate) fn dangling(&self) -> Vec<Dangling> {
        self.control().report.dangling.iter().filter(|schema| schema.is_dangling).cloned().collect()
    }

    /// When the seats are to be divided next.
    fn next_division(&self) -> Option<Instant> {
        self.control().controller.next_timeout()
    }

    /// Removes levels that have no object any more and no requests either (CC-15).
    fn remove_idle_levels(&self) {
        self.change(|controller, changes, now| {
            let is_quiescing = controller.levels().any(|(_, level)| level.is_quiescing());
            if is_quiescing { Change::Objects(Box::new(controller.reapply(changes, now))) } else { Change::Division }
        });
    }

    pub(crate) fn upkeep(&self) -> &Arc<Upkeep> {
        &self.upkeep
    }
}
