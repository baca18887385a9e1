//! A course of loads and capacities that each contender is sent through, and what came of it.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::collapsing::Collapsing;
use super::contender::{Contender, Running};
use crate::load::{Ending, Load};

/// A part of the course.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    pub(super) name: &'static str,
    pub(super) seconds: u32,
    /// How many times the capacity at the beginning clients ask for.
    pub(super) load: f64,
    pub(super) slots: u32,
    pub(super) work_ms: u32,
    /// What the service can do at best, as a part of what it can do at the beginning.
    pub(super) best: f64,
}

/// What came of a request: when it was sent, in seconds since the course began, and how long it took if it was served.
#[derive(Debug, Clone, Copy)]
struct Sent {
    at: f64,
    served_after: Option<f64>,
    is_rejected: bool,
}

/// What came of a course.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) contender: Contender,
    sent: Vec<Sent>,
    /// The limit over time.
    pub(super) limits: Vec<(f64, f64)>,
}

pub(super) const SLOTS: u32 = 20;
pub(super) const WORK_MS: u32 = 20;
/// Requests per second that the service can do at the beginning.
pub(super) const CAPACITY: f64 = SLOTS as f64 * 1000.0 / WORK_MS as f64;

/// A cold start, then an overload, half of the capacity, all of it again, and requests that take three times as long and can be worked on
/// three at a time instead of one: a mix that wants more seats.
const COURSE: [Part; 5] = [
    Part { name: "light", seconds: 8, load: 0.5, slots: SLOTS, work_ms: WORK_MS, best: 1.0 },
    Part { name: "3 x", seconds: 20, load: 3.0, slots: SLOTS, work_ms: WORK_MS, best: 1.0 },
    Part { name: "halved", seconds: 15, load: 3.0, slots: SLOTS / 2, work_ms: WORK_MS, best: 0.5 },
    Part { name: "back", seconds: 12, load: 3.0, slots: SLOTS, work_ms: WORK_MS, best: 1.0 },
    Part { name: "dearer", seconds: 20, load: 3.0, slots: 3 * SLOTS, work_ms: 3 * WORK_MS, best: 1.0 },
];

/// Set to anything, it makes ten minutes of the course.
const LONG: &str = "EVENKEEL_LIMIT_LONG";

/// The course, as long as it is to be.
pub(super) fn course() -> [Part; 5] {
    let times = if std::env::var_os(LONG).is_some() { 8 } else { 1 };
    COURSE.map(|part| Part { seconds: times * part.seconds, ..part })
}

/// A cold start of a service with so many slots, whose capacity is that of the others: light load, and then an overload.
pub(super) const fn cold_start(slots: u32) -> [Part; 2] {
    let part = Part { name: "cold start", seconds: 4, load: 0.5, slots, work_ms: slots, best: 1.0 };
    [part, Part { seconds: 12, load: 3.0, ..part }]
}

/// What clients have not got by then is no good to them.
const DEADLINE: Duration = Duration::from_millis(500);
/// When clients give up: when it is of no use any more, or long after.
pub(super) const IMPATIENT: Duration = DEADLINE;
pub(super) const PATIENT: Duration = Duration::from_secs(10);
const UNDER_WAY_MAX: usize = 3000;
const TICK: Duration = Duration::from_millis(5);
const LIMIT_EVERY: Duration = Duration::from_millis(250);

/// Sends a contender through the first parts of the course, with a service of its own: requests that clients gave up stay inside, and a
/// service that has thousands of them does not recover for the next contender.
pub(super) fn run(contender: Contender, parts: &[Part], patience: Duration) -> io::Result<Outcome> {
    let first = parts.first().unwrap_or(&COURSE[0]);
    let service = Collapsing::start(first.slots, first.work_ms)?;
    let running = contender.start(first.slots, service.address)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (sent, limits) = runtime.block_on(go(&running, &service, parts, patience));
    Ok(Outcome { contender, sent, limits })
}

async fn go(
    running: &Running,
    service: &Collapsing,
    parts: &[Part],
    patience: Duration,
) -> (Vec<Sent>, Vec<(f64, f64)>) {
    let load = Arc::new(Load::new(running.process.address, "all"));
    let places = Arc::new(Semaphore::new(UNDER_WAY_MAX));
    let sent: Arc<Mutex<Vec<Sent>>> = Arc::default();
    let (start, mut limits, mut requests) = (Instant::now(), Vec::new(), JoinSet::new());
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let (mut part_ends, mut next_limit) = (start, start);
    for part in parts {
        service.set(part.slots, part.work_ms);
        part_ends += Duration::from_secs(part.seconds.into());
        let mut due = 0.0;
        while Instant::now() < part_ends {
            ticks.tick().await;
            due += part.load * CAPACITY * TICK.as_secs_f64();
            while due >= 1.0 {
                due -= 1.0;
                let Ok(place) = Arc::clone(&places).try_acquire_owned() else { continue };
                let (load, sent) = (Arc::clone(&load), Arc::clone(&sent));
                requests.spawn(async move {
                    let began = Instant::now();
                    let ending = tokio::time::timeout(patience, load.ask()).await;
                    let took = began.elapsed();
                    let is_good = ending == Ok(Ending::Served) && took <= DEADLINE;
                    let served_after = is_good.then_some(took.as_secs_f64());
                    let at = (began - start).as_secs_f64();
                    let is_rejected = ending == Ok(Ending::TurnedAway);
                    sent.lock().unwrap_or_else(PoisonError::into_inner).push(Sent { at, served_after, is_rejected });
                    drop(place);
                });
            }
            while requests.try_join_next().is_some() {}
            if Instant::now() >= next_limit {
                next_limit += LIMIT_EVERY;
                limits.extend(running.limit().map(|limit| (start.elapsed().as_secs_f64(), limit)));
            }
        }
    }
    while requests.join_next().await.is_some() {}
    let sent = std::mem::take(&mut *sent.lock().unwrap_or_else(PoisonError::into_inner));
    (sent, limits)
}

/// When a part begins and ends, in seconds.
pub(super) fn span(name: &str) -> (f64, f64) {
    let mut from = 0.0;
    for part in course() {
        let until = from + f64::from(part.seconds);
        if part.name == name {
            return (from, until);
        }
        from = until;
    }
    (from, from)
}

// === impl Outcome ===

impl Outcome {
    /// Good responses per second to requests that were sent in this time.
    pub(super) fn goodput(&self, from: f64, until: f64) -> f64 {
        self.within(from, until).filter(|sent| sent.served_after.is_some()).count() as f64 / (until - from)
    }

    pub(super) fn rejected(&self, from: f64, until: f64) -> usize {
        self.within(from, until).filter(|sent| sent.is_rejected).count()
    }

    /// The 99th percentile of the times of good responses, in milliseconds.
    pub(super) fn p99_ms(&self, from: f64, until: f64) -> f64 {
        let mut times: Vec<f64> = self.within(from, until).filter_map(|sent| sent.served_after).collect();
        times.sort_by(f64::total_cmp);
        times.get(times.len() * 99 / 100).map_or(f64::NAN, |time| time * 1e3)
    }

    /// The first second from which on each second has so many good responses, counted from the beginning of the span.
    pub(super) fn reached(&self, from: f64, until: f64, goodput: f64) -> f64 {
        let mut reached = f64::INFINITY;
        let mut second = until - 1.0;
        while second >= from {
            if self.goodput(second, second + 1.0) < goodput {
                break;
            }
            reached = second - from;
            second -= 0.5;
        }
        reached
    }

    fn within(&self, from: f64, until: f64) -> impl Iterator<Item = &Sent> {
        self.sent.iter().filter(move |sent| (from..until).contains(&sent.at))
    }
}
