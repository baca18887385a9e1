//! The bars of attribution (chapter 5 of docs/spec/beyond.md): what it costs to know who uses a level and who delays whom.

use std::hint::black_box;

use evenkeel_bars::{Bar, Bars, nanos_per_operation};
use evenkeel_engine::attribution::Attribution;
use evenkeel_engine::level::{Level, NewRequest, Observer};
use evenkeel_engine::queue_set::{Arrival, Mode, NoEffects, QueueSetConfig, RequestId};
use evenkeel_engine::time::{Instant, Nanos};
use evenkeel_engine::{Flow, WorkEstimate};

/// How many requests one round makes: enough that reading the clock does not count.
const ROUND: u32 = 10_000;
/// How many requests the accuracy is measured with, and of how many flows.
const REQUESTS: usize = 4_000_000;
const FLOWS: usize = 1_000_000;

/// Which flow the next request is of.
#[derive(Debug, Clone, Copy)]
enum Names {
    /// One of a thousand.
    Thousand,
    /// One that never was.
    Hostile,
}

fn main() {
    let mut bars = Bars::filtered(std::env::args().skip(1));
    for names in [Names::Thousand, Names::Hostile] {
        let what = match names {
            Names::Thousand => "of a thousand flows",
            Names::Hostile => "of a flow that never was",
        };
        bars.measure(&format!("attribution of a request that does not wait, {what}"), "ns", || {
            let cost = passing(Attribution::new(1), names) - passing((), names);
            (cost, Bar::AtMost(15.0, "ns"))
        });
        bars.measure(&format!("attribution of a request that waits, {what}"), "ns", || {
            let cost = waiting(Attribution::new(1), names) - waiting((), names);
            (cost, Bar::AtMost(50.0, "ns"))
        });
    }
    if bars.wants("attribution of the heaviest flows") {
        accuracy(&mut bars);
    }
    bars.print("Attribution");
}

/// One request at a time, which starts at once.
fn passing<O: Observer>(observer: O, names: Names) -> f64 {
    let mut level = level(observer);
    let (mut hashes, mut now) = (Hashes::new(names), at(0));
    nanos_per_operation(ROUND, || {
        for _ in 0..ROUND {
            now = now + 1000;
            let new = NewRequest::new(hashes.next(), WorkEstimate::ONE_SEAT);
            let Arrival::Started { id, .. } = level.arrive(now, new, (), &mut NoEffects) else { panic!("it has room") };
            level.finish(now + 500, id, &mut NoEffects);
        }
        black_box(&mut level);
    })
}

/// All seats are taken: each request that finishes starts another, and one more arrives and waits.
fn waiting<O: Observer>(observer: O, names: Names) -> f64 {
    let mut level = level(observer);
    let (mut hashes, mut now) = (Hashes::new(names), at(0));
    let mut running: Vec<RequestId> = Vec::new();
    while level.queue_set().waiting() < 100 {
        let new = NewRequest::new(hashes.next(), WorkEstimate::ONE_SEAT);
        if let Arrival::Started { id, .. } = level.arrive(now, new, (), &mut NoEffects) {
            running.push(id);
        }
    }
    let mut turn = 0;
    nanos_per_operation(ROUND, || {
        for _ in 0..ROUND {
            now = now + 1000;
            let new = NewRequest::new(hashes.next(), WorkEstimate::ONE_SEAT);
            level.arrive(now, new, (), &mut NoEffects);
            turn = (turn + 1) % running.len();
            let finished = running[turn];
            level.finish(now + 500, finished, &mut |id: RequestId, (): &mut ()| running[turn] = id);
        }
        black_box(&mut level);
    })
}

/// Whether the heaviest of a million flows are found, and in how much memory.
#[expect(clippy::cast_precision_loss, reason = "figures")]
fn accuracy(bars: &mut Bars) {
    let mut sum = 0.0;
    let add = |rank: usize| {
        sum += ((rank + 1) as f64).powf(-1.1);
        sum
    };
    let sums: Vec<f64> = (0..FLOWS).map(add).collect();
    let all = sums[FLOWS - 1];
    let (mut random, mut exact) = (Mixed(9), vec![0_u64; FLOWS]);
    let mut level = level(Attribution::new(3));
    let names: Vec<String> = (0..FLOWS).map(|rank| rank.to_string()).collect();
    let mut now = at(0);
    for _ in 0..REQUESTS {
        let drawn = random.next() as f64 / u64::MAX as f64 * all;
        let rank = sums.partition_point(|sum| *sum < drawn).min(FLOWS - 1);
        let time = 1 + random.next() % 20_000_000;
        exact[rank] += time;
        now = now + 5000;
        let new = NewRequest::new(Flow::new("tenants", &names[rank]), WorkEstimate::ONE_SEAT);
        let Arrival::Started { id, .. } = level.arrive(now, new, (), &mut NoEffects) else { panic!("it has room") };
        level.finish(now + time.cast_signed(), id, &mut NoEffects);
    }
    let bytes = level.observer().bytes();
    let usage = level.observer_mut().usage(now, 20);
    let found: Vec<_> = usage.seat_time.flows.iter().map(|(flow, weight)| (usage.name(*flow), *weight)).collect();
    let name = |index: usize| found[index].0.map_or("", |name| name.distinguisher);
    let in_order = (0..5).take_while(|rank| name(*rank) == rank.to_string()).count();
    let error = |rank: usize| found[rank].1.abs_diff(exact[rank]) as f64 / exact[rank] as f64 * 100.0;
    let worst = (0..5).map(error).fold(0.0, f64::max);
    let hits = (0..20).filter(|rank| (0..20).any(|index| name(index) == rank.to_string())).count();
    bars.add(
        "of a million flows (Zipf 1.1), the heaviest five in order",
        in_order as f64,
        "flows",
        Bar::AtLeast(5.0, "flows"),
    );
    bars.add("the worst error of those five", worst, "%", Bar::AtMost(5.0, "%"));
    bars.add("how many of the heaviest twenty are found", hits as f64, "flows", Bar::None);
    bars.add("memory of a level", bytes as f64 / 1024.0, "KiB", Bar::AtMost(64.0, "KiB"));
}

fn level<O: Observer>(observer: O) -> Level<(), O> {
    let mode = Mode::queue(64, 8, i64::MAX).expect("a valid deal");
    Level::with_observer(QueueSetConfig { mode, concurrency_limit: 100 }, observer, at(0))
}

fn at(nanos: Nanos) -> Instant {
    Instant::from_nanos(nanos)
}

struct Hashes {
    names: Names,
    random: Mixed,
}

/// Random numbers, spread as SHA-256 spreads them.
struct Mixed(u64);

impl Mixed {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.0)
    }
}

fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

impl Hashes {
    fn new(names: Names) -> Self {
        Self { names, random: Mixed(1) }
    }

    fn next(&mut self) -> u64 {
        match self.names {
            Names::Thousand => mixed(1 + self.random.next() % 1000),
            Names::Hostile => self.random.next(),
        }
    }
}
