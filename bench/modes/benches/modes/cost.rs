//! What an arrival and a dispatch cost in a crowded level.

use evenkeel_bars::nanos_per_operation;
use evenkeel_engine::WorkEstimate;
use evenkeel_engine::queue_set::{
    Arrival, ConfiguredDiscipline, Mode, NoEffects, QueueSet, QueueSetConfig, QueuingDiscipline, RequestId,
};
use evenkeel_engine::time::Instant;

use crate::random::Random;

/// How many requests one round makes: enough that reading the clock does not count.
const ROUND: u32 = 10_000;
/// How many requests wait.
const CROWD: usize = 100_000;

/// What a request costs, in nanoseconds: it arrives and waits, one that runs ends, and another one starts. All flows have
/// requests waiting.
pub(crate) fn cost(discipline: QueuingDiscipline, flows: u64) -> f64 {
    let mode = Mode::queue(4096, 5, 1_000_000).expect("a valid deal").with_discipline(discipline);
    let config = QueueSetConfig { mode, concurrency_limit: 100 };
    let mut set: QueueSet<(), ConfiguredDiscipline> = QueueSet::new(config, Instant::from_nanos(0));
    let hashes: Vec<_> = (0..flows).map(|number| Random::new(number).next()).collect();
    let mut now = Instant::from_nanos(0);
    let mut running: Vec<RequestId> = Vec::new();
    for &flow in hashes.iter().cycle() {
        match set.arrive(now, flow, WorkEstimate::ONE_SEAT, (), &mut NoEffects) {
            Arrival::Started { id, .. } => running.push(id),
            _ if set.waiting() == CROWD => break,
            _ => {}
        }
    }
    let (mut random, mut turn) = (Random::new(1), 0);
    nanos_per_operation(ROUND, || {
        for _ in 0..ROUND {
            now = now + 1000;
            let flow = hashes[usize::try_from(random.next() % flows).expect("a small number")];
            set.arrive(now, flow, WorkEstimate::ONE_SEAT, (), &mut NoEffects);
            turn = (turn + 1) % running.len();
            let finished = running[turn];
            set.finish(now + 500, finished, &mut |id: RequestId, (): &mut ()| running[turn] = id);
        }
    })
}
