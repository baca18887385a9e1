//! How long a queue set takes for one request, from arrival to finish.
//!
//! The bars: uncontended with 64 queues and a hand of 8 at most 150 ns; with 4,096 queues at most 1.5 times that; with
//! 100,000 requests waiting at most twice that.

use divan::Bencher;
use divan::counter::ItemsCount;
use evenkeel_engine::WorkEstimate;
use evenkeel_engine::queue_set::{Arrival, Mode, NoEffects, QueueSet, QueueSetConfig, RequestId};
use evenkeel_engine::time::Instant;

fn main() {
    divan::main();
}

/// How many requests one measured round makes: enough that the clock's own cost does not count.
const ROUND: usize = 10_000;

/// Hashes of many flows, spread as SHA-256 spreads them.
struct Flows {
    state: u64,
}

impl Flows {
    fn next_hash(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

fn queue_set(queues: i64, hand_size: i64, concurrency_limit: i64) -> QueueSet<()> {
    let mode = Mode::queue(queues, hand_size, i64::MAX).expect("a valid deal");
    QueueSet::new(QueueSetConfig { mode, concurrency_limit }, Instant::from_nanos(0))
}

/// One request at a time, each of another flow.
#[divan::bench(args = [(64, 8), (512, 6), (4096, 5)])]
fn uncontended(bencher: Bencher, (queues, hand_size): (i64, i64)) {
    let mut set = queue_set(queues, hand_size, 100);
    let mut flows = Flows { state: 1 };
    let mut now = Instant::from_nanos(0);
    bencher.counter(ItemsCount::new(ROUND)).bench_local(|| {
        for _ in 0..ROUND {
            now = now + 1000;
            let arrival = set.arrive(now, flows.next_hash(), WorkEstimate::ONE_SEAT, (), &mut NoEffects);
            let Arrival::Started { id, .. } = arrival else { panic!("the set has room") };
            set.finish(now + 500, id, &mut NoEffects);
        }
    });
}

/// As many requests wait as the argument says: each that finishes starts another, and one more arrives.
#[divan::bench(args = [(64, 8, 1000), (64, 8, 100_000), (4096, 5, 1000), (4096, 5, 100_000)])]
fn waiting(bencher: Bencher, (queues, hand_size, crowd): (i64, i64, usize)) {
    let mut set = queue_set(queues, hand_size, 100);
    let mut flows = Flows { state: 1 };
    let mut now = Instant::from_nanos(0);
    let mut running: Vec<RequestId> = Vec::new();
    while set.waiting() < crowd {
        let arrival = set.arrive(now, flows.next_hash(), WorkEstimate::ONE_SEAT, (), &mut NoEffects);
        if let Arrival::Started { id, .. } = arrival {
            running.push(id);
        }
    }
    let mut turn = 0;
    bencher.counter(ItemsCount::new(ROUND)).bench_local(|| {
        for _ in 0..ROUND {
            now = now + 1000;
            set.arrive(now, flows.next_hash(), WorkEstimate::ONE_SEAT, (), &mut NoEffects);
            turn = (turn + 1) % running.len();
            let finished = running[turn];
            set.finish(now + 500, finished, &mut |id: RequestId, (): &mut ()| running[turn] = id);
        }
    });
}
