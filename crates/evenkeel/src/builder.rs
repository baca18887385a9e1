//! Setting up a flow control.

use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::time::Duration;

use evenkeel_api::AnyObject;
use evenkeel_api::decode::{Manifest, Problems, Strictness};
use evenkeel_api::v1::{FlowSchema, PriorityLevelConfiguration};
use evenkeel_engine::controller::Objects;

use crate::clock::{Clock, ManualClock};
use crate::flow_control::{FlowControl, Report, Shared};
use crate::trace;

/// Sets up a [`FlowControl`]. With nothing said, it follows the bootstrap objects, which are made for a Kubernetes server:
/// see [`objects`](Self::objects).
#[derive(Debug, Clone)]
#[must_use = "call `build` at the end"]
pub struct Builder {
    server_concurrency: u32,
    wait_limit: Duration,
    clock: Option<ManualClock>,
    objects: Option<Objects>,
    has_keeper: bool,
}

/// Anything that objects can be made of: the text of a manifest, a manifest that has been read, one object or several.
///
/// [`Builder::objects`] takes them; to change the objects later, hand what this makes of them to
/// [`FlowControl::apply`].
pub trait IntoObjects {
    /// What is wrong with them, if anything can be.
    type Error;

    /// The objects.
    fn into_objects(self) -> Result<Objects, Self::Error>;
}

/// The seats of a server that does not say how many it has (CL-1).
const SERVER_CONCURRENCY_DEFAULT: u32 = 600;
/// How long a request waits if nobody says how long it makes sense (HF-7).
const WAIT_LIMIT_DEFAULT: Duration = Duration::from_secs(15);
/// When the keeper goes on after somebody that it woke has panicked.
const PAUSE_AFTER_PANIC: Duration = Duration::from_millis(10);

// === impl Builder ===

impl Builder {
    /// How many seats the service has: how many ordinary requests it can work on at a time. The default is 600.
    ///
    /// It should be one at least: a kube-apiserver does not start with none (CL-1). With none, queues let nobody through, a
    /// level without queues lets one request in at a time, and a warning says so.
    pub fn server_concurrency(mut self, seats: u32) -> Self {
        self.server_concurrency = seats;
        self
    }

    /// How long a request waits at most that has no deadline of its own. The default is 15 seconds; nothing waits
    /// longer than a minute.
    pub fn wait_limit(mut self, limit: Duration) -> Self {
        self.wait_limit = limit;
        self
    }

    /// The objects to follow instead of the bootstrap objects: the text of a manifest, or objects in Rust. The mandatory
    /// objects are always there. Called again, it adds to those given before.
    ///
    /// With the bootstrap objects, all clients of a plain service are in the level `global-default`, which has 20 of 245
    /// shares: 49 of 600 seats, or 9 of 100. It borrows what other levels lend, but only every ten seconds (CL-25). A
    /// service that is no Kubernetes is better off with objects of its own.
    ///
    /// ```
    /// use evenkeel::FlowControl;
    /// use evenkeel_api::v1::PriorityLevelConfiguration;
    ///
    /// let level = PriorityLevelConfiguration::builder("tenants").limited(|l| l.shares(40).reject()).build();
    /// let flow = FlowControl::builder().objects(level)?.build();
    /// let problems = FlowControl::builder().objects("kind: FlowSchema").unwrap_err();
    /// assert!(problems.to_string().contains("apiVersion is missing"));
    /// # Ok::<(), std::convert::Infallible>(())
    /// ```
    pub fn objects<O: IntoObjects>(mut self, objects: O) -> Result<Self, O::Error> {
        let more = objects.into_objects()?;
        let all = self.objects.get_or_insert_default();
        all.priority_levels.extend(more.priority_levels);
        all.flow_schemas.extend(more.flow_schemas);
        Ok(self)
    }

    /// Lets the service drive the flow control: nothing runs in the background, and
    /// [`tick`](FlowControl::tick) has to be called from time to time. Until it is called, seats are not lent, seats of
    /// requests that linger are not free, and levels without objects do not go.
    ///
    /// Requests may wait without a runtime of tokio then, on any executor: those that have waited too long are turned
    /// away at the next call.
    pub fn drive_by_hand(mut self) -> Self {
        self.has_keeper = false;
        self
    }

    /// Takes the time from a clock that is set by hand. Nothing runs in the background then, and no timer is used: see
    /// [`drive_by_hand`](Self::drive_by_hand).
    pub fn manual_clock(mut self, clock: ManualClock) -> Self {
        self.clock = Some(clock);
        self.drive_by_hand()
    }

    /// The flow control. Built inside of a runtime of tokio it looks after itself from now on, until its last clone is
    /// dropped. The runtime has to have timers (`enable_time` or `enable_all`): without them tokio panics when the first
    /// request has to wait.
    ///
    /// Built elsewhere, also if its requests come in a runtime later, it has to be
    /// [driven by hand](Self::drive_by_hand); unless that was asked for, a warning says so.
    pub fn build(self) -> FlowControl {
        self.build_with_report().0
    }

    /// The same, and what came of the objects: flow schemas without a level, and levels that cannot be used.
    ///
    /// ```
    /// use evenkeel::FlowControl;
    /// use evenkeel_api::v1::FlowSchema;
    ///
    /// let lost = FlowSchema::builder("lost").priority_level("nowhere").rule(|r| r.user("alice").everything()).build();
    /// let (flow, report) = FlowControl::builder().objects(lost)?.drive_by_hand().build_with_report();
    /// assert!(report.dangling[0].is_dangling);
    /// # Ok::<(), std::convert::Infallible>(())
    /// ```
    pub fn build_with_report(self) -> (FlowControl, Report) {
        let clock = self.clock.map_or_else(|| Clock::Tokio(tokio::time::Instant::now()), Clock::Manual);
        if self.server_concurrency == 0 {
            trace::no_seats();
        }
        let objects = self.objects.unwrap_or_else(Objects::bootstrap);
        let (flow, report) = FlowControl::new(self.server_concurrency.into(), self.wait_limit, clock, objects);
        if self.has_keeper {
            match tokio::runtime::Handle::try_current() {
                Ok(runtime) => drop(runtime.spawn(keep(Arc::downgrade(flow.shared())))),
                Err(_) => trace::unkept(),
            }
        }
        (flow, report)
    }
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            server_concurrency: SERVER_CONCURRENCY_DEFAULT,
            wait_limit: WAIT_LIMIT_DEFAULT,
            clock: None,
            objects: None,
            has_keeper: true,
        }
    }
}

/// Does what is due, until nobody uses the flow control any more.
async fn keep(shared: Weak<Shared>) {
    loop {
        let Some(strong) = shared.upgrade() else { return };
        // A waker that panics must not leave the others without a keeper.
        let pause = catch_unwind(AssertUnwindSafe(|| strong.tick())).unwrap_or(PAUSE_AFTER_PANIC);
        let upkeep = Arc::clone(strong.upkeep());
        drop(strong);
        let _ = tokio::time::timeout(pause, upkeep.news.notified()).await;
    }
}

// === impl IntoObjects ===

impl IntoObjects for &str {
    type Error = Problems;

    /// The text of a manifest, which is read strictly.
    fn into_objects(self) -> Result<Objects, Problems> {
        let manifest = Manifest::read("manifest", self.as_bytes(), Strictness::Strict)?;
        manifest.into_objects().map_err(|never| match never {})
    }
}

impl IntoObjects for &String {
    type Error = Problems;

    fn into_objects(self) -> Result<Objects, Problems> {
        self.as_str().into_objects()
    }
}

impl IntoObjects for String {
    type Error = Problems;

    fn into_objects(self) -> Result<Objects, Problems> {
        self.as_str().into_objects()
    }
}

impl IntoObjects for Manifest {
    type Error = Infallible;

    fn into_objects(self) -> Result<Objects, Infallible> {
        Ok(self.entries.into_iter().map(|entry| entry.object).collect())
    }
}

impl IntoObjects for Objects {
    type Error = Infallible;

    fn into_objects(self) -> Result<Objects, Infallible> {
        Ok(self)
    }
}

impl IntoObjects for FlowSchema {
    type Error = Infallible;

    fn into_objects(self) -> Result<Objects, Infallible> {
        [self].into_objects()
    }
}

impl IntoObjects for PriorityLevelConfiguration {
    type Error = Infallible;

    fn into_objects(self) -> Result<Objects, Infallible> {
        [self].into_objects()
    }
}

impl<T: Into<AnyObject>> IntoObjects for Vec<T> {
    type Error = Infallible;

    fn into_objects(self) -> Result<Objects, Infallible> {
        Ok(self.into_iter().map(Into::into).collect())
    }
}

impl<T: Into<AnyObject>, const N: usize> IntoObjects for [T; N] {
    type Error = Infallible;

    fn into_objects(self) -> Result<Objects, Infallible> {
        Ok(self.into_iter().map(Into::into).collect())
    }
}
