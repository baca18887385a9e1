//! What an arrival and a dispatch cost in a crowded level.

use evenkeel_bars::nanos_per_operation;
use evenkeel_engine::WorkEstimate;
use evenkeel_engine::queue_set::{
    Arrival, ConfiguredDiscipline, Discipline, Finish, Mode, NoEffects, QueueSet, QueueSetConfig, QueuingDiscipline,
    RequestId, ShuffleSharding,
};
use evenkeel_engine::time::Instant;

use crate::random::Random;

/// How many requests one round makes: enough that reading the clock does not count.
const ROUND: u32 = 10_000;
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
    let mut set: QueueSet<u64, ConfiguredDiscipline> = QueueSet::new(config, Instant::from_nanos(0));
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
    nanos_per_operation(ROUND, || {
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
    })
}

fn hash(flow: u64) -> u64 {
    Random::new(flow).next()
}

/// What admitting and finishing a request costs with shuffle sharding while nobody waits, in nanoseconds: where the discipline is
/// fixed, and where the configuration chooses it. The two are measured in turn.
pub(crate) fn fixed_and_configured() -> (f64, f64) {
    let rounds = (0..5).map(|_| (uncontended::<ShuffleSharding>(), uncontended::<ConfiguredDiscipline>()));
    rounds.fold((f64::MAX, f64::MAX), |least, round| (least.0.min(round.0), least.1.min(round.1)))
}

fn uncontended<D: Discipline>() -> f64 {
    let mode = Mode::queue(64, 8, 50).expect("a valid deal");
    let config = QueueSetConfig { mode, concurrency_limit: 100 };
    let mut set: QueueSet<(), D> = QueueSet::new(config, Instant::from_nanos(0));
    let (mut random, mut now) = (Random::new(1), Instant::from_nanos(0));
    nanos_per_operation(ROUND, || {
        for _ in 0..ROUND {
            now = now + 1000;
            let arrival = set.arrive(now, random.next(), WorkEstimate::ONE_SEAT, (), &mut NoEffects);
            let Arrival::Started { id, .. } = arrival else { panic!("the set has room") };
            set.finish(now + 500, id, &mut NoEffects);
        }
    })
}
