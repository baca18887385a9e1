//! Scratch.
use evenkeel_engine::WorkEstimate;
use evenkeel_engine::queue_set::*;
use evenkeel_engine::time::Instant;
use std::time::Instant as Clock;

struct Random {
    state: u64,
}
impl Random {
    fn new(s: u64) -> Self {
        Self { state: s }
    }
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
fn hash(flow: u64) -> u64 {
    Random::new(flow).next()
}
const ROUND: u32 = 10_000;

fn crowd(flows: u64, any: bool) -> impl FnMut() {
    let mode = Mode::queue(4096, 5, 1_000_000).unwrap().with_discipline(QueuingDiscipline::PerFlow);
    let config = QueueSetConfig { mode, concurrency_limit: 100 };
    let mut set: QueueSet<u64, ConfiguredDiscipline> = QueueSet::new(config, Instant::from_nanos(0));
    let mut now = Instant::from_nanos(0);
    let mut running: Vec<RequestId> = Vec::new();
    for flow in (0..flows).cycle() {
        match set.arrive(now, hash(flow), WorkEstimate::ONE_SEAT, flow, &mut NoEffects) {
            Arrival::Started { id, .. } => running.push(id),
            _ if set.waiting() == 100_000 => break,
            _ => {}
        }
    }
    let (mut random, mut turn) = (Random::new(1), 0);
    move || {
        for _ in 0..ROUND {
            now = now + 1000;
            turn = (turn + 1) % running.len();
            let ended = running[turn];
            let ended = set.finish(now, ended, &mut |id: RequestId, _: &mut u64| running[turn] = id);
            let flow = match ended {
                Some(Finish::Released(flow)) if !any => flow,
                _ => random.next() % flows,
            };
            set.arrive(now, hash(flow), WorkEstimate::ONE_SEAT, flow, &mut NoEffects);
        }
    }
}
#[inline(never)]
fn arrive_apart<D: Discipline>(set: &mut QueueSet<(), D>, now: Instant, hash: u64) -> Arrival<()> {
    set.arrive(now, hash, WorkEstimate::ONE_SEAT, (), &mut NoEffects)
}
#[inline(never)]
fn finish_apart<D: Discipline>(set: &mut QueueSet<(), D>, now: Instant, id: RequestId) -> Option<Finish<()>> {
    set.finish(now, id, &mut NoEffects)
}
fn apart<D: Discipline>() -> impl FnMut() {
    let mode = Mode::queue(64, 8, 50).unwrap();
    let config = QueueSetConfig { mode, concurrency_limit: 100 };
    let mut set: QueueSet<(), D> = QueueSet::new(config, Instant::from_nanos(0));
    let (mut random, mut now) = (Random::new(1), Instant::from_nanos(0));
    move || {
        for _ in 0..ROUND {
            now = now + 1000;
            let Arrival::Started { id, .. } = arrive_apart(&mut set, now, random.next()) else {
                panic!("the set has room")
            };
            finish_apart(&mut set, now + 500, id);
        }
    }
}
fn uncontended<D: Discipline>() -> impl FnMut() {
    let mode = Mode::queue(64, 8, 50).unwrap();
    let config = QueueSetConfig { mode, concurrency_limit: 100 };
    let mut set: QueueSet<(), D> = QueueSet::new(config, Instant::from_nanos(0));
    let (mut random, mut now) = (Random::new(1), Instant::from_nanos(0));
    move || {
        for _ in 0..ROUND {
            now = now + 1000;
            let arrival = set.arrive(now, random.next(), WorkEstimate::ONE_SEAT, (), &mut NoEffects);
            let Arrival::Started { id, .. } = arrival else { panic!("the set has room") };
            set.finish(now + 500, id, &mut NoEffects);
        }
    }
}
fn waiting<D: Discipline>(queues: i64, hand: i64) -> impl FnMut() {
    let mode = Mode::queue(queues, hand, i64::MAX).unwrap();
    let config = QueueSetConfig { mode, concurrency_limit: 100 };
    let mut set: QueueSet<(), D> = QueueSet::new(config, Instant::from_nanos(0));
    let (mut random, mut now) = (Random::new(1), Instant::from_nanos(0));
    let mut running: Vec<RequestId> = Vec::new();
    while set.waiting() < 100_000 {
        if let Arrival::Started { id, .. } = set.arrive(now, random.next(), WorkEstimate::ONE_SEAT, (), &mut NoEffects)
        {
            running.push(id);
        }
    }
    let mut turn = 0;
    move || {
        for _ in 0..ROUND {
            now = now + 1000;
            set.arrive(now, random.next(), WorkEstimate::ONE_SEAT, (), &mut NoEffects);
            turn = (turn + 1) % running.len();
            let finished = running[turn];
            set.finish(now + 500, finished, &mut |id: RequestId, (): &mut ()| running[turn] = id);
        }
    }
}
fn main() {
    let mut all: Vec<(&str, Box<dyn FnMut()>)> = vec![
        ("fixed", Box::new(uncontended::<ShuffleSharding>())),
        ("configured", Box::new(uncontended::<ConfiguredDiscipline>())),
        ("fixed apart", Box::new(apart::<ShuffleSharding>())),
        ("configured apart", Box::new(apart::<ConfiguredDiscipline>())),
        ("fixed waiting", Box::new(waiting::<ShuffleSharding>(64, 8))),
        ("configured waiting", Box::new(waiting::<ConfiguredDiscipline>(64, 8))),
    ];
    let mut pf: Vec<(&str, Box<dyn FnMut()>)> = vec![
        ("64", Box::new(crowd(64, false))),
        ("1024", Box::new(crowd(1023, false))),
        ("4000", Box::new(crowd(4000, false))),
        ("50,000", Box::new(crowd(50_000, false))),
        ("64 any", Box::new(crowd(64, true))),
        ("50,000 any", Box::new(crowd(50_000, true))),
    ];
    let only = std::env::args().nth(1);
    if let Some(only) = &only {
        all.retain(|(n, _)| n == only);
        pf.retain(|(n, _)| n == only);
    }
    for set in [&mut all, &mut pf] {
        let mut figures = vec![Vec::new(); set.len()];
        for _ in 0..12 {
            for (i, (_, f)) in set.iter_mut().enumerate() {
                for _ in 0..15 {
                    let start = Clock::now();
                    f();
                    figures[i].push(start.elapsed().as_secs_f64() * 1e9 / f64::from(ROUND));
                }
            }
        }
        for (i, (name, _)) in set.iter().enumerate() {
            figures[i].sort_by(f64::total_cmp);
            println!("{name:20} least {:6.1}  p10 {:6.1}  p50 {:6.1}", figures[i][0], figures[i][18], figures[i][90]);
        }
    }
}
