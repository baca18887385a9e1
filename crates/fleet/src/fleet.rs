//! The driver: runs a member with an etcd, in a task.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

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
use crate::process_lock::ProcessLock;
use crate::publication::CurrentLoad;
use crate::view::WatchedChange;

/// Between two attempts to watch. What is missed meanwhile is read every second.
const WATCH_PAUSE: Duration = Duration::from_millis(200);

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
    /// The rest.
    pub settings: FleetSettings,
    /// A file that this process locks. The next one with this file takes the place of this one when it is dead, and has its floor at
    /// once (FL-9).
    pub lock_file: Option<PathBuf>,
}

/// What runs requests.
pub trait FleetInstance: Send + Sync + 'static {
    /// Lets an allowance take effect: when this returns, no request starts above it.
    ///
    /// The allowance has an end. Whoever starts requests has to compare it with [`boot_time`] at every start: a process that was
    /// stopped does not get here in time.
    fn allow(&self, allowance: Allowance);

    /// What the instance does at the moment.
    fn load(&self) -> CurrentLoad;

    /// Something has happened, for logs and metrics.
    fn tell(&self, event: MemberEvent);
}

/// How an instance stands in its fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FleetStatus {
    /// What this instance may use.
    pub allowance: Allowance,
    /// The seats of the service, all instances together; 0 before the ledger is known.
    pub seats: u64,
    /// The seats that are granted or held, all instances together.
    pub seats_held: u64,
    /// How many instances are in the ledger.
    pub instances: usize,
    /// The revision of the ledger.
    pub ledger_revision: u64,
    /// How long the latest call that etcd has answered took.
    pub call_time: Duration,
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
        /// What the system says.
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
    drain: watch::Sender<bool>,
    tasks: [AbortHandle; 2],
    /// Until the process ends.
    _lock: Option<ProcessLock>,
}

struct Driver<I> {
    member: Member,
    keys: Arc<FleetKeys>,
    instance: Arc<I>,
    allowed: Option<Allowance>,
    status: watch::Sender<FleetStatus>,
    drain: watch::Receiver<bool>,
    changes: mpsc::Receiver<Vec<WatchedChange>>,
    replies: (mpsc::Sender<Answer>, mpsc::Receiver<Answer>),
    lease: Option<LeaseId>,
    kept_alive: tokio::time::Instant,
    call_time: Duration,
}

/// The answer to a call.
struct Answer {
    number: u64,
    took: Duration,
    called: Result<Called, evenkeel_store::Error>,
}

// === impl Fleet ===

impl Fleet {
    /// Joins a fleet, in a task of the present runtime.
    pub fn join<I: FleetInstance>(config: &FleetConfig, instance: Arc<I>) -> Result<Self, JoinError> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if config.service.is_empty() || !config.service.chars().all(is_name) {
            return Err(JoinError::ServiceName(config.service.clone()));
        }
        let call_timeout = Duration::from_nanos(CALL_TIMEOUT.unsigned_abs());
        let etcd = EtcdConfig { attempt_deadline: call_timeout, call_deadline: call_timeout, ..config.etcd.clone() };
        let keys = Arc::new(FleetKeys::new(&config.service, &etcd, config.settings.terms)?);
        let process = ProcessNonce(fastrand::u64(..));
        let (lock, predecessor) = take_lock(config.lock_file.as_deref(), process)?;
        let member = Member::new(config.settings, process, predecessor, fastrand::u64(..));
        let (status_sender, status) = watch::channel(FleetStatus::of(&member, Duration::ZERO));
        let (drain, drain_receiver) = watch::channel(false);
        let (change_sender, changes) = mpsc::channel(EVENTS_MAX);
        let watcher = tokio::spawn(forward_changes(Arc::clone(&keys), change_sender)).abort_handle();
        let driver = Driver {
            member,
            keys,
            instance,
            allowed: None,
            status: status_sender,
            drain: drain_receiver,
            changes,
            replies: mpsc::channel(EVENTS_MAX),
            lease: None,
            kept_alive: tokio::time::Instant::now(),
            call_time: Duration::ZERO,
        };
        Ok(Self { status, drain, tasks: [tokio::spawn(driver.run()).abort_handle(), watcher], _lock: lock })
    }

    /// How this instance stands now.
    pub fn status(&self) -> FleetStatus {
        self.status.borrow().clone()
    }

    /// Notifies of every change.
    pub fn subscribe(&self) -> watch::Receiver<FleetStatus> {
        self.status.clone()
    }

    /// Gives the seats back as requests end, and leaves when none is in use (FL-11). Returns whether that has happened within the
    /// time; otherwise others take the seats when this instance has been silent for long enough.
    pub async fn leave(self, at_most: Duration) -> bool {
        self.drain.send_replace(true);
        let mut status = self.status.clone();
        timeout(at_most, status.wait_for(|status| status.is_gone)).await.is_ok_and(|waited| waited.is_ok())
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

/// Locks the file, if there is one and no other process has it. Tells which process is dead.
fn take_lock(
    path: Option<&Path>,
    process: ProcessNonce,
) -> Result<(Option<ProcessLock>, Option<ProcessNonce>), JoinError> {
    let Some(path) = path else { return Ok((None, None)) };
    let taken =
        ProcessLock::take(path, process).map_err(|error| JoinError::LockFile { path: path.to_owned(), error })?;
    Ok(match taken {
        Some((lock, predecessor)) => (Some(lock), predecessor),
        None => {
            tracing::info!("another process of the fleet has locked {}, and lives", path.display());
            (None, None)
        }
    })
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
            if *self.drain.borrow() {
                self.member.drain();
            }
            self.allow();
            self.ask(boot_time());
            while let Some(event) = self.member.poll_event() {
                self.instance.tell(event);
            }
            // What leaving takes away has to take effect too.
            self.allow();
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
            Ok(Called { reply, lease }) => {
                self.call_time = took;
                self.lease = lease.or(self.lease);
                self.member.handle_reply(boot_time(), number, reply);
            }
            Err(error) => {
                tracing::debug!(%error, "a call of the fleet to etcd failed");
                self.member.handle_failure(number);
            }
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
        let Some(call) = self.member.poll(now, &self.instance.load()) else { return };
        let (keys, replies) = (Arc::clone(&self.keys), self.replies.0.clone());
        tokio::spawn(async move {
            let asked = tokio::time::Instant::now();
            let called = keys.call(call.operation).await;
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
            seats_held: ledger.map_or(0, crate::Ledger::seats_held),
            instances: ledger.map_or(0, |ledger| ledger.entries.len()),
            ledger_revision: member.ledger_revision(),
            call_time,
            is_gone: member.is_gone(),
        }
    }
}
