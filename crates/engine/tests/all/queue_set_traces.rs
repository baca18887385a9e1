//! The traces of section 5.14 of the specification: T1 to T3 row by row, and the averages of T4.

use crate::closed_loop;

use std::collections::HashMap;
use std::ops::Range;

use closed_loop::{Client, ClosedLoop, Report};
use evenkeel_engine::WorkEstimate;
use evenkeel_engine::deal::Dealer;
use evenkeel_engine::queue_set::{Arrival, Effects, Finish, Mode, QueueSet, QueueSetConfig, RequestId};
use evenkeel_engine::time::{Instant, Nanos, SECOND};

/// Names, hashes and hands of the flows.
const FLOWS: [(char, u64, [u32; 2]); 4] = [('A', 0, [0, 1]), ('B', 6, [2, 1]), ('C', 11, [3, 2]), ('D', 9, [1, 3])];

/// time | event | queue -> started | R | nextR | W | E | qs | U | SW | robin, as the specification has them; an arrival
/// names its flow and its seats.
const T1: &str = "
    0        | arrive A1 A 1/0 0 | q0 -> A1 | 0      | 300000/0/0/0                  | 0/0/0/0 | 1/0/0/0 | 1/0/0/0 | 1 | 0 | 0
    1000000  | arrive A2 A 1/0 0 | q1 -> A2 | 100000 | 300000/400000/0/0             | 0/0/0/0 | 1/1/0/0 | 1/1/0/0 | 2 | 0 | 1
    2000000  | arrive A3 A 1/0 0 | q0 ->    | 200000 | 300000/400000/0/0             | 1/0/0/0 | 1/1/0/0 | 1/1/0/0 | 2 | 1 | 1
    2500000  | arrive A4 A 1/0 0 | q1 ->    | 250000 | 300000/400000/0/0             | 1/1/0/0 | 1/1/0/0 | 1/1/0/0 | 2 | 2 | 1
    3000000  | arrive A5 A 1/0 0 | q0 ->    | 300000 | 300000/400000/0/0             | 2/1/0/0 | 1/1/0/0 | 1/1/0/0 | 2 | 3 | 1
    3000001  | arrive B1 B 1/0 0 | q2 ->    | 300000 | 300000/400000/300000/0        | 2/1/1/0 | 1/1/0/0 | 1/1/0/0 | 2 | 4 | 1
    3000007  | arrive A6 A 1/0 0 | q1 ->    | 300000 | 300000/400000/300000/0        | 2/2/1/0 | 1/1/0/0 | 1/1/0/0 | 2 | 5 | 1
    4000000  | arrive C1 C 1/0 0 | q3 ->    | 366666 | 300000/400000/300000/366666   | 2/2/1/1 | 1/1/0/0 | 1/1/0/0 | 2 | 6 | 1
    10000000 | finish A1         | -> B1    | 666666 | 1000000/400000/600000/366666  | 2/2/0/1 | 0/1/1/0 | 0/1/1/0 | 2 | 5 | 2
    10000333 | finish A2         | -> C1    | 666683 | 1000000/1000033/600000/666666 | 2/2/0/0 | 0/0/1/1 | 0/0/1/1 | 2 | 4 | 3
    12000000 | finish B1         | -> A3    | 766666 | 1300000/1000033/500000/666666 | 1/2/0/0 | 1/0/0/1 | 1/0/0/1 | 2 | 3 | 0
    13000000 | finish C1         | -> A4    | 833333 | 1300000/1300033/500000/666633 | 1/1/0/0 | 1/1/0/0 | 1/1/0/0 | 2 | 2 | 1";

const T2: &str = "
    0        | arrive A1 A 1/0 0       | q0 -> A1 | 0       | 300000/0/0/0                   | 0/0/0/0 | 1/0/0/0 | 1/0/0/0 | 1 | 0 | 0
    1000000  | arrive W1 B 1/5 5000000 | q1 ->    | 100000  | 300000/100000/0/0              | 0/1/0/0 | 1/0/0/0 | 1/0/0/0 | 1 | 5 | 0
    2000000  | finish A1               | -> W1    | 200000  | 200000/2900000/0/0             | 0/0/0/0 | 0/1/0/0 | 0/2/0/0 | 2 | 3 | 1
    6000000  | finish W1               | ->       | 1000000 | 200000/3000000/0/0             | 0/0/0/0 | 0/0/0/0 | 0/2/0/0 | 2 | 3 | 1
    7000000  | arrive C1 C 1/0 0       | q3 ->    | 1000000 | 200000/3000000/0/1000000       | 0/0/0/1 | 0/0/0/0 | 0/2/0/0 | 2 | 4 | 1
    8000000  | arrive C2 C 1/0 0       | q2 ->    | 1200000 | 200000/3000000/1200000/1000000 | 0/0/1/1 | 0/0/0/0 | 0/2/0/0 | 2 | 5 | 1
    15000000 | cancel C2               | ->       | 1900000 | 200000/3000000/1200000/1000000 | 0/0/0/1 | 0/0/0/0 | 0/2/0/0 | 2 | 4 | 1
    18500000 | release W1              | -> C1    | 2600000 | 200000/3000000/1200000/1300000 | 0/0/0/0 | 0/0/0/1 | 0/0/0/1 | 1 | 3 | 3
    30000000 | finish C1               | ->       | 3750000 | 200000/3000000/1200000/2150000 | 0/0/0/0 | 0/0/0/0 | 0/0/0/0 | 0 | 3 | 3";

const T3: &str = "
    0        | arrive A1 A 1/0 0 | q0 -> A1      | 0       | 300000/0/0/0              | 0/0/0/0 | 1/0/0/0 | 1/0/0/0 | 1 | 0 | 0
    1000000  | arrive W1 B 3/0 0 | q1 ->         | 100000  | 300000/100000/0/0         | 0/1/0/0 | 1/0/0/0 | 1/0/0/0 | 1 | 3 | 0
    2000000  | arrive C1 C 1/0 0 | q3 -> C1      | 250000  | 300000/100000/0/550000    | 0/1/0/0 | 1/0/0/1 | 1/0/0/1 | 2 | 3 | 3
    9000000  | arrive D1 D 1/0 0 | q3 ->         | 950000  | 300000/100000/0/950000    | 0/1/0/1 | 1/0/0/1 | 1/0/0/1 | 2 | 4 | 3
    10000000 | arrive D2 D 1/0 0 | q3 ->         | 1050000 | 300000/100000/0/950000    | 0/1/0/2 | 1/0/0/1 | 1/0/0/1 | 2 | 5 | 3
    11000000 | arrive D3 D 1/0 0 | q3 ->         | 1150000 | 300000/100000/0/950000    | 0/1/0/3 | 1/0/0/1 | 1/0/0/1 | 2 | 6 | 3
    12000000 | arrive D4 D 1/0 0 | q1 ->         | 1250000 | 300000/100000/0/950000    | 0/2/0/3 | 1/0/0/1 | 1/0/0/1 | 2 | 7 | 3
    13000000 | arrive D5 D 1/0 0 | q3 ->         | 1350000 | 300000/100000/0/950000    | 0/2/0/4 | 1/0/0/1 | 1/0/0/1 | 2 | 8 | 3
    20000000 | finish C1         | ->            | 2050000 | 300000/100000/0/2450000   | 0/2/0/4 | 1/0/0/0 | 1/0/0/0 | 1 | 8 | 3
    21000000 | finish A1         | -> W1         | 2150000 | 2100000/1250000/0/2450000 | 0/1/0/4 | 0/1/0/0 | 0/3/0/0 | 3 | 5 | 1
    25000000 | finish W1         | -> D4, D1, D2 | 2750000 | 2100000/1850000/0/3050000 | 0/0/0/2 | 0/1/0/2 | 0/1/0/2 | 3 | 2 | 3";

/// What was told: who started, and how often what was next did not fit.
#[derive(Default)]
struct StartedAndBlocked {
    started: Vec<String>,
    blocked: usize,
}

impl Effects<String> for StartedAndBlocked {
    fn started(&mut self, _id: RequestId, name: &mut String) {
        self.started.push(name.clone());
    }

    fn blocked(&mut self, _name: &String) {
        self.blocked += 1;
    }
}

/// Plays a trace and holds every row against what is found. Tells how often what was next did not fit.
fn play(trace: &str, queue_length_limit: i64, concurrency_limit: i64) -> usize {
    let dealer = Dealer::new(4, 2).expect("sizes that can be dealt");
    for (name, hash, hand) in FLOWS {
        assert_eq!(dealer.deal(hash).cards(), hand, "flow {name}");
    }
    let mode = Mode::queue(4, 2, queue_length_limit).expect("sizes that can be dealt");
    let mut set = QueueSet::new(QueueSetConfig { mode, concurrency_limit }, Instant::from_nanos(0));
    let (mut names, mut releases, mut blocked) = (HashMap::new(), HashMap::new(), 0);
    for row in trace.trim().lines() {
        let columns: Vec<_> = row.split('|').map(str::trim).collect();
        let now = Instant::from_nanos(columns[0].parse().expect("a number"));
        let event: Vec<_> = columns[1].split(' ').collect();
        let name = event[1].to_owned();
        let mut told = StartedAndBlocked::default();
        let mut chosen = String::new();
        match event[0] {
            "arrive" => {
                let (work, hash) = (work(event[3], event[4]), hash_of(event[2]));
                let (id, queue) = match set.arrive(now, hash, work, name.clone(), &mut told) {
                    Arrival::Started { id, queue: Some(queue) } | Arrival::Waiting { id, queue } => (id, queue),
                    other => panic!("{row}: {other:?}"),
                };
                chosen = format!("q{queue} ");
                names.insert(name, id);
            }
            "finish" => match set.finish(now, names[&name], &mut told).expect("it executes") {
                Finish::Released(payload) => assert_eq!(payload, name),
                Finish::Lingering { until } => drop(releases.insert(name, until)),
            },
            "release" => {
                assert_eq!(releases[&name], now, "{row}");
                assert_eq!(set.release(now, names[&name], &mut told), Some(name));
            }
            "cancel" => assert_eq!(set.cancel(now, names[&name], &mut told), Some(name)),
            other => panic!("no event: {other}"),
        }
        blocked += told.blocked;
        let found =
            [format!("{chosen}-> {}", told.started.join(", ")).trim().to_owned()].into_iter().chain(state(&set));
        assert_eq!(columns[2..], found.collect::<Vec<_>>(), "{row}");
    }
    blocked
}

/// The columns R to robin.
fn state(set: &QueueSet<String>) -> [String; 8] {
    let list = |values: Vec<String>| values.join("/");
    [
        set.virtual_time().units().to_string(),
        list(set.queues().map(|queue| queue.next_r.units().to_string()).collect()),
        list(set.queues().map(|queue| queue.waiting.to_string()).collect()),
        list(set.queues().map(|queue| queue.executing.to_string()).collect()),
        list(set.queues().map(|queue| queue.seats_in_use.to_string()).collect()),
        set.seats_in_use().to_string(),
        set.seats_waiting().to_string(),
        set.robin().expect("shuffle-sharded queues").to_string(),
    ]
}

fn hash_of(flow: &str) -> u64 {
    FLOWS.iter().find(|(name, ..)| flow.starts_with(*name)).expect("a flow").1
}

fn work(seats: &str, latency: &str) -> WorkEstimate {
    let (initial, last) = seats.split_once('/').expect("two numbers");
    WorkEstimate {
        initial_seats: initial.parse().expect("a number"),
        final_seats: last.parse().expect("a number"),
        additional_latency: latency.parse().expect("a number"),
    }
}

#[test]
fn fq_5_14_t1_equal_flows_take_turns() {
    assert_eq!(play(T1, 2, 2), 0);
}

#[test]
fn fq_5_14_t2_a_wide_request_is_narrowed_and_lingers() {
    play(T2, 2, 2);
}

#[test]
fn fq_5_14_t3_a_wide_head_blocks_everybody() {
    assert_eq!(play(T3, 1, 3), 8);
}

/// A quarter of a year.
const Q: Nanos = 91 * 24 * 3600 * SECOND;

fn exactly(span: Nanos) -> Range<Nanos> {
    span..span + 1
}

fn client(hash: u64, threads: usize, calls: usize, exec: Nanos, think: Nanos, work: (u32, u32, Nanos)) -> Client {
    let (initial_seats, final_seats, additional_latency) = work;
    let work = WorkEstimate { initial_seats, final_seats, additional_latency };
    Client { hash, threads, calls, exec: exactly(exec), think: exactly(think), works: vec![work] }
}

/// Runs two clients to the end of their calls and holds the average seats until the horizon against the expected ones.
fn averages(
    (queues, queue_length_limit, hand_size, concurrency_limit): (i64, i64, i64, i64),
    clients: &[Client; 2],
    horizon: Nanos,
    expected: [f64; 2],
    tolerance: f64,
) -> Report {
    let mode = Mode::queue(queues, hand_size, queue_length_limit).expect("sizes that can be dealt");
    let config = QueueSetConfig { mode, concurrency_limit };
    let report = ClosedLoop::new(config, clients.to_vec(), horizon, 1).run(Nanos::MAX / 2);
    for (served, expected) in report.clients.iter().zip(expected) {
        #[expect(clippy::cast_precision_loss, reason = "an average")]
        let average = served.seat_nanos as f64 / horizon as f64;
        assert!((average - expected).abs() <= expected * tolerance, "{average} seats instead of {expected}");
        assert_eq!(served.rejected, 0);
    }
    report
}

#[test]
fn fq_5_14_t4_quarter_years_of_500_seats_wind_the_meter_back_8_times() {
    let clients =
        [client(1_001_001_001, 8, 20, Q, Q, (500, 1, 0)), client(2_002_002_002, 7, 30, Q, Q / 2, (500, 1, 0))];
    let report = averages((9, 8, 1, 2000), &clients, 40 * Q, [1000.0, 1000.0], 0.01);
    assert_eq!(report.epoch_advances, 8);
}

#[test]
fn fq_5_14_t4_two_clients_with_different_pauses_share_equally() {
    let clients = [
        client(1_001_001_001, 8, 20, SECOND, SECOND, (1, 1, 0)),
        client(2_002_002_002, 7, 30, SECOND, SECOND / 2, (1, 1, 0)),
    ];
    let report = averages((9, 8, 1, 4), &clients, 40 * SECOND, [2.0, 2.0], 0.01);
    assert_eq!(report.epoch_advances, 0);
}

#[test]
fn fq_5_14_t4_a_client_that_asks_for_less_gets_what_it_asks_for() {
    let clients = [
        client(1_001_001_001, 4, 20, SECOND, SECOND - 1, (1, 1, 0)),
        client(2_002_002_002, 2, 20, SECOND, SECOND - 1, (1, 1, 0)),
    ];
    let report = averages((9, 6, 1, 3), &clients, 20 * SECOND, [2.0, 1.0], 0.01);
    assert_eq!(report.epoch_advances, 0);
}

#[test]
fn fq_5_14_t4_hands_of_three_share_equally() {
    let clients = [400_900_100_100, 300_900_200_200].map(|hash| client(hash, 8, 30, SECOND, SECOND - 1, (1, 1, 0)));
    let report = averages((8, 16, 3, 4), &clients, 60 * SECOND, [2.0, 2.0], 0.03);
    assert_eq!(report.epoch_advances, 0);
}

#[test]
fn fq_5_14_t4_wide_lingering_takes_all_seats() {
    let clients = [1_001_001_001, 2_002_002_002].map(|hash| client(hash, 1, 25, SECOND, 0, (1, 2, SECOND)));
    let report = averages((9, 8, 3, 2), &clients, 24 * SECOND, [0.25, 0.25], 1e-12);
    assert_eq!(report.epoch_advances, 0);
}

#[test]
fn fq_5_14_t4_one_seat_with_lingering() {
    let clients = [1_001_001_001, 2_002_002_002].map(|hash| client(hash, 1, 25, SECOND, SECOND, (1, 1, SECOND / 2)));
    let report = averages((9, 8, 3, 1), &clients, 24 * SECOND, [1.0 / 3.0, 1.0 / 3.0], 1e-12);
    assert_eq!(report.epoch_advances, 0);
}
