//! What an arrival and a dispatch cost in a crowded level.

use std::collections::VecDeque;

use evenkeel_bars::nanos_per_operation;
use evenkeel_engine::WorkEstimate;
use evenkeel_engine::queue_set::{
    Arrival, Finish, Mode, NoEffects, QueueSet, QueueSetConfig, QueuingDiscipline, RequestId,
};
use evenkeel_engine::time::Instant;

use crate::random::Random;

/// How many requests one round makes: enough that reading the clock does not count, and few enough that a round is seldom
/// interrupted.
const ROUND: u32 = 1_000;
/// How many rounds are made before those that count, so that flows come and go as they do later.
const WARM_UP: u32 = 500;
/// How many requests wait.
const CROWD: usize = 100_000;

/// Whose request arrives when one has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Of the same flow: each flow keeps as many requests waiting as it has.
    Same,
    /// Of any flow.
    Any,
}

/// What a request costs, in nanoseconds: one that runs ends, another one starts, and one arrives and waits. All flows have
/// requests waiting.
pub(crate) fn cost(discipline: QueuingDiscipline, flows: u64, next: Next) -> f64 {
    let mode = Mode::queue(4096, 5, 1_000_000).expect("a valid deal").with_discipline(discipline);
    let config = QueueSetConfig { mode, concurrency_limit: 100 };
    let mut set = QueueSet::new(config, Instant::from_nanos(0));
    let mut now = Instant::from_nanos(0);
    let mut running: Vec<RequestId> = Vec::new();
    for flow in (0..flows).cycle() {
        match set.arrive(now, hash(flow), WorkEstimate::ONE_SEAT, flow, &mut NoEffects) {
            Arrival::Started { id, .. } => running.push(id),
            _ if set.waiting() == CROWD => break,
            _ => {}
        }
    }
    let (mut random, mut turn) = (Random::new(1), 0);
    let mut round = || {
        for _ in 0..ROUND {
            now = now + 1000;
            turn = (turn + 1) % running.len();
            let ended = running[turn];
            let ended = set.finish(now, ended, &mut |id: RequestId, _: &mut u64| running[turn] = id);
            let flow = match ended {
                Some(Finish::Released(flow)) if next == Next::Same => flow,
                _ => random.next() % flows,
            };
            set.arrive(now, hash(flow), WorkEstimate::ONE_SEAT, flow, &mut NoEffects);
        }
    };
    (0..WARM_UP).for_each(|_| round());
    nanos_per_operation(ROUND, round)
}

fn hash(flow: u64) -> u64 {
    Random::new(flow).next()
}

/// What admitting and finishing a request costs with shuffle sharding while so many others wait, in nanoseconds.
pub(crate) fn shuffle_sharded(crowd: usize) -> f64 {
    nanos_per_operation(ROUND, admit_and_finish(crowd))
}

/// A round of requests while so many others wait.
fn admit_and_finish(crowd: usize) -> impl FnMut() {
    let mode = Mode::queue(64, 8, i64::MAX).expect("a valid deal");
    let config = QueueSetConfig { mode, concurrency_limit: 100 };
    let mut set = QueueSet::new(config, Instant::from_nanos(0));
    let (mut random, mut now, mut running) = (Random::new(1), Instant::from_nanos(0), VecDeque::new());
    while set.waiting() < crowd {
        let arrival = set.arrive(now, random.next(), WorkEstimate::ONE_SEAT, (), &mut NoEffects);
        if let Arrival::Started { id, .. } = arrival {
            running.push_back(id);
        }
    }
    move || {
        for _ in 0..ROUND {
            now = now + 1000;
            let arrival = set.arrive(now, random.next(), WorkEstimate::ONE_SEAT, (), &mut NoEffects);
            if let Arrival::Started { id, .. } = arrival {
                running.push_back(id);
            }
            let ended = running.pop_front().expect("some run");
            set.finish(now + 500, ended, &mut |id: RequestId, (): &mut ()| running.push_back(id));
        }
    }
}
