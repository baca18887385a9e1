//! What random events are made of.

use evenkeel_engine::WorkEstimate;
use evenkeel_engine::queue_set::{Mode, QueueSetConfig};
use evenkeel_engine::time::{MILLISECOND, Nanos, SECOND};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::{End, Event, Script, Step};

/// What may happen.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Weather {
    /// Time goes on, and no request is absurd.
    Calm,
    /// Wide requests run for years, which winds the progress meter back (FQ-13).
    Ages,
    /// Time also goes backwards and in leaps of centuries; requests ask for all the seats in the world.
    Wild,
}

const YEAR: Nanos = 365 * 24 * 3600 * SECOND;

/// Random queue sets, each with up to that many events.
pub(crate) fn scripts(weather: Weather, steps_max: usize) -> impl Strategy<Value = Script> {
    (configs(weather), vec(steps(weather), 1..=steps_max)).prop_map(|(config, steps)| Script { config, steps })
}

fn steps(weather: Weather) -> impl Strategy<Value = Step> {
    (spans(weather), events(weather)).prop_map(|(after, event)| Step { after, event })
}

fn spans(weather: Weather) -> BoxedStrategy<Nanos> {
    let calm = prop_oneof![
        60 => Just(0),
        40 => 0..30_i64,
        200 => 0..20 * MILLISECOND,
        20 => 0..10 * SECOND,
        2 => 0..3 * YEAR,
    ];
    match weather {
        Weather::Calm => calm.boxed(),
        // More than this, times the most seats, and the meter would go all the way round in one step.
        Weather::Ages => prop_oneof![2 => calm, 1 => 0..3 * YEAR].boxed(),
        Weather::Wild => prop_oneof![
            60 => calm,
            2 => -5 * MILLISECOND..0,
            1 => select(vec![i64::MAX, i64::MIN, -40 * YEAR, 60 * YEAR]),
        ]
        .boxed(),
    }
}

fn events(weather: Weather) -> impl Strategy<Value = Event> {
    prop_oneof![
        50 => (hashes(), works(weather)).prop_map(|(hash, work)| Event::Arrive { hash, work }),
        25 => any::<usize>().prop_map(Event::Finish),
        10 => any::<usize>().prop_map(Event::Release),
        7 => any::<usize>().prop_map(Event::Cancel),
        4 => (select(vec![End::Finish, End::Release, End::Cancel]), any::<usize>())
            .prop_map(|(end, pick)| Event::Stale(end, pick)),
        3 => (any::<usize>(), charges()).prop_map(|(pick, seat_time)| Event::Charge(pick, seat_time)),
        5 => (any::<usize>(), 1..9_u32).prop_map(|(pick, seats)| Event::SetSeats(pick, seats)),
        4 => configs(weather).prop_map(Event::Configure),
    ]
}

/// More seat-time, or less.
fn charges() -> impl Strategy<Value = Nanos> {
    prop_oneof![3 => 0..20 * MILLISECOND, 1 => 0..SECOND, 1 => -20 * MILLISECOND..0]
}

/// A handful of flows, and strangers.
fn hashes() -> impl Strategy<Value = u64> {
    prop_oneof![9 => 0..10_u64, 1 => any::<u64>()]
}

fn works(weather: Weather) -> BoxedStrategy<WorkEstimate> {
    let latencies = prop_oneof![2 => Just(0), 5 => 0..8 * MILLISECOND, 2 => 0..3 * SECOND];
    let calm = prop_oneof![
        5 => Just(WorkEstimate::ONE_SEAT),
        3 => (0..5_u32).prop_map(WorkEstimate::seats),
        3 => (0..4_u32, 0..9_u32, latencies).prop_map(work),
        1 => (0..50_u32, 0..70_u32, 0..50 * MILLISECOND).prop_map(work),
    ];
    match weather {
        Weather::Calm => calm.boxed(),
        Weather::Ages => prop_oneof![1 => calm, 3 => (50..400_u32).prop_map(WorkEstimate::seats)].boxed(),
        Weather::Wild => prop_oneof![
            40 => calm,
            1 => (0..9_u32, 0..9_u32, -20..20_i64).prop_map(work),
            1 => (select(vec![0, 1, u32::MAX]), select(vec![0, 1, u32::MAX]), any::<i64>()).prop_map(work),
        ]
        .boxed(),
    }
}

fn work((initial_seats, final_seats, additional_latency): (u32, u32, Nanos)) -> WorkEstimate {
    WorkEstimate { initial_seats, final_seats, additional_latency }
}

fn configs(weather: Weather) -> BoxedStrategy<QueueSetConfig> {
    let config = |(mode, concurrency_limit)| QueueSetConfig { mode, concurrency_limit };
    let limits = prop_oneof![1 => -1..2_i64, 6 => 1..6_i64, 3 => 4..40_i64];
    match weather {
        Weather::Calm => (modes(13), limits).prop_map(config).boxed(),
        Weather::Ages => (modes(4), 300..400_i64).prop_map(config).boxed(),
        Weather::Wild => {
            (modes(13), prop_oneof![20 => limits, 1 => Just(1_000_000), 1 => Just(i64::MAX)]).prop_map(config).boxed()
        }
    }
}

fn modes(queues: i64) -> impl Strategy<Value = Mode> {
    let lengths = prop_oneof![1 => -1..1_i64, 4 => 1..8_i64, 2 => Just(1000)];
    let queues = (1..queues, 1..5_i64, lengths).prop_map(|(queues, hand, length)| {
        Mode::queue(queues, hand.min(queues), length).expect("a small hand from a small deck")
    });
    prop_oneof![16 => queues, 1 => Just(Mode::Reject), 1 => Just(Mode::Exempt), 1 => Just(Mode::Closed)]
}
