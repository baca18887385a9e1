//! `FlowControl::shadow`: how a shadow begins, runs and ends.

use std::sync::{Arc, Weak};
use std::time::Duration;

use evenkeel_engine::LevelInfo;
use evenkeel_engine::controller::Borrowing;
use evenkeel_engine::digest::Query;
use evenkeel_engine::queue_set::RequestId;
use evenkeel_engine::time::Instant;

use super::model::ModelSetup;
use super::records::{EventRecord, Happened, OBSERVED};
use super::report::ShadowReport;
#[cfg(feature = "metrics")]
use super::report::ShadowTotals;
use super::session::Session;
use super::tap::{Arriving, TapListener, tell_session};
use crate::control::clock::Clock;
use crate::control::flow_control::{FlowControl, FlowControlShared};
use crate::control::into_objects::IntoObjects;
use crate::control::level_names::LevelKey;
use crate::control::object_problems::{self, InvalidObjects};
use crate::control::request::FlowRequest;
use crate::control::work::{EstimateWork, WorkInput};

/// The settings of a shadow, beside its objects.
///
/// Not `#[non_exhaustive]`, so that literals can end with `..Default::default()`. End them so: releases add fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ShadowSettings {
    /// How many seats it has; `None`: as many as there are.
    pub concurrency: Option<u32>,
    /// How its levels borrow; `None`: as they do.
    pub borrowing: Option<Borrowing>,
}

/// A request that only the shadow decides about: see [`FlowControl::observe`]. It ends when this is dropped.
#[derive(Debug)]
#[must_use = "the request ends when this is dropped"]
pub struct Observed {
    /// Not held: a request may last longer than the shadow, which has up to 64 MB.
    session: Weak<Session>,
    id: RequestId,
    started: Instant,
    clock: Clock,
}

/// The pause between two passes of a shadow.
const PAUSE: Duration = Duration::from_millis(20);

// === impl FlowControl ===

impl FlowControl {
    /// Lets these objects decide about the same requests beside those that govern, without any effect on them: a dry run. It
    /// replaces the shadow before. [`shadow_report`](Self::shadow_report) tells what came of it so far.
    ///
    /// The shadow has a thread of its own, within 64 MB. A request costs it little: its thread classifies it a second time, and
    /// writes down some 64 bytes. With a clock that is [set by hand](crate::FlowControlBuilder::manual_clock) there is no thread, and the shadow decides when it
    /// is asked for its report.
    ///
    /// ```
    /// use evenkeel::FlowControl;
    ///
    /// let flow = FlowControl::builder().server_concurrency(40).drive_by_hand().build();
    /// flow.shadow(
    ///     "levels:
    ///   orders: {share: 3}
    ///   rest: {share: 1}
    /// match:
    /// - {path: /orders/*, level: orders}
    /// - {level: rest}",
    /// )?;
    /// // … an hour later:
    /// let report = flow.shadow_report().unwrap();
    /// println!("{} {}", report.summary, report.caveat);
    /// flow.end_shadow();
    /// # Ok::<(), evenkeel::objects::InvalidObjects>(())
    /// ```
    pub fn shadow(&self, objects: impl IntoObjects) -> Result<(), InvalidObjects> {
        self.shadow_with(objects, ShadowSettings::default())
    }

    /// The same with other seats, or with another way to borrow them.
    pub fn shadow_with(&self, objects: impl IntoObjects, settings: ShadowSettings) -> Result<(), InvalidObjects> {
        let shared = self.shared();
        let objects = objects.into_objects(self.preset())?;
        object_problems::check(&objects, shared.exempt_paths.as_ref(), self.preset())?;
        let mut objects = objects.with_mandatory_levels();
        objects.flow_schemas.extend(shared.exempt_paths.clone());
        let seats = settings.concurrency.map_or_else(|| shared.seat_limit(), i64::from);
        let mut division = shared.division.clone();
        division.borrowing = Some(settings.borrowing.unwrap_or_else(|| self.borrowing()));
        let is_busy = self.listen_for_shadow();
        let next_division = shared.next_division();
        let setup = ModelSetup { preset: self.preset(), division, objects, seats, next_division };
        let session = Arc::new(Session::new(setup, settings.concurrency.is_some(), shared.now(), is_busy));
        shared.shadow.set(Some(Arc::clone(&session)));
        if matches!(shared.upkeep().clock, Clock::Started(_)) {
            let (flow, session) = (Arc::downgrade(shared), Arc::downgrade(&session));
            let thread = std::thread::Builder::new().name("evenkeel-shadow".to_owned());
            // Without a thread it decides when it is asked.
            drop(thread.spawn(move || run(&flow, &session)));
        }
        Ok(())
    }

    /// What the shadow has seen so far; `None` if there is none.
    pub fn shadow_report(&self) -> Option<ShadowReport> {
        let shared = self.shared();
        let session = shared.shadow.session()?;
        shared.pass_shadow(&session);
        let levels = shared.shadow.control().levels.clone();
        Some(ShadowReport { canary: self.canary_state(), ..session.report(shared.now(), &levels) })
    }

    /// Whether there is a shadow.
    pub fn has_shadow(&self) -> bool {
        self.shared().shadow.is_on()
    }

    /// Ends the shadow, if there is one.
    pub fn end_shadow(&self) {
        self.shared().shadow.set(None);
    }

    /// A request starts that was admitted elsewhere, and that only the shadow decides about; `None` if there is no shadow. It has
    /// no effect on other requests, and ends when the result is dropped.
    ///
    /// For servers that are to get a flow control, to find out beforehand what that would do.
    ///
    /// ```
    /// use evenkeel::request::FlowRequest;
    /// use evenkeel::{Attributes, FlowControl, RequestInfo, User};
    ///
    /// let flow = FlowControl::builder().server_concurrency(40).drive_by_hand().build();
    /// flow.shadow(evenkeel::objects::Objects::from(flow.preset())).unwrap();
    /// let (user, request) = (User::default(), RequestInfo::for_path("get", "/orders"));
    /// let observed = flow.observe(&FlowRequest::new(Attributes { user: &user, request: &request }));
    /// // … the request runs.
    /// drop(observed);
    /// ```
    pub fn observe<W: EstimateWork>(&self, request: &FlowRequest<'_, W>) -> Option<Observed> {
        let shared = self.shared();
        let session = shared.shadow.session()?;
        let snapshot = shared.snapshot();
        let FlowRequest { attributes, work, patience, run_length, watches, .. } = request;
        let (attributes, watches) = (*attributes, *watches);
        let class = snapshot.configuration.classify(attributes);
        let estimate = |level: &LevelInfo| {
            let query = Query::new("");
            work.estimate(&WorkInput { attributes, level, query, watches, extra: &() })
        };
        let (id, started) = (RequestId::from_bits(session.next_observed()), shared.now());
        let arriving = Arriving {
            attributes,
            class: &class,
            work: class
                .schema
                .seats
                .map_or_else(|| estimate(&class.schema.level), evenkeel_engine::WorkEstimate::seats),
            patience,
            run_length: *run_length,
            id,
            at: started,
            is_observed: true,
            wait_limit_default: shared.wait_limit_default(),
            preset: shared.preset,
        };
        // Its end goes to the same session, even if there is another shadow by now.
        tell_session(&session, &arriving, |class| {
            class.schema.seats.map_or_else(|| estimate(&class.schema.level), evenkeel_engine::WorkEstimate::seats)
        });
        Some(Observed { session: Arc::downgrade(&session), id, started, clock: shared.upkeep().clock.clone() })
    }

    /// Makes sure that levels tell the shadow, and tells whether requests are under way.
    fn listen_for_shadow(&self) -> bool {
        let shared = self.shared();
        let has_listened = std::mem::replace(&mut shared.shadow.control().listens, true);
        if !has_listened {
            let tap = Arc::clone(&shared.shadow);
            self.listen(move |id, name| {
                let level = LevelKey::new(id);
                tap.control().levels.add(level, name);
                TapListener::new(&tap, level)
            });
        }
        self.is_busy()
    }
}

// === impl FlowControlShared ===

impl FlowControlShared {
    /// What the shadow has seen so far, all requests together.
    #[cfg(feature = "metrics")]
    pub(crate) fn shadow_totals(&self) -> Option<ShadowTotals> {
        let session = self.shadow.session()?;
        let levels = self.shadow.control().levels.clone();
        Some(session.totals(&levels))
    }

    /// Lets the shadow decide about everything that is known by now.
    fn pass_shadow(&self, session: &Session) {
        let now = self.now();
        for (_, level) in self.known_levels.all() {
            drop(level.listeners());
        }
        let seats = (!session.has_own_seats).then(|| self.seat_limit());
        session.pass(now, seats);
    }
}

/// Runs a shadow until it is replaced, or the flow control is dropped.
fn run(flow: &Weak<FlowControlShared>, session: &Weak<Session>) {
    loop {
        std::thread::sleep(PAUSE);
        let (Some(flow), Some(session)) = (flow.upgrade(), session.upgrade()) else { return };
        if flow.shadow.session().is_none_or(|current| current.number() != session.number()) {
            return;
        }
        flow.pass_shadow(&session);
    }
}

// === impl Observed ===

impl Drop for Observed {
    fn drop(&mut self) {
        let Some(session) = self.session.upgrade() else { return };
        let what = Happened::Finished { ran: self.clock.now() - self.started };
        session.tell_observed(EventRecord { id: self.id, level: OBSERVED, what });
    }
}
