//! One greedy tenant asks for ten times what the service can do, or several together do, while polite ones ask for a little.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_bars::{Bar, Bars};
use evenkeel_process::{median, p99_ms};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until};

use crate::contestant::{ClientTransport, Contestant, Task};
use crate::load::{Ending, Load};
use crate::service::{SLOTS, Service, WORK};

/// How many times the service's capacity greedy tenants ask for together.
const OVERLOAD: u32 = 10;
/// So many of their requests are under way at most; they would run out of connections otherwise.
const GREEDY_UNDER_WAY_MAX: usize = 1000;
/// The requests of a greedy tenant are sent in small crowds.
const GREEDY_TICK: Duration = Duration::from_millis(5);

const POLITE: [&str; 4] = ["polite-1", "polite-2", "polite-3", "polite-4"];
const GREEDY: [&str; 16] = [
    "greedy-1",
    "greedy-2",
    "greedy-3",
    "greedy-4",
    "greedy-5",
    "greedy-6",
    "greedy-7",
    "greedy-8",
    "greedy-9",
    "greedy-10",
    "greedy-11",
    "greedy-12",
    "greedy-13",
    "greedy-14",
    "greedy-15",
    "greedy-16",
];
/// A polite tenant that is turned away waits so long, and asks again until it is served.
const POLITE_BACK_OFF: Duration = Duration::from_millis(100);
/// A polite tenant gives up after this; no figure is longer.
const POLITE_PATIENCE: Duration = Duration::from_secs(30);

const ROUNDS: usize = 3;
/// Queues fill before the measuring begins.
const WARM_UP: Duration = Duration::from_secs(1);
const ROUND: Duration = Duration::from_secs(4);

/// Who sends requests.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tenants {
    greedy: usize,
    /// How often each polite tenant asks.
    polite_every: Duration,
}

/// What a round has found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Round {
    pub(crate) served_per_second: f64,
    pub(crate) polite_p99_ms: f64,
}

// === impl Tenants ===

impl Tenants {
    /// Together, the polite ones ask for a fifth of the capacity.
    pub(crate) const ONE_GREEDY: Self = Self { greedy: 1, polite_every: Duration::from_millis(50) };
    /// Each polite one asks for half of what everybody's share of the capacity is then.
    pub(crate) const SIXTEEN_GREEDY: Self = Self { greedy: GREEDY.len(), polite_every: Duration::from_millis(100) };
}

pub(crate) fn bars(bars: &mut Bars) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let service = Service::start()?;
    let running =
        Contestant::start_all(Task::Protect { slots: SLOTS }, ClientTransport::Plain, service.process.address)?;
    let mut capacities = Vec::new();
    let mut rounds: Vec<Vec<Round>> = running.iter().map(|_| Vec::new()).collect();
    for _ in 0..ROUNDS {
        capacities.push(runtime.block_on(capacity(service.process.address)));
        for (contestant, rounds) in running.iter().zip(&mut rounds) {
            rounds.push(runtime.block_on(round(contestant.process.address, Tenants::ONE_GREEDY)));
        }
    }
    let capacity = median(capacities);
    bars.add("the upstream's capacity", capacity, "requests per second", Bar::None);
    for (contestant, rounds) in running.iter().zip(&rounds) {
        let is_ours = contestant.contestant == Contestant::Evenkeel;
        let goodput = median(rounds.iter().map(|round| round.served_per_second));
        let bar = if is_ours { Bar::TimesAtLeast(0.95, capacity) } else { Bar::None };
        let name = contestant.contestant.name();
        bars.add(format!("goodput under {OVERLOAD} x overload, {name}"), goodput, "requests per second", bar);
    }
    let tails: Vec<f64> = rounds.iter().map(|rounds| median(rounds.iter().map(|round| round.polite_p99_ms))).collect();
    let [ours, others @ ..] = &tails[..] else { return Ok(()) };
    for (other, contestant) in others.iter().zip(&running[1..]) {
        let name = contestant.contestant.name();
        bars.add(format!("polite p99 under {OVERLOAD} x overload, {name}"), *other, "ms", Bar::None);
        bars.add(format!("the same, evenkeel beside {name}"), *ours, "ms", Bar::TimesAtMost(0.1, *other));
    }
    Ok(())
}

/// Polite tenants beside greedy ones.
pub(crate) fn beside_greedy(target: SocketAddr, tenants: Tenants) -> io::Result<Round> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let rounds: Vec<Round> = (0..ROUNDS).map(|_| runtime.block_on(round(target, tenants))).collect();
    Ok(Round {
        served_per_second: median(rounds.iter().map(|round| round.served_per_second)),
        polite_p99_ms: median(rounds.iter().map(|round| round.polite_p99_ms)),
    })
}

/// The 99th percentile of polite tenants where nobody is greedy, in milliseconds.
pub(crate) fn polite_alone(target: SocketAddr, tenants: Tenants) -> io::Result<f64> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let round = async || {
        let (from, until) = measured();
        let ask = |tenant: &&'static str| {
            ask_now_and_then(Arc::new(Load::new(target, tenant)), tenants.polite_every, from, until)
        };
        p99_ms(POLITE.iter().map(ask).collect::<JoinSet<_>>().join_all().await.concat())
    };
    Ok(median((0..ROUNDS).map(|_| runtime.block_on(round()))))
}

/// How many requests per second the service does when there are always enough of them.
async fn capacity(service: SocketAddr) -> f64 {
    let load = Arc::new(Load::new(service, "capacity"));
    let (from, until) = measured();
    let mut clients = JoinSet::new();
    for _ in 0..2 * SLOTS {
        let load = Arc::clone(&load);
        clients.spawn(async move {
            while Instant::now() < until {
                load.ask().await;
            }
        });
    }
    while clients.join_next().await.is_some() {}
    load.served(from, until) as f64 / (until - from).as_secs_f64()
}

async fn round(target: SocketAddr, Tenants { greedy, polite_every }: Tenants) -> Round {
    let (from, until) = measured();
    let greedy: Vec<_> = GREEDY[..greedy].iter().map(|tenant| Arc::new(Load::new(target, tenant))).collect();
    let mut floods: JoinSet<_> = greedy.iter().map(|load| flood(Arc::clone(load), greedy.len(), until)).collect();
    let polite: Vec<_> = POLITE.iter().map(|tenant| Arc::new(Load::new(target, tenant))).collect();
    let mut tenants = JoinSet::new();
    for load in &polite {
        tenants.spawn(ask_now_and_then(Arc::clone(load), polite_every, from, until));
    }
    let times = tenants.join_all().await.concat();
    while floods.join_next().await.is_some() {}
    let served = polite.iter().chain(&greedy).map(|load| load.served(from, until)).sum::<usize>();
    Round { served_per_second: served as f64 / (until - from).as_secs_f64(), polite_p99_ms: p99_ms(times) }
}

/// From when until when is measured, if we begin now.
fn measured() -> (Instant, Instant) {
    let from = Instant::now() + WARM_UP;
    (from, from + ROUND)
}

/// Asks for much, as one of so many who do, whatever the answers are. Ends when the last request has.
async fn flood(load: Arc<Load>, tenants: usize, until: Instant) {
    let per_second = f64::from(OVERLOAD) * SLOTS as f64 / WORK.as_secs_f64() / tenants as f64;
    let mut ticks = interval(GREEDY_TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let places = Arc::new(Semaphore::new(GREEDY_UNDER_WAY_MAX / tenants));
    let mut requests = JoinSet::new();
    let (mut due, mut sent) = (0.0, 0.0);
    while Instant::now() < until {
        ticks.tick().await;
        due += per_second * GREEDY_TICK.as_secs_f64();
        while sent < due {
            sent += 1.0;
            let Ok(place) = Arc::clone(&places).try_acquire_owned() else { continue };
            let load = Arc::clone(&load);
            requests.spawn(async move {
                load.ask().await;
                drop(place);
            });
        }
        while requests.try_join_next().is_some() {}
    }
    while requests.join_next().await.is_some() {}
}

/// Asks for a little. Returns how long each request took until it was served, since it was due.
async fn ask_now_and_then(load: Arc<Load>, every: Duration, from: Instant, until: Instant) -> Vec<Duration> {
    let mut requests = JoinSet::new();
    let mut due = Instant::now();
    while due < until {
        sleep_until(due).await;
        let load = Arc::clone(&load);
        requests.spawn(async move {
            while load.ask().await == Ending::TurnedAway && due.elapsed() < POLITE_PATIENCE {
                sleep(POLITE_BACK_OFF).await;
            }
            (due, due.elapsed())
        });
        due += every;
    }
    requests.join_all().await.into_iter().filter(|(due, _)| *due >= from).map(|(_, took)| took).collect()
}
