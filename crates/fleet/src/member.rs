//! One instance of a fleet: the protocol as a state machine.

use std::collections::VecDeque;
use std::sync::Arc;

use evenkeel_engine::auto_limit::LimitChange;
use evenkeel_engine::time::{Instant, MILLISECOND, Nanos, SECOND};

use crate::FleetSettings;
use crate::allowance::{Allowance, Footing};
use crate::call::{CALL_TIMEOUT, Call, LedgerWrite, Operation, Pending, Purpose, Reply};
use crate::event::{MemberEvent, changes_of_others};
use crate::ledger::{InstanceId, Ledger, LedgerEntry, ProcessNonce};
use crate::proposal::Observer;
use crate::publication::{CurrentUsage, LoadSource, Publication, differs_much};
use crate::rates::{self, RateLoad, RateShares};
use crate::seat_search::{FoundLimit, SeatSearch};
use crate::silence::Silences;
use crate::view::{FleetView, WatchedChange};

/// Call [`Member::poll`] at least this often, besides after every event.
pub const POLL_PERIOD: Nanos = 20 * MILLISECOND;

/// An instance reads all keys at least this often, because watches may lose changes (FL-12).
const READ_PERIOD: Nanos = SECOND;
/// The pause before another attempt to read or to register.
const RETRY_PERIOD: Nanos = 100 * MILLISECOND;
/// The pause between two publications, so that there are at most four a second.
const PUBLICATION_PACE: Nanos = 250 * MILLISECOND;
/// A small change of the load is published after this.
const SMALL_CHANGE_PERIOD: Nanos = SECOND;
/// The pause between two proposals.
const PROPOSAL_PACE: Nanos = 20 * MILLISECOND;
/// A proposal of one that has not the lowest id waits for up to this, for each one before it.
const PROPOSAL_WAIT: Nanos = 15 * MILLISECOND;
/// More than this many before it count as this many.
const PROPOSAL_RANK_MAX: usize = 16;
/// The parts of rates are told at most this often, however much is received: with many instances that list many flows, to divide them takes a while.
const RATES_PACE: Nanos = 100 * MILLISECOND;
/// How many events are kept until they are taken.
const EVENTS_MAX: usize = 64;

/// One instance of a fleet.
///
/// It does no I/O and reads no clock. Times are those of a clock that also runs while the machine is suspended (FL-8).
///
/// - **In**: [`handle_reply`](Self::handle_reply), [`handle_failure`](Self::handle_failure),
///   [`handle_watch`](Self::handle_watch), [`inherit`](Self::inherit), [`give_back`](Self::give_back),
///   [`drain`](Self::drain).
/// - **Out**: [`poll`](Self::poll) says what to ask etcd; [`poll_event`](Self::poll_event) says what has happened.
/// - **State**: [`allowance`](Self::allowance) says how many seats may be used, and until when; [`is_gone`](Self::is_gone) that
///   nothing is left to do after draining.
///
/// After every event: read the allowance, let it take effect, and only then poll with the seats that are in use.
#[derive(Debug)]
pub struct Member {
    settings: FleetSettings,
    process: ProcessNonce,
    /// A dead process whose entry this one takes over: the caller has the lock of its file (FL-9).
    predecessor: Option<ProcessNonce>,
    random: fastrand::Rng,
    view: FleetView,
    silences: Silences,
    search: SeatSearch,
    registration: Option<Registration>,
    stage: Stage,
    /// When the last confirmed write was sent; a grant is counted from there (FL-8).
    confirmed: Option<Instant>,
    /// Whether the grant has ended before its time, because the registration is lost.
    is_grant_over: bool,
    pending: Option<Pending>,
    calls: u64,
    published: Option<Publication>,
    publication_sent: Option<Instant>,
    /// When a changed load was published that no ledger has followed yet, and how long the last one took.
    round_started: Option<Instant>,
    round_time: Option<Nanos>,
    /// When the flows were last compared with those that are published.
    load_compared: Option<Instant>,
    /// The demand for rates, and when it was asked for; when the parts of them were told.
    rates: Arc<Vec<RateLoad>>,
    rates_asked: Option<Instant>,
    rates_told: Option<Instant>,
    /// When the last snapshot that was received was asked for.
    read: Option<Instant>,
    /// Whether a snapshot has been received since the last attempt to register.
    is_read_fresh: bool,
    /// The earliest time of the next attempt to register.
    registers_at: Instant,
    proposes_at: Option<Instant>,
    proposed: Option<Instant>,
    /// Whether something has been received since the ledger was last compared with what it should be.
    is_view_new: bool,
    compared: Option<Instant>,
    events: VecDeque<MemberEvent>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Registration {
    id: InstanceId,
    create_revision: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Running,
    /// The instance gets no more requests: others get the seats that it does not use. It stays until it drains.
    GivingBack,
    /// The instance gives back its grant as requests end, and leaves.
    Draining,
    /// No request runs: the instance starts none any more, and is about to leave the ledger.
    Leaving,
    Gone,
}

// === impl Member ===

impl Member {
    /// An instance that is not registered yet. `process` and `seed` are random, new for every process.
    ///
    /// `predecessor` is a process that is known to be dead: its entry becomes this one's.
    pub fn new(settings: FleetSettings, process: ProcessNonce, predecessor: Option<ProcessNonce>, seed: u64) -> Self {
        Self {
            settings,
            process,
            predecessor,
            random: fastrand::Rng::with_seed(seed),
            view: FleetView::default(),
            silences: Silences::default(),
            search: SeatSearch::default(),
            registration: None,
            stage: Stage::Running,
            confirmed: None,
            is_grant_over: true,
            pending: None,
            calls: 0,
            published: None,
            publication_sent: None,
            round_started: None,
            round_time: None,
            load_compared: None,
            rates: Arc::default(),
            rates_asked: None,
            rates_told: None,
            read: None,
            is_read_fresh: false,
            registers_at: Instant::from_nanos(i64::MIN),
            proposes_at: None,
            proposed: None,
            is_view_new: false,
            compared: None,
            events: VecDeque::new(),
        }
    }

    /// How many seats this instance may use, and until when.
    pub fn allowance(&self) -> Allowance {
        let (Some(confirmed), Stage::Running | Stage::GivingBack | Stage::Draining) = (self.confirmed, self.stage)
        else {
            return Allowance::NONE;
        };
        let terms = self.settings.terms;
        let floor_until = confirmed + terms.floor_lasts();
        let grant_until =
            if self.is_grant_over { Allowance::NONE.grant_until } else { confirmed + terms.grant_lasts() };
        // The floor belongs to the process: it stays while the process registers again (FL-9).
        let floor = self.view.ledger().and_then(|ledger| ledger.entry_of(self.process)).map_or(0, |entry| entry.floor);
        Allowance { grant: self.entry().map_or(0, |entry| entry.grant), grant_until, floor, floor_until }
    }

    /// The newest ledger that this instance knows.
    pub fn ledger(&self) -> Option<&Ledger> {
        self.view.ledger().map(|ledger| &**ledger)
    }

    /// The revision of the newest ledger, 0 without one.
    pub fn ledger_revision(&self) -> u64 {
        self.view.ledger_revision()
    }

    /// How long it took from the publication of a changed load to the next ledger, the last time that one followed.
    pub fn round_time(&self) -> Option<Nanos> {
        self.round_time
    }

    /// How many seats the fleet has found to be right; nothing if somebody has set them.
    pub fn found_limit(&self) -> Option<FoundLimit> {
        self.search.limit(&self.view)
    }

    /// What this instance has decided about the seats of the service since the last call, if it finds them for all (FL-13).
    pub fn take_limit_changes(&mut self) -> Vec<LimitChange> {
        self.search.take_news()
    }

    /// The seats of the service, as far as this instance knows.
    fn service_seats(&self) -> u64 {
        self.view.ledger().map_or(self.settings.seats, |ledger| ledger.seats)
    }

    /// The parts of rates that this instance has, from time to time (RL-6). They may change without news, too: others fall silent, and a
    /// grant ends.
    pub fn rate_shares(&mut self, now: Instant) -> Option<RateShares> {
        if self.rates_told.is_some_and(|told| now - told < RATES_PACE) {
            return None;
        }
        self.rates_told = Some(now);
        let is_apart = self.allowance().footing(now) != Footing::Grant;
        Some(RateShares::of(&self.view, &self.silences, &self.settings, self.id(), is_apart, now))
    }

    /// This instance's registration.
    pub fn id(&self) -> Option<InstanceId> {
        self.registration.map(|registration| registration.id)
    }

    /// Whether this instance has drained and is no longer in the ledger.
    pub fn is_gone(&self) -> bool {
        self.stage == Stage::Gone
    }

    /// This process is dead, as the caller has learnt by its lock: its entry becomes this one's if this one registers later (FL-9).
    pub fn inherit(&mut self, predecessor: ProcessNonce) {
        self.predecessor = Some(predecessor);
    }

    /// No requests come any more: seats that those which are there do not need are for others from now on (FL-11).
    pub fn give_back(&mut self) {
        if self.stage == Stage::Running {
            self.stage = Stage::GivingBack;
        }
    }

    /// Gives the grant back as requests end, then leaves.
    pub fn drain(&mut self) {
        if matches!(self.stage, Stage::Running | Stage::GivingBack) {
            self.stage = Stage::Draining;
        }
    }

    /// The next event since the last call.
    pub fn poll_event(&mut self) -> Option<MemberEvent> {
        self.events.pop_front()
    }

    /// Takes a reply of etcd. Answers to calls that have been given up are ignored.
    pub fn handle_reply(&mut self, now: Instant, number: u64, reply: Reply) {
        let Some(pending) = self.pending.take_if(|pending| pending.number == number) else { return };
        (self.read, self.is_read_fresh) = (Some(pending.sent), true);
        let Reply { is_written, snapshot } = reply;
        let created = |id: InstanceId| snapshot.live.iter().find(|live| live.id == id).map(|live| live.create_revision);
        match pending.purpose {
            Purpose::Register(id) if is_written => {
                if let Some(create_revision) = created(id) {
                    self.registration = Some(Registration { id, create_revision });
                    self.confirm(pending.sent);
                    self.tell(MemberEvent::Registered { id });
                }
            }
            Purpose::Register(_) => {
                self.registers_at = now + self.random.i64(0..RETRY_PERIOD);
                self.tell(MemberEvent::Conflict);
            }
            Purpose::Publish(id) if is_written && self.id() == Some(id) => self.confirm(pending.sent),
            Purpose::Leave if is_written => {
                self.stage = Stage::Gone;
                self.registration = None;
            }
            Purpose::Propose | Purpose::Leave if !is_written => self.tell(MemberEvent::Conflict),
            Purpose::Read | Purpose::Publish(_) | Purpose::Propose | Purpose::Leave => {}
        }
        let (grant, ledger) = (self.allowance().grant, self.view.ledger().cloned());
        let revision = snapshot.revision;
        self.view.merge(snapshot);
        self.receive(now, grant, ledger.as_deref(), Some(revision));
    }

    /// A call has failed: it may have been done, or not, or will be done later.
    pub fn handle_failure(&mut self, number: u64) {
        if let Some(pending) = self.pending.take_if(|pending| pending.number == number) {
            self.give_up(&pending);
        }
    }

    /// Takes a change that a watch of the fleet's keys reports.
    pub fn handle_watch(&mut self, now: Instant, change: WatchedChange) {
        let (grant, ledger) = (self.allowance().grant, self.view.ledger().cloned());
        self.view.change(change);
        self.receive(now, grant, ledger.as_deref(), None);
    }

    /// What to ask etcd now. While a call is pending, nothing is asked of the instance.
    pub fn poll(&mut self, now: Instant, current: &impl LoadSource) -> Option<Call> {
        if let Some(pending) = self.pending.take_if(|pending| now - pending.sent >= CALL_TIMEOUT) {
            self.give_up(&pending);
        }
        if self.pending.is_some() || self.stage == Stage::Gone {
            return None;
        }
        let (purpose, operation) = match self.registration {
            _ if !self.view.is_readable() => self.read(now, READ_PERIOD)?,
            Some(registration) => self.act(now, registration, current)?,
            None => self.join(now, current)?,
        };
        self.calls += 1;
        self.pending = Some(Pending { number: self.calls, sent: now, purpose });
        Some(Call { number: self.calls, operation })
    }

    /// The ledger entry of this registration.
    fn entry(&self) -> Option<&LedgerEntry> {
        self.view.ledger()?.entry(self.registration?.id)
    }

    /// A grant is counted from the sending of the last confirmed write (FL-8).
    fn confirm(&mut self, sent: Instant) {
        self.confirmed = self.confirmed.max(Some(sent));
        self.is_grant_over = false;
    }

    /// Follows the view after it has changed: what it says about this instance.
    fn receive(&mut self, now: Instant, grant_before: u64, ledger_before: Option<&Ledger>, snapshot: Option<u64>) {
        self.is_view_new = true;
        if let Some(ledger) = self.view.ledger() {
            self.search.note(ledger, self.view.ledger_revision());
        }
        if let (Some(before), Some(after)) = (ledger_before, self.view.ledger().cloned())
            && !std::ptr::eq(before, &raw const *after)
        {
            if let Some(started) = self.round_started.take() {
                self.round_time = Some(now - started);
            }
            for event in changes_of_others(before, &after, self.process, |id| self.silences.of(now, id)) {
                self.tell(event);
            }
        }
        self.silences.receive(now, &self.view, self.id(), snapshot);
        if let Some(registration) = self.registration {
            let key = self.view.live(registration.id);
            let is_lost = key.is_none_or(|key| key.create_revision != registration.create_revision)
                || (self.view.ledger_revision() >= registration.create_revision && self.entry().is_none());
            if is_lost {
                self.registration = None;
                self.is_grant_over = true;
                self.published = None;
                self.tell(MemberEvent::RegistrationLost);
            }
        }
        let grant = self.allowance().grant;
        if grant != grant_before {
            self.tell(MemberEvent::Granted { seats: grant, before: grant_before });
        }
    }

    fn give_up(&mut self, pending: &Pending) {
        if matches!(pending.purpose, Purpose::Publish(_)) {
            // It is not known whether the load was published, so it is published again.
            self.published = None;
        }
        if pending.purpose == Purpose::Read {
            self.read = Some(pending.sent);
        }
        self.tell(MemberEvent::CallFailed);
    }

    fn tell(&mut self, event: MemberEvent) {
        if self.events.len() == EVENTS_MAX {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    /// Reads again when the last read is older than this.
    fn read(&self, now: Instant, period: Nanos) -> Option<(Purpose, Operation)> {
        self.read.is_none_or(|read| now - read >= period).then_some((Purpose::Read, Operation::Read))
    }

    /// The next operation of an instance that is not registered.
    fn join(&mut self, now: Instant, current: &impl LoadSource) -> Option<(Purpose, Operation)> {
        if self.stage != Stage::Running {
            self.stage = if current.usage().in_use == 0 { Stage::Gone } else { self.stage };
            return None;
        }
        // Instances without a ledger still use what it granted them: a new one would grant it again.
        let is_ledger_lost = self.view.ledger().is_none() && self.view.ids().next().is_some();
        if !self.is_read_fresh || is_ledger_lost {
            return self.read(now, RETRY_PERIOD);
        }
        if now < self.registers_at {
            return None;
        }
        self.is_read_fresh = false;
        let id = InstanceId(self.random.u64(1..));
        let compared = self.view.ledger_revision();
        let mut ledger = self.view.ledger().map_or_else(|| Ledger::new(&self.settings), |ledger| (**ledger).clone());
        ledger.take_settings(&self.settings);
        let (process, low) = (self.process, compared + 1);
        let own = |entry: &LedgerEntry| entry.process == process;
        let inherited = |entry: &LedgerEntry| Some(entry.process) == self.predecessor;
        let known = ledger.entries.iter().position(own).or_else(|| ledger.entries.iter().position(inherited));
        let terms = self.settings.terms;
        let mut replaced = None;
        if let Some(entry) = known.map(|at| &mut ledger.entries[at]) {
            replaced = Some(entry.id);
            (entry.process, entry.id, entry.terms, entry.low) = (process, id, terms, low);
        } else {
            let nothing = LedgerEntry { process, id, terms, grant: 0, hold: 0, floor: 0, floor_held: 0, low };
            ledger.entries.push(nothing);
        }
        let hold = current.usage().in_use;
        let input = current.limit_input();
        let publication = Publication {
            ack: 0,
            hold,
            is_draining: false,
            load: current.load(self.service_seats()),
            totals: input.map(|input| input.totals),
            is_held_down: input.is_some_and(|input| input.is_held_down),
            rates: Arc::clone(&self.rates),
        };
        let write = LedgerWrite::new(compared, ledger);
        Some((Purpose::Register(id), Operation::Register { id, publication, write, replaced }))
    }

    /// The next operation of a registered instance.
    fn act(
        &mut self,
        now: Instant,
        registration: Registration,
        current: &impl LoadSource,
    ) -> Option<(Purpose, Operation)> {
        let Registration { id, create_revision } = registration;
        let usage = current.usage();
        if self.stage == Stage::Draining && usage.in_use == 0 && usage.demand() == 0 {
            // It leaves when this has taken effect, and still nothing is in use.
            self.stage = Stage::Leaving;
            return None;
        }
        if let Some(publication) = self.publication(now, &usage, current) {
            self.publication_sent = Some(now);
            let is_changed = self.published.as_ref().is_none_or(|published| published.load != publication.load);
            self.round_started = is_changed.then_some(now);
            self.published = Some(publication.clone());
            return Some((Purpose::Publish(id), Operation::Publish { id, create_revision, publication }));
        }
        self.is_view_new |= self.search.look(now, id, &self.view, &self.silences, current);
        if let Some(operation) = self.proposal(now, registration, &usage) {
            return Some(operation);
        }
        self.read(now, READ_PERIOD)
    }

    /// The publication to write, if others have to know what has changed (FL-3).
    fn publication(&mut self, now: Instant, usage: &CurrentUsage, current: &impl LoadSource) -> Option<Publication> {
        let since = self.publication_sent.map_or(Nanos::MAX, |sent| now - sent);
        if since < PUBLICATION_PACE {
            return None;
        }
        self.ask_rates(now, current);
        let allowance = self.allowance();
        let hold = usage.in_use.max(allowance.grant).max(allowance.floor);
        let load = if self.must_publish(since, usage, hold, current) {
            current.load(self.service_seats())
        } else if since >= SMALL_CHANGE_PERIOD
            && self.load_compared.is_none_or(|compared| now - compared >= SMALL_CHANGE_PERIOD)
        {
            let load = current.load(self.service_seats());
            self.load_compared = Some(now);
            if self
                .published
                .as_ref()
                .is_some_and(|published| (&published.load, &published.rates) == (&load, &self.rates))
            {
                return None;
            }
            load
        } else {
            return None;
        };
        let input = current.limit_input();
        Some(Publication {
            ack: self.view.ledger_revision(),
            hold,
            is_draining: self.stage != Stage::Running,
            load,
            totals: input.map(|input| input.totals),
            is_held_down: input.is_some_and(|input| input.is_held_down),
            rates: Arc::clone(&self.rates),
        })
    }

    /// What is to be published of rates.
    fn ask_rates(&mut self, now: Instant, current: &impl LoadSource) {
        if self.rates_asked.is_none_or(|asked| now - asked >= PUBLICATION_PACE) {
            self.rates_asked = Some(now);
            let mut loads = current.rates();
            rates::keep_greatest(&mut loads);
            if loads != *self.rates {
                self.rates = Arc::new(loads);
            }
        }
    }

    /// Whether others have to know at once.
    fn must_publish(&self, since: Nanos, usage: &CurrentUsage, hold: u64, current: &impl LoadSource) -> bool {
        let Some(published) = &self.published else { return true };
        let frees_seats = self.entry().is_some_and(|entry| {
            let is_late = published.ack < entry.low;
            (entry.hold > entry.grant && (is_late || published.hold > hold))
                || (entry.floor_held > entry.floor && is_late)
        });
        frees_seats
            || published.is_draining != (self.stage != Stage::Running)
            || since >= self.settings.terms.publication_period()
            || differs_much(&published.load, usage)
            || self.search.must_publish(&self.view, published, usage, current)
            || rates::differ(&published.rates, &self.rates)
    }

    /// Writes the ledger if it is not what it should be (FL-5).
    fn proposal(
        &mut self,
        now: Instant,
        registration: Registration,
        usage: &CurrentUsage,
    ) -> Option<(Purpose, Operation)> {
        let Registration { id, create_revision } = registration;
        if self.proposed.is_some_and(|proposed| now - proposed < PROPOSAL_PACE) {
            return None;
        }
        match self.stage {
            Stage::Running => {}
            // Other instances divide the seats that it gives back.
            Stage::GivingBack | Stage::Draining | Stage::Gone => return None,
            Stage::Leaving if usage.in_use > 0 => return None,
            Stage::Leaving => {
                let mut ledger = (**self.view.ledger()?).clone();
                ledger.entries.retain(|entry| entry.process != self.process);
                self.proposed = Some(now);
                let write = LedgerWrite::new(self.view.ledger_revision(), ledger);
                return Some((Purpose::Leave, Operation::Leave { id, create_revision, write }));
            }
        }
        // Without news, only silences of other instances can lead to a proposal.
        let is_due = self.proposes_at.is_some_and(|at| now >= at)
            || self.is_view_new && self.proposes_at.is_none()
            || self.compared.is_none_or(|compared| now - compared >= PUBLICATION_PACE);
        if !is_due {
            return None;
        }
        (self.compared, self.is_view_new) = (Some(now), false);
        let observer = Observer {
            settings: &self.settings,
            me: id,
            now,
            view: &self.view,
            silences: &self.silences,
            finder: self.search.finder(),
        };
        let Some(proposal) = observer.propose() else {
            self.proposes_at = None;
            return None;
        };
        let rank = self.view.ids().take_while(|other| *other < id).count().min(PROPOSAL_RANK_MAX);
        if rank > 0 && self.proposes_at.is_none_or(|at| now < at) {
            let wait = Nanos::try_from(rank).unwrap_or(1) * PROPOSAL_WAIT;
            self.proposes_at.get_or_insert(now + self.random.i64(0..wait));
            return None;
        }
        (self.proposes_at, self.proposed) = (None, Some(now));
        let write = LedgerWrite::new(self.view.ledger_revision(), proposal.ledger);
        Some((Purpose::Propose, Operation::Propose { id, create_revision, write, reclaimed: proposal.reclaimed }))
    }
}
