//! `FlowControlBuilder`: sets up a flow control.

use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::time::Duration;

use evenkeel_api::Preset;
use evenkeel_api::bootstrap::EXEMPT;
use evenkeel_api::build::RuleBuilder;
use evenkeel_api::short::ShortForm;
use evenkeel_api::v1::FlowSchema;
use evenkeel_engine::LevelId;
use evenkeel_engine::auto_limit::{Concurrency, Learnt};
use evenkeel_engine::borrowing::DivideSeats;
use evenkeel_engine::controller::{Borrowing, Objects};
use evenkeel_engine::time::Nanos;

use crate::control::clock::{Clock, ManualClock, nanos};
use crate::control::events::{ArrivalListener, ArrivalsTo, Listener, Listeners};
use crate::control::flow_control::{FlowControl, FlowControlShared, Setup};
use crate::control::into_objects::IntoObjects;
use crate::control::object_problems::{self, InvalidObjects, ObjectProblem};
use crate::control::revocation::REVOKE_AFTER;
use crate::control::seat_division::DivisionChoice;
use crate::control::trace::{self, LogChoice};
use crate::control::upkeep::Keeper;

/// Sets up a [`FlowControl`]. By default it is for an ordinary HTTP service: one level has all seats, users take turns, and
/// requests are their methods and paths. [`kubernetes`](Self::kubernetes) makes it one for a Kubernetes API.
#[derive(Debug, Clone)]
#[must_use = "call `build` or `try_build` at the end"]
pub struct FlowControlBuilder {
    pub(super) preset: Preset,
    /// `None`: the concurrency of the preset.
    concurrency: Option<Concurrency>,
    learnt: Option<Learnt>,
    division: DivisionChoice,
    listeners: Listeners,
    wait_limit: Duration,
    revoke_after: Nanos,
    clock: Option<Clock>,
    given: GivenObjects,
    /// Levels and rules, which stand for objects.
    pub(super) short: ShortForm,
    exempt_paths: Vec<String>,
    log: LogChoice,
    has_keeper: bool,
    #[cfg(feature = "fleet")]
    fleet: Option<evenkeel_fleet::FleetConfig>,
}

/// The objects that a flow control is to follow at first.
#[derive(Debug, Clone, Default)]
struct GivenObjects {
    /// `None`: those of the preset.
    objects: Option<Objects>,
    /// The problems of texts. Objects of a text with problems are not among `objects`.
    problems_of_texts: Vec<ObjectProblem>,
    /// Whether the objects are used as they are.
    are_stored: bool,
}

/// How long a request waits if neither it nor the builder sets a limit (HF-7).
const WAIT_LIMIT_DEFAULT: Duration = Duration::from_secs(15);
/// The pause of the keeper after a task that it woke has panicked.
const PAUSE_AFTER_PANIC: Duration = Duration::from_millis(10);

// === impl FlowControlBuilder ===

impl FlowControlBuilder {
    /// For a Kubernetes API: the objects that a kube-apiserver starts with, its URLs, its rules for long-running requests and
    /// for dividing seats, and users and groups whose names begin with `system:`.
    ///
    /// Call it first: texts of manifests are read by the rules of the preset.
    pub fn kubernetes(self) -> Self {
        self.preset(Preset::Kubernetes)
    }

    /// The kind of service, where that is a setting. Call it first.
    pub fn preset(mut self, preset: Preset) -> Self {
        self.preset = preset;
        self
    }

    /// Exempts these paths from all limits, with `GET` and `HEAD` and for everybody: for health checks. A path also stands for
    /// everything below it, as in Kubernetes: `/health` for `/health/db`.
    ///
    /// A path begins with a slash. `/` would exempt every request, so it is refused too; to exempt every request, write `/*`.
    ///
    /// The paths are those that the layer sees: a router that is nested in another may have removed a prefix. Clients are
    /// identified first, so let [`Identify`](crate::identify::Identify) accept requests for these paths without credentials.
    ///
    /// It adds a flow schema `exempt-paths` to the objects, also to those that [`FlowControl::apply`] is given later.
    ///
    /// ```
    /// use evenkeel::FlowControl;
    ///
    /// let flow = FlowControl::builder().exempt_paths(["/healthz", "/readyz"]).drive_by_hand().build();
    /// ```
    pub fn exempt_paths(mut self, paths: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.exempt_paths.extend(paths.into_iter().map(Into::into));
        self
    }

    /// How many seats the service has: how many ordinary requests it can work on at a time. Without it, the service
    /// [finds that out](Self::server_concurrency_auto), except in front of a [Kubernetes API](Self::kubernetes), which has 600.
    ///
    /// It should be one at least: a kube-apiserver does not start with none (CL-1). With none, queues let nobody through, a
    /// level without queues lets one request in at a time, and a warning says so.
    #[doc(alias = "max_concurrency")]
    #[doc(alias = "limit")]
    pub fn server_concurrency(mut self, seats: u32) -> Self {
        self.concurrency = Some(Concurrency::Fixed(seats));
        self
    }

    /// The service finds out how many seats it should have, within these bounds: by what a few seats more or less change in the number
    /// of good responses, while requests wait. That is the default, within 1 and 1000. See `docs/limit.md`.
    ///
    /// It goes on while the flow control is looked after: in a runtime of tokio, or as often as [`tick`](FlowControl::tick) is called.
    ///
    /// A response with a status of 500 or more, or 429, is no good response (but see [`NotFailed`](crate::service::NotFailed)), nor is a
    /// request that ends without one. If the client leaves before there is a response, that does not count against the service. Where requests do not come through the layer, say so with
    /// [`Permit::mark_failed`](crate::Permit::mark_failed).
    ///
    /// ```
    /// use evenkeel::FlowControl;
    ///
    /// let flow = FlowControl::builder().server_concurrency_auto(10..=400).drive_by_hand().build();
    /// assert_eq!(flow.limit_state().unwrap().status.applied, 20);
    /// ```
    #[doc(alias = "adaptive")]
    pub fn server_concurrency_auto(self, bounds: RangeInclusive<u32>) -> Self {
        self.concurrency(Concurrency::Auto(bounds))
    }

    /// The name of the service in log lines about its limit, and in [explanations](FlowControl::explain), for programs with several flow controls.
    pub fn service_name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.log.service = Some(name.into());
        self
    }

    /// Does not warn of objects that cannot be used: for programs with several flow controls under the same objects, of which one warns. The
    /// [report](FlowControl::report) names them anyway.
    pub fn without_object_warnings(mut self) -> Self {
        self.log.warns_of_objects = false;
        self
    }

    /// Either of the two, where that is a setting: `40`, `auto` or `auto:10..400`.
    ///
    /// ```
    /// use evenkeel::FlowControl;
    ///
    /// let flow = FlowControl::builder().concurrency("auto:10..400".parse().unwrap()).drive_by_hand().build();
    /// ```
    pub fn concurrency(mut self, concurrency: Concurrency) -> Self {
        self.concurrency = Some(concurrency);
        self
    }

    /// What a limit that finds itself has [learnt](FlowControl::learnt_limit) in an earlier run, to start from.
    pub fn learnt_limit(mut self, learnt: impl Into<Option<Learnt>>) -> Self {
        self.learnt = learnt.into();
        self
    }

    /// Shares the seats of the service with other instances, by way of an etcd: see `docs/fleet.md`. The instances with the same name of
    /// the service use at most [`FleetSettings::seats`](crate::fleet::FleetSettings::seats) together at any time, whatever is lost,
    /// stopped or killed, and seats follow the demand. A number of [`server_concurrency`](Self::server_concurrency) does not count then. With
    /// [`server_concurrency_auto`](Self::server_concurrency_auto), the fleet finds out how many seats there should be: one instance does so for all.
    ///
    /// Until etcd has answered, this instance has no seats, and requests wait. [`FlowControl::leave_fleet`] gives the seats back at the
    /// end. [`try_build`](Self::try_build) says what is wrong with the settings.
    ///
    /// ```
    /// use evenkeel::FlowControl;
    /// use evenkeel::fleet::{EtcdConfig, FleetConfig, FleetSettings};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let settings = FleetSettings { seats: 600, ..FleetSettings::default() };
    /// let etcd = EtcdConfig::new(["127.0.0.1:2379"]);
    /// let fleet = FleetConfig { service: "checkout".into(), etcd, settings, lock_file: None };
    /// let flow = FlowControl::builder().fleet(fleet).build();
    /// assert_eq!(flow.fleet_state().unwrap().seats, 0);
    /// # }
    /// ```
    #[cfg(feature = "fleet")]
    pub fn fleet(mut self, fleet: impl Into<Option<evenkeel_fleet::FleetConfig>>) -> Self {
        self.fleet = fleet.into();
        self
    }

    /// The longest wait of a request that has no deadline of its own. The default is 15 seconds. In front of a [Kubernetes
    /// API](Self::kubernetes), nothing waits longer than a minute.
    #[doc(alias = "timeout")]
    pub fn wait_limit(mut self, limit: Duration) -> Self {
        self.wait_limit = limit;
        self
    }

    /// Divides the seats among the levels in this way, instead of that of the preset.
    ///
    /// ```
    /// use evenkeel::FlowControl;
    /// use evenkeel::division::ExactDivision;
    ///
    /// // The levels of a Kubernetes API, but never more seats than there are.
    /// let flow = FlowControl::builder().kubernetes().divide_seats(ExactDivision::default()).drive_by_hand().build();
    /// assert_eq!(flow.status().iter().map(|level| level.current_limit).sum::<i64>(), 600);
    /// ```
    pub fn divide_seats(mut self, division: impl DivideSeats + Clone + Send + Sync + 'static) -> Self {
        self.division.set(division);
        self
    }

    /// When levels borrow seats from each other, and give them back: at every event, which is the default, or every ten
    /// seconds as in Kubernetes, which is the default of [`kubernetes`](Self::kubernetes).
    ///
    /// At every event, a level whose own seats are lent out gets them back as fast as the requests on them end. What others may
    /// take from it, and how much it may borrow, is what its object says (`lendablePercent`, `borrowingLimitPercent`); the
    /// annotation `evenkeel.dev/borrowing-weight` says who gets more of what is left over.
    ///
    /// ```
    /// use evenkeel::FlowControl;
    /// use evenkeel::division::Borrowing;
    ///
    /// // The levels of a Kubernetes API, which do not wait for seats that others leave unused.
    /// let flow = FlowControl::builder().kubernetes().borrowing(Borrowing::Immediate).drive_by_hand().build();
    /// ```
    pub fn borrowing(mut self, borrowing: impl Into<Option<Borrowing>>) -> Self {
        self.division.borrowing = borrowing.into();
        self
    }

    /// Levels that queue per flow, as that of an ordinary service does, keep some seats for newcomers: clients of which nothing runs.
    /// They are kept from clients whose requests hold their seats for so long that a newcomer would wait for longer than this
    /// for one of them; the default is 100 ms. See `evenkeel.dev/newcomer-seats` in `docs/modes.md`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use evenkeel::FlowControl;
    ///
    /// // Clients may wait for a second behind slow requests of others.
    /// let flow = FlowControl::builder().newcomer_wait(Duration::from_secs(1)).drive_by_hand().build();
    /// ```
    pub fn newcomer_wait(mut self, wait: Duration) -> Self {
        self.division.newcomer_wait = nanos(wait);
        self
    }

    /// How long requests wait, although their level uses fewer seats than its own, before the youngest requests of
    /// [revocable](crate::Permit::revoked) levels end; the default is 500 ms. That is where levels borrow [at once](Self::borrowing).
    ///
    /// ```
    /// use std::time::Duration;
    /// use evenkeel::FlowControl;
    /// use evenkeel::api::short::Part;
    ///
    /// // Batch work uses all seats while nobody else wants them, and gives them back within some hundred milliseconds.
    /// let flow = FlowControl::builder()
    ///     .level("people", |l| l.share(80).lend(Part::All))
    ///     .level("jobs", |l| l.share(20).lend(Part::All).revocable())
    ///     .rule(|r| r.group("jobs").level("jobs"))
    ///     .rule(|r| r.level("people"))
    ///     .revoke_after(Duration::from_millis(200))
    ///     .drive_by_hand()
    ///     .build();
    /// ```
    pub fn revoke_after(mut self, wait: Duration) -> Self {
        self.revoke_after = nanos(wait);
        self
    }

    /// How often the seats are divided among the levels by what they have asked for. The default is every ten seconds, as in
    /// Kubernetes; `None`: only when the objects or the number of seats change.
    pub fn division_period(mut self, period: Option<Duration>) -> Self {
        // At least a nanosecond: with a period of zero, dividing would never end.
        self.division.period = period.map(|period| nanos(period).max(1));
        self
    }

    /// Makes a listener for each level, which gets the events of that level: arrivals, starts, ends, rejections, in their order
    /// and some dozens at a time. See [`Listener`](crate::events::Listener) for what a listener may do. Called again, it adds
    /// another one.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicU64, Ordering};
    ///
    /// use evenkeel::events::{Event, EventKind, Listener};
    /// use evenkeel::{Attributes, FlowControl, RequestInfo, User, WorkEstimate};
    ///
    /// /// Counts what starts at once, in all levels together.
    /// struct Starts(Arc<AtomicU64>);
    ///
    /// impl Listener for Starts {
    ///     fn on_events(&mut self, events: &[Event]) {
    ///         let passed = events.iter().filter(|event| matches!(event.kind(), EventKind::Passed { .. })).count();
    ///         self.0.fetch_add(passed as u64, Ordering::Relaxed);
    ///     }
    /// }
    ///
    /// let starts = Arc::new(AtomicU64::new(0));
    /// let counted = Arc::clone(&starts);
    /// let flow = FlowControl::builder().listen(move |_, _| Starts(Arc::clone(&counted))).drive_by_hand().build();
    /// let (user, request) = (User::default(), RequestInfo::default());
    /// drop(flow.arrive(Attributes { user: &user, request: &request }, WorkEstimate::ONE_SEAT));
    /// flow.deliver_events();
    /// assert_eq!(starts.load(Ordering::Relaxed), 1);
    /// ```
    pub fn listen<L: Listener + 'static>(mut self, make: impl Fn(LevelId, &str) -> L + Send + Sync + 'static) -> Self {
        self.listeners.others.push(Arc::new(move |id, name| Box::new(make(id, name))));
        self
    }

    /// Calls a listener for each request that arrives, with everything that the request is classified by: see
    /// [`ArrivalListener`](crate::events::ArrivalListener). Called again, it takes the place of the one before.
    ///
    /// ```
    /// use evenkeel::FlowControl;
    /// use evenkeel::events::Arrival;
    ///
    /// let print = |arrival: &Arrival<'_>| println!("{} of {}", arrival.attributes.request.path, arrival.flow_distinguisher);
    /// let flow = FlowControl::builder().listen_to_arrivals(print).drive_by_hand().build();
    /// ```
    pub fn listen_to_arrivals(mut self, listener: impl ArrivalListener + 'static) -> Self {
        self.listeners.arrivals = ArrivalsTo(Some(Arc::new(listener)));
        self
    }

    /// Keeps count of who uses each level and who delays whom, for [`FlowControl::flows`](crate::FlowControl::flows) and for
    /// metrics of the heaviest flows. That takes at most 64 KiB for each level, whatever the number of flows (AT-3).
    pub fn attribute_flows(mut self) -> Self {
        self.listeners.attributes_flows = true;
        self
    }

    /// The objects to follow instead of those of the preset: the text of a manifest, or objects in Rust. The mandatory
    /// objects are always there. Called again, it adds to those given before.
    ///
    /// In rules for paths, verbs are methods in lower case (`get`, `post`); under [`kubernetes`](Self::kubernetes) they are the
    /// verbs of Kubernetes. The level `catch-all` has seats of its own unless another flow schema matches every request: one
    /// with the user `*`, and with rules for all resources and all paths.
    ///
    /// Whatever is wrong with the objects is found at the end: see [`try_build`](Self::try_build).
    ///
    /// ```
    /// use evenkeel::{FlowControl, FlowSchema, PriorityLevelConfiguration};
    ///
    /// let level = PriorityLevelConfiguration::builder("tenants").limited(|l| l.shares(40).reject()).build();
    /// let schema = FlowSchema::builder("tenants").priority_level("tenants").by_user();
    /// let schema = schema.rule(|r| r.group("tenants").everything()).build();
    /// let flow = FlowControl::builder().objects(level).objects(schema).drive_by_hand().build();
    /// ```
    pub fn objects(mut self, objects: impl IntoObjects) -> Self {
        match objects.into_objects(self.preset) {
            Ok(more) => self.given.add(more),
            Err(problems) => self.given.problems_of_texts.extend(problems.into_iter().map(ObjectProblem::from)),
        }
        self
    }

    /// The objects to follow as an API server or a store has them, where they have been validated, perhaps by other rules. As
    /// [`FlowControl::apply_stored`] does, it uses what can be used, and warns of the rest.
    ///
    /// ```
    /// use evenkeel::objects::Objects;
    /// use evenkeel::{FlowControl, FlowSchema};
    ///
    /// let lost = FlowSchema::builder("lost").priority_level("nowhere").rule(|r| r.user("alice").everything()).build();
    /// let stored: Objects = [lost.into()].into_iter().collect();
    /// let flow = FlowControl::builder().stored_objects(stored).drive_by_hand().build();
    /// assert!(flow.report().dangling[0].is_dangling);
    /// ```
    pub fn stored_objects(mut self, objects: Objects) -> Self {
        self.given = GivenObjects { objects: Some(objects), are_stored: true, ..GivenObjects::default() };
        self
    }

    /// Lets the service drive the flow control: nothing runs in the background, and
    /// [`tick`](FlowControl::tick) has to be called from time to time. Until it is called, seats are not lent, seats of
    /// requests that linger are not free, and levels without objects do not go.
    ///
    /// Requests may wait without a runtime of tokio then, on any executor: those that have waited too long are rejected at
    /// the next call. In a runtime they have timers of their own.
    pub fn drive_by_hand(mut self) -> Self {
        self.has_keeper = false;
        self
    }

    /// Takes the time from a clock that is set by hand. Nothing runs in the background then, and no timer is used: see
    /// [`drive_by_hand`](Self::drive_by_hand).
    pub fn manual_clock(mut self, clock: ManualClock) -> Self {
        self.clock = Some(Clock::Manual(clock));
        self.drive_by_hand()
    }

    /// Takes the time from the clock of the machine, also where a test may pause that of tokio: in a runtime with one thread. It is
    /// cheaper to read there then. For servers that have a runtime for each thread; elsewhere it changes nothing.
    ///
    /// ```
    /// use evenkeel::FlowControl;
    ///
    /// let flow = FlowControl::builder().machine_clock().drive_by_hand().build();
    /// ```
    pub fn machine_clock(mut self) -> Self {
        self.clock = Some(Clock::of_machine());
        self
    }

    /// The flow control. Built inside of a runtime of tokio it looks after itself from now on, until its last clone is
    /// dropped or the runtime ends; do not share one among the runtimes of several tests. The runtime has to have timers
    /// (`enable_time` or `enable_all`): without them tokio panics.
    ///
    /// In tests with paused time, use [`drive_by_hand`](Self::drive_by_hand): the timer that divides the seats would let the
    /// time of tokio run ahead whenever nothing else is to be done.
    ///
    /// Built elsewhere, also if its requests come in a runtime later, it has to be
    /// [driven by hand](Self::drive_by_hand); unless that was asked for, a warning says so.
    ///
    /// # Panics
    ///
    /// If the objects are not valid, with all that is wrong with them: use [`try_build`](Self::try_build) where they come from
    /// outside of the program.
    #[track_caller]
    pub fn build(self) -> FlowControl {
        self.try_build().unwrap_or_else(|invalid| panic!("{invalid}"))
    }

    /// The same, or everything that is wrong with the [objects](Self::objects) and the [exempt paths](Self::exempt_paths).
    ///
    /// ```
    /// use evenkeel::FlowControl;
    ///
    /// let invalid = FlowControl::builder().objects("kind: FlowSchema").drive_by_hand().try_build().unwrap_err();
    /// assert!(invalid.to_string().contains("apiVersion is missing"));
    /// ```
    pub fn try_build(mut self) -> Result<FlowControl, InvalidObjects> {
        let (exempt_paths, mut problems) = exempt_schema(&self.exempt_paths);
        match self.short_objects(self.given.objects.is_some()) {
            Ok(None) => {}
            Ok(Some(objects)) => self.given.add(objects),
            Err(found) => problems.extend(found),
        }
        problems.extend(self.given.problems(exempt_paths.as_ref(), self.preset));
        InvalidObjects::none_in(problems)?;
        let clock = self.clock.unwrap_or_else(Clock::of_tokio);
        #[cfg(feature = "fleet")]
        let of_fleet = self.fleet.as_ref().map(|fleet| u32::try_from(fleet.settings.seats).unwrap_or(u32::MAX));
        #[cfg(not(feature = "fleet"))]
        let of_fleet: Option<u32> = None;
        let concurrency = self.concurrency.or(of_fleet.map(Concurrency::Fixed));
        let concurrency = concurrency.unwrap_or_else(|| Concurrency::of_preset(self.preset));
        if concurrency == Concurrency::Fixed(0) {
            trace::no_seats();
        }
        #[cfg(feature = "check")]
        let is_to_be_checked = self.given.objects.is_some() && !self.given.are_stored;
        let objects = self.given.objects.unwrap_or_else(|| self.preset.into());
        let flow = FlowControl::new(Setup {
            preset: self.preset,
            concurrency,
            learnt: self.learnt,
            division: self.division,
            listeners: self.listeners,
            wait_limit: self.wait_limit,
            revoke_after: self.revoke_after,
            clock,
            exempt_paths,
            log: self.log,
            objects,
        });
        #[cfg(feature = "check")]
        if is_to_be_checked {
            trace::findings(&flow.findings());
        }
        if self.has_keeper && !look_after(&flow) {
            trace::unkept();
        }
        #[cfg(feature = "fleet")]
        if let Some(config) = &self.fleet {
            let joined = flow.join_fleet(config);
            InvalidObjects::none_in(joined.err().map(|error| ObjectProblem::of_fleet(&error)).into_iter().collect())?;
        }
        Ok(flow)
    }
}

impl Default for FlowControlBuilder {
    fn default() -> Self {
        Self {
            preset: Preset::default(),
            concurrency: None,
            learnt: None,
            division: DivisionChoice::default(),
            listeners: Listeners::default(),
            wait_limit: WAIT_LIMIT_DEFAULT,
            revoke_after: REVOKE_AFTER,
            clock: None,
            given: GivenObjects::default(),
            short: ShortForm::default(),
            exempt_paths: Vec::new(),
            log: LogChoice::default(),
            has_keeper: true,
            #[cfg(feature = "fleet")]
            fleet: None,
        }
    }
}

// === impl GivenObjects ===

impl GivenObjects {
    fn add(&mut self, more: Objects) {
        let all = self.objects.get_or_insert_default();
        all.priority_levels.extend(more.priority_levels);
        all.flow_schemas.extend(more.flow_schemas);
    }

    /// All problems of the objects and of the schema that exempts paths.
    fn problems(&self, exempt_paths: Option<&Arc<FlowSchema>>, preset: Preset) -> Vec<ObjectProblem> {
        let mut objects = self.objects.clone().filter(|_| !self.are_stored).unwrap_or_default();
        objects.flow_schemas.extend(exempt_paths.cloned());
        let mut problems = self.problems_of_texts.clone();
        problems.extend(object_problems::of_each(&objects, preset));
        // A level that seems to be missing may be in a text that could not be read.
        if self.problems_of_texts.is_empty() {
            problems.extend(object_problems::without_level(&objects));
        }
        problems
    }
}

/// The schema that lets everybody ask for these paths, and the problems of those that cannot be exempt.
fn exempt_schema(paths: &[String]) -> (Option<Arc<FlowSchema>>, Vec<ObjectProblem>) {
    let is_usable = |path: &&String| path.len() > 1 && path.starts_with('/');
    let (paths, unusable): (Vec<&String>, Vec<&String>) = paths.iter().partition(is_usable);
    let schema = FlowSchema::builder("exempt-paths").priority_level(EXEMPT).matching_precedence(2);
    let rule = |r: RuleBuilder<_, _>| {
        r.user("*").non_resource_urls(paths.iter().map(|path| path.as_str())).verbs(["get", "head"])
    };
    let schema = (!paths.is_empty()).then(|| Arc::new(schema.rule(rule).build()));
    (schema, unusable.into_iter().map(|path| ObjectProblem::not_exempt(path)).collect())
}

/// Lets a task do what is due, until nobody uses the flow control any more. Tells whether there is a runtime for it.
pub(crate) fn look_after(flow: &FlowControl) -> bool {
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return false };
    let keeper = Keeper::new(Arc::clone(flow.shared().upkeep()));
    drop(runtime.spawn(keep(Arc::downgrade(flow.shared()), keeper)));
    true
}

/// Does what is due, until nobody uses the flow control any more.
async fn keep(shared: Weak<FlowControlShared>, _keeper: Keeper) {
    loop {
        let Some(strong) = shared.upgrade() else { return };
        // A waker that panics must not leave the others without a keeper.
        let pause = catch_unwind(AssertUnwindSafe(|| strong.tick())).unwrap_or(PAUSE_AFTER_PANIC);
        let upkeep = Arc::clone(strong.upkeep());
        drop(strong);
        let _ = tokio::time::timeout(pause, upkeep.news.notified()).await;
    }
}
