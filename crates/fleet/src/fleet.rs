//! The driver: runs a member with an etcd, in a task.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_engine::auto_limit::LimitChange;
use evenkeel_engine::time::Instant;
use evenkeel_store::{EtcdConfig, LeaseId};
use thiserror::Error;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use crate::FleetSettings;
use crate::allowance::Allowance;
use crate::boot_time::boot_time;
use crate::call::CALL_TIMEOUT;
use crate::etcd_keys::{Called, FleetKeys};
use crate::event::MemberEvent;
use crate::ledger::ProcessNonce;
use crate::member::{Member, POLL_PERIOD};
use crate::process_lock::WantedLock;
use crate::publication::LoadSource;
use crate::rates::RateShares;
use crate::seat_search::FoundLimit;
use crate::view::WatchedChange;

/// The pause between two attempts to watch. Missed changes are read every second.
const WATCH_PAUSE: Duration = Duration::from_millis(200);

/// The deadline of a whole operation.
const CALL_DEADLINE: Duration = Duration::from_nanos(CALL_TIMEOUT.unsigned_abs());

/// The pause between two attempts to lock the file that another process has locked.
const LOCK_PAUSE: Duration = Duration::from_secs(1);

/// Changes and replies that wait for the driver.
const EVENTS_MAX: usize = 256;

/// Which fleet to join.
///
/// Not `#[non_exhaustive]`: callers make it, and have to give all of it.
#[derive(Debug, Clone)]
pub struct FleetConfig {
    /// Instances with the same name share the seats.
    pub service: String,
    /// Where the ledger is. The prefix and the deadlines are the fleet's own.
    pub etcd: EtcdConfig,
    /// The settings of this instance.
    pub settings: FleetSettings,
    /// A file that this process locks. The next one with this file takes the place of this one when it is dead, and has its floor at
    /// once (FL-9).
    pub lock_file: Option<PathBuf>,
}

/// The server that a member allows seats: it runs requests.
pub trait FleetInstance: LoadSource + Send + Sync + 'static {
    /// Lets an allowance take effect: when this returns, no request starts above it.
    ///
    /// The allowance has an end. Code that starts requests has to compare it with [`boot_time`] at every start: a process that
    /// was stopped does not get here in time.
    fn allow(&self, allowance: Allowance);

    /// Lets parts of rates take effect (RL-6).
    fn share_rates(&self, _: &RateShares) {}

    /// Something has happened, for logs and metrics.
    fn tell(&self, event: MemberEvent);

    /// This instance has decided something about the seats of the service, for all (FL-13).
    fn tell_limit(&self, _changes: &[LimitChange]) {}
}

/// How an instance stands in its fleet.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct FleetStatus {
    /// The seats that this instance may use.
    pub allowance: Allowance,
    /// The seats of the service, all instances together; 0 before the ledger is known.
    pub seats: u64,
    /// Where that number comes from, if the fleet finds it out (FL-13).
    pub limit: Option<FoundLimit>,
    /// The seats that are granted or held, all instances together.
    pub seats_held: u64,
    /// How many instances are in the ledger.
    pub instances: usize,
    /// The revision of the ledger.
    pub ledger_revision: u64,
    /// How long the latest call that etcd has answered took.
    pub call_time: Duration,
    /// How long it took from the publication of a changed load to the next division, the last time that one followed.
    pub round_time: Option<Duration>,
    /// Whether this instance has drained and left.
    pub is_gone: bool,
}

/// Why an instance cannot join a fleet.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum JoinError {
    /// The name of the service cannot be a part of a key.
    #[error("the fleet's service name {0:?} must be letters, digits, `.`, `_` and `-`; change `fleet.service`")]
    ServiceName(String),
    /// The lock file cannot be used.
    #[error("cannot lock the file {}: {error}; name a file that this process may write with `fleet.lockFile`", path.display())]
    LockFile {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        error: std::io::Error,
    },
    /// etcd's address or certificates cannot be used.
    #[error(transparent)]
    Etcd(#[from] evenkeel_store::Error),
}

/// A member of a fleet that runs in a task. It ends when this is dropped: the seats are free for others when its grant has ended.
#[derive(Debug)]
pub struct Fleet {
    status: watch::Receiver<FleetStatus>,
    departure: watch::Sender<Departure>,
    tasks: [AbortHandle; 2],
}

struct Driver<I> {
    member: Member,
    keys: Arc<FleetKeys>,
    instance: Arc<I>,
    allowed: Option<Allowance>,
    status: watch::Sender<FleetStatus>,
    departure: watch::Receiver<Departure>,
    changes: mpsc::Receiver<Vec<WatchedChange>>,
    replies: (mpsc::Sender<Answer>, mpsc::Receiver<Answer>),
    lease: Option<LeaseId>,
    kept_alive: tokio::time::Instant,
    call_time: Duration,
    /// The lock file, which is kept until this process is no longer a member.
    lock: Option<WantedLock>,
    lock_tried: tokio::time::Instant,
}

/// Whether an instance is about to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Departure {
    Stays,
    /// The instance gets no more requests.
    GivesBack,
    Leaves,
}

/// The answer to a call.
struct Answer {
    number: u64,
    took: Duration,
    /// `None` if etcd has not answered in time.
    called: Option<Called>,
}

// === impl Fleet ===

impl Fleet {
    /// Joins a fleet, in a task of the present runtime.
    pub fn join<I: FleetInstance>(config: &FleetConfig, instance: Arc<I>) -> Result<Self, JoinError> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if config.service.is_empty() || !config.service.chars().all(is_name) {
            return Err(JoinError::ServiceName(config.service.clone()));
        }
        let etcd = EtcdConfig { attempt_deadline: CALL_DEADLINE, call_deadline: CALL_DEADLINE, ..config.etcd.clone() };
        let keys = Arc::new(FleetKeys::new(&config.service, &etcd, config.settings.terms)?);
        let process = ProcessNonce(fastrand::u64(..));
        let mut lock = config.lock_file.as_ref().map(|path| WantedLock::new(path, process));
        let predecessor = match (&mut lock, &config.lock_file) {
            (Some(lock), Some(path)) => {
                lock.try_take().map_err(|error| JoinError::LockFile { path: path.clone(), error })?
            }
            _ => None,
        };
        if let (Some(path), Some(false)) = (&config.lock_file, lock.as_ref().map(WantedLock::is_taken)) {
            tracing::info!("another process of the fleet has locked {}; waiting until it has ended", path.display());
        }
        let member = Member::new(config.settings, process, predecessor, fastrand::u64(..));
        let (status_sender, status) = watch::channel(FleetStatus::of(&member, Duration::ZERO));
        let (departure, departure_receiver) = watch::channel(Departure::Stays);
        let (change_sender, changes) = mpsc::channel(EVENTS_MAX);
        let watcher = tokio::spawn(forward_changes(Arc::clone(&keys), change_sender)).abort_handle();
        let driver = Driver {
            member,
            keys,
            instance,
            allowed: None,
            status: status_sender,
            departure: departure_receiver,
            changes,
            replies: mpsc::channel(EVENTS_MAX),
            lease: None,
            kept_alive: tokio::time::Instant::now(),
            call_time: Duration::ZERO,
            lock,
            lock_tried: tokio::time::Instant::now(),
        };
        Ok(Self { status, departure, tasks: [tokio::spawn(driver.run()).abort_handle(), watcher] })
    }

    /// The state of this instance now.
    pub fn status(&self) -> FleetStatus {
        self.status.borrow().clone()
    }

    /// Notifies of every change.
    pub fn subscribe(&self) -> watch::Receiver<FleetStatus> {
        self.status.clone()
    }

    /// No requests come any more: seats that those which are there do not need are for others from now on (FL-11).
    pub fn give_back(&self) {
        self.departure.send_replace(Departure::GivesBack);
    }

    /// Gives the seats back as requests end, and leaves when none is in use (FL-11). Returns whether that has happened within the
    /// time; otherwise others take the seats when this instance has been silent for long enough.
    pub async fn leave(self, at_most: Duration) -> bool {
        self.departure.send_replace(Departure::Leaves);
        let mut status = self.status.clone();
        timeout(at_most, status.wait_for(|status| status.is_gone)).await.is_ok_and(|waited| waited.is_ok())
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

/// Watches the keys again and again.
async fn forward_changes(keys: Arc<FleetKeys>, changes: mpsc::Sender<Vec<WatchedChange>>) {
    loop {
        if let Ok(mut watch) = keys.watch().await {
            while let Ok(next) = watch.next().await {
                if changes.send(next).await.is_err() {
                    return;
                }
            }
        }
        sleep(WATCH_PAUSE).await;
    }
}

// === impl Driver ===

impl<I: FleetInstance> Driver<I> {
    async fn run(mut self) {
        let mut ticks = interval(Duration::from_nanos(POLL_PERIOD.unsigned_abs()));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                Some(answer) = self.replies.1.recv() => self.take_answer(answer),
                Some(changes) = self.changes.recv() => {
                    let now = boot_time();
                    for change in changes {
                        self.member.handle_watch(now, change);
                    }
                }
                _ = ticks.tick() => {}
            }
            let departure = *self.departure.borrow();
            match departure {
                Departure::Stays => {}
                Departure::GivesBack => self.member.give_back(),
                Departure::Leaves => self.member.drain(),
            }
            self.take_lock();
            self.allow();
            self.ask(boot_time());
            while let Some(event) = self.member.poll_event() {
                self.instance.tell(event);
            }
            let changes = self.member.take_limit_changes();
            if !changes.is_empty() {
                self.instance.tell_limit(&changes);
            }
            // What leaving takes away has to take effect too.
            self.allow();
            if let Some(shares) = self.member.rate_shares(boot_time()) {
                self.instance.share_rates(&shares);
            }
            let status = FleetStatus::of(&self.member, self.call_time);
            self.status.send_if_modified(|told| std::mem::replace(told, status.clone()) != status);
            if self.member.is_gone() {
                return;
            }
            self.keep_alive();
        }
    }

    fn take_answer(&mut self, Answer { number, took, called }: Answer) {
        match called {
            Some(Called { reply, lease }) => {
                self.call_time = took;
                self.lease = lease.or(self.lease);
                self.member.handle_reply(boot_time(), number, reply);
            }
            None => self.member.handle_failure(number),
        }
    }

    /// The process before this one may end later: with `takeover` it does so when this one serves.
    fn take_lock(&mut self) {
        let Some(lock) = self.lock.as_mut().filter(|lock| !lock.is_taken()) else { return };
        if self.lock_tried.elapsed() < LOCK_PAUSE {
            return;
        }
        self.lock_tried = tokio::time::Instant::now();
        match lock.try_take() {
            Ok(Some(predecessor)) => self.member.inherit(predecessor),
            Ok(None) => {}
            Err(error) => tracing::debug!(%error, "cannot lock the file of the fleet; trying again"),
        }
    }

    /// Lets the allowance take effect before anything is published of it (FL-6).
    fn allow(&mut self) {
        let allowance = self.member.allowance();
        if self.allowed != Some(allowance) {
            self.allowed = Some(allowance);
            self.instance.allow(allowance);
        }
    }

    fn ask(&mut self, now: Instant) {
        let Some(call) = self.member.poll(now, &*self.instance) else { return };
        let (keys, replies) = (Arc::clone(&self.keys), self.replies.0.clone());
        tokio::spawn(async move {
            let asked = tokio::time::Instant::now();
            // One deadline, however many calls an operation is: the member has given up by then (FL-12).
            let called = match timeout(CALL_DEADLINE, keys.call(call.operation)).await {
                Ok(called) => {
                    called.inspect_err(|error| tracing::debug!(%error, "a call of the fleet to etcd failed")).ok()
                }
                Err(_) => None,
            };
            let took = asked.elapsed();
            // The driver may have ended.
            let _ = replies.send(Answer { number: call.number, took, called }).await;
        });
    }

    /// Keeps the lease alive, which proves nothing (FL-1).
    fn keep_alive(&mut self) {
        let Some(lease) = self.lease.filter(|_| self.kept_alive.elapsed() >= self.keys.keep_alive_period()) else {
            return;
        };
        self.kept_alive = tokio::time::Instant::now();
        let keys = Arc::clone(&self.keys);
        tokio::spawn(async move { keys.keep_alive(lease).await });
    }
}

// === impl FleetStatus ===

impl FleetStatus {
    fn of(member: &Member, call_time: Duration) -> Self {
        let ledger = member.ledger();
        Self {
            allowance: member.allowance(),
            seats: ledger.map_or(0, |ledger| ledger.seats),
            limit: member.found_limit(),
            seats_held: ledger.map_or(0, crate::Ledger::seats_held),
            instances: ledger.map_or(0, |ledger| ledger.entries.len()),
            ledger_revision: member.ledger_revision(),
            call_time,
            round_time: member.round_time().map(|took| Duration::from_nanos(took.unsigned_abs())),
            is_gone: member.is_gone(),
        }
    }
}
