//! What a queue set takes of memory: nothing for a request in the steady state, and little for one that waits.

use std::collections::VecDeque;

use evenkeel_counting_allocator::{Counting, allocations, bytes};
use evenkeel_engine::WorkEstimate;
use evenkeel_engine::queue_set::{Arrival, Mode, NoEffects, QueueSet, QueueSetConfig, RequestId};
use evenkeel_engine::time::{Instant, MILLISECOND};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What a request that waits may cost, all told.
const BYTES_PER_WAITING_REQUEST_MAX: i64 = 200;
/// What a queue may cost: about what `Mode::queue` says. A number that is a power of two is cheapest, the next dearest.
const BYTES_PER_QUEUE: std::ops::RangeInclusive<i64> = 100..=130;

fn queue_set(queues: i64, hand_size: i64, concurrency_limit: i64) -> QueueSet<i64> {
    let mode = Mode::queue(queues, hand_size, 1_000_000).expect("sizes that can be dealt");
    QueueSet::new(QueueSetConfig { mode, concurrency_limit }, Instant::from_nanos(0))
}

/// Flows in an order that looks random and is always the same.
fn hash_of(number: i64) -> u64 {
    number.unsigned_abs().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 7
}

fn arrive(set: &mut QueueSet<i64>, number: i64, effects: &mut impl FnMut(RequestId, &mut i64)) -> RequestId {
    let now = Instant::from_nanos(number * MILLISECOND / 100);
    match set.arrive(now, hash_of(number), WorkEstimate::ONE_SEAT, number, effects) {
        Arrival::Started { id, .. } | Arrival::Waiting { id, .. } => id,
        Arrival::Rejected { .. } => panic!("request {number} was rejected"),
    }
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocations(|| drop(std::hint::black_box(Box::new(1)))), 1);
    let before = bytes();
    let text = std::hint::black_box(vec![0_u8; 1000]);
    assert_eq!(bytes() - before, 1000);
    drop(text);
    assert_eq!(bytes(), before);
}

#[test]
fn an_uncontended_request_allocates_nothing() {
    let mut set = queue_set(64, 8, 10);
    let mut numbers = 0..;
    let mut one = || {
        let number = numbers.next().expect("numbers do not end");
        let id = arrive(&mut set, number, &mut |_, _| {});
        let now = Instant::from_nanos(number * MILLISECOND / 100);
        assert!(set.finish(now, id, &mut NoEffects).is_some());
    };
    one();
    assert_eq!(allocations(|| (0..10_000).for_each(|_| one())), 0);
}

const CROWD: usize = 5_000;

/// One finishes and another starts, one gives up, and others arrive in their place, over and over.
#[test]
fn requests_allocate_nothing_beside_a_standing_crowd() {
    for (queues, hand_size) in [(1, 1), (64, 8), (512, 6)] {
        let mut set = queue_set(queues, hand_size, 10);
        let mut running = VecDeque::with_capacity(100);
        let mut crowd: VecDeque<RequestId> = VecDeque::with_capacity(2 * CROWD);
        let mut numbers = 0..;
        let mut round = || {
            while set.waiting() < CROWD {
                let id =
                    arrive(&mut set, numbers.next().expect("numbers do not end"), &mut |id, _| running.push_back(id));
                crowd.push_back(id);
            }
            let now = Instant::from_nanos(numbers.start * MILLISECOND / 100);
            let done = running.pop_front().expect("some run");
            assert!(set.finish(now, done, &mut |id, _: &mut i64| running.push_back(id)).is_some());
            // Somebody who came a while ago; perhaps it is not waiting any more.
            let tired = crowd.swap_remove_back(crowd.len() / 2).expect("some wait");
            set.cancel(now, tired, &mut NoEffects);
            crowd.truncate(2 * CROWD - 100);
            if crowd.len() > CROWD {
                crowd.pop_front();
            }
        };
        (0..40_000).for_each(|_| round());
        assert_eq!(allocations(|| (0..20_000).for_each(|_| round())), 0, "{queues} queues");
        let cancelled = set.counters().cancelled;
        assert!(cancelled > 30_000, "{cancelled} gave up");
    }
}

#[test]
fn a_request_that_waits_takes_little_memory() {
    let mut faults = Vec::new();
    for crowd in [10_000, 50_000, 65_537, 70_000, 100_000, 131_073, 140_000, 262_145] {
        for (queues, hand_size) in [(1, 1), (64, 8), (512, 6)] {
            let before = bytes();
            let mut set = queue_set(queues, hand_size, 0);
            for number in 0..crowd {
                arrive(&mut set, number, &mut |_, _| {});
            }
            let taken = bytes() - before;
            assert_eq!(i64::try_from(set.waiting()), Ok(crowd));
            let each = taken / crowd;
            println!("{crowd} waiting in {queues} queues: {each} bytes each");
            if each > BYTES_PER_WAITING_REQUEST_MAX {
                faults.push((crowd, queues, each));
            }
        }
    }
    assert!(faults.is_empty(), "{faults:?}");
}

#[test]
fn a_queue_takes_what_its_documentation_says() {
    for queues in [64, 1000, 1025, 4096] {
        let before = bytes();
        let set = queue_set(queues, 1, 0);
        let each = (bytes() - before) / queues;
        println!("{queues} queues: {each} bytes each");
        assert!(BYTES_PER_QUEUE.contains(&each), "{queues} queues: {each} bytes each");
        drop(set);
    }
}

/// However many queues there are, memory follows those in use.
#[test]
fn many_queues_take_what_is_used() {
    for (queues, hand_size) in [(4097, 1), (65_536, 3), (10_000_000, 2), (1 << 26, 1)] {
        let before = bytes();
        let mut set = queue_set(queues, hand_size, 10);
        assert!(bytes() - before < 4096, "{queues} queues that nobody uses: {} bytes", bytes() - before);
        let mut running = VecDeque::new();
        // Many flows, one after the other: a queue that is empty again is forgotten.
        for number in 0..50_000 {
            let id = arrive(&mut set, number, &mut |_, _| {});
            running.push_back(id);
            if running.len() == 10 {
                let now = Instant::from_nanos(number * MILLISECOND / 100);
                set.finish(now, running.pop_front().expect("ten run"), &mut NoEffects);
            }
        }
        assert!(bytes() - before < 20_000, "{queues} queues, ten in use: {} bytes", bytes() - before);
        assert_eq!(set.queues().len(), usize::try_from(queues).unwrap_or(0));
    }
}

#[test]
fn queues_that_go_take_no_memory() {
    let mut set = queue_set(512, 6, 500);
    let running: Vec<_> = (0..500).map(|number| arrive(&mut set, number, &mut |_, _| {})).collect();
    let now = Instant::from_nanos(10 * MILLISECOND);
    let few = Mode::queue(8, 2, 10).expect("sizes that can be dealt");
    set.configure(now, QueueSetConfig { mode: few, concurrency_limit: 500 }, &mut NoEffects);
    let before = set.queues().len();
    let count = allocations(|| {
        for id in running {
            assert!(set.finish(now, id, &mut NoEffects).is_some());
        }
    });
    let gone = before - set.queues().len();
    assert!(gone > 200, "{gone} queues are gone");
    assert_eq!(count, 0, "allocations");
}
