//! Flows that want the same get the same, and a greedy one takes nothing from the others.
//!
//! Every run prints its figures; the seeds are fixed.

use crate::closed_loop;

use closed_loop::{Client, ClosedLoop, Served};
use evenkeel_api::bootstrap;
use evenkeel_engine::deal::Dealer;
use evenkeel_engine::queue_set::{Mode, QueueSetConfig};
use evenkeel_engine::time::{MILLISECOND, SECOND};
use evenkeel_engine::{WorkEstimate, flow_hash};

const SEEDS: [u64; 5] = [3, 0x9e37_79b9, 42_424_243, 0xdead_beef_0bad, 77_777_777_777];
const HORIZON: i64 = 20 * SECOND;
const QUEUES: i64 = 64;

/// Hashes of flows whose hands have no queue in common.
fn flows(count: usize, hand_size: i64, seed: u64) -> Vec<u64> {
    let dealer = Dealer::new(QUEUES, hand_size).expect("sizes that can be dealt");
    let mut taken = vec![false; usize::try_from(QUEUES).expect("a small number")];
    let strangers = (1_u64..).map(|number| number.wrapping_mul(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) | 1));
    strangers
        .filter(|&hash| {
            let hand = dealer.deal(hash);
            let is_free = hand.cards().iter().all(|&card| !taken[card as usize]);
            if is_free {
                hand.cards().iter().for_each(|&card| taken[card as usize] = true);
            }
            is_free
        })
        .take(count)
        .collect()
}

/// How long a quiet user waits on average, in milliseconds: one connection, beside noisy users with 100 connections each, on
/// a server of ten seats whose requests take 40 to 60 ms. Also how many requests of noisy users are rejected, per mille.
///
/// Users are told apart by their hashes alone, so that the quiet one may meet a noisy one in a queue. The average is over
/// many quiet users.
#[expect(clippy::cast_precision_loss, reason = "figures to be seen")]
fn wait_of_the_quiet(queuing: (i64, i64, i64), noisy: u64) -> (f64, f64) {
    let (queues, hand_size, length_limit) = queuing;
    let mode = Mode::queue(queues, hand_size, length_limit).expect("sizes that can be dealt");
    let config = QueueSetConfig { mode, concurrency_limit: 10 };
    let client = |name: String, threads| Client {
        hash: flow_hash("everyone", &name),
        threads,
        calls: usize::MAX,
        exec: 40 * MILLISECOND..60 * MILLISECOND,
        think: 20 * MILLISECOND..30 * MILLISECOND,
        works: vec![WorkEstimate::ONE_SEAT],
    };
    let (mut wait, mut started, mut rejected, mut sent) = (0, 0, 0, 0);
    for quiet in 0..20_u64 {
        let mut clients = vec![client(format!("quiet-{quiet}"), 1)];
        clients.extend((0..noisy).map(|noisy| client(format!("noisy-{noisy}"), 100)));
        let report = ClosedLoop::new(config, clients, 3 * SECOND, quiet + 1).run(SECOND);
        wait += report.clients[0].wait_nanos;
        started += report.clients[0].started;
        rejected += report.clients[1..].iter().map(|served| served.rejected).sum::<usize>();
        sent += report.clients[1..].iter().map(|served| served.rejected + served.started).sum::<usize>();
    }
    (wait as f64 / started as f64 / MILLISECOND as f64, rejected as f64 * 1000.0 / sent as f64)
}

/// The figures of decision 22.
#[test]
fn a_quiet_user_of_the_plain_preset_waits_less_than_with_larger_hands() {
    let level = &bootstrap::plain().priority_levels[0].spec;
    let queuing = level.limited.as_ref().and_then(|limited| limited.limit_response.queuing.as_ref()).expect("queues");
    let sizes = [queuing.queues, queuing.hand_size, queuing.queue_length_limit].map(i64::from);
    let plain: (i64, i64, i64) = sizes.into();
    for noisy in [1, 4, 10] {
        let waits = [plain, (1024, 2, 200), (128, 6, 50)].map(|queuing| {
            let (wait, rejected) = wait_of_the_quiet(queuing, noisy);
            println!("{noisy} noisy, {queuing:?}: the quiet user waits {wait:.1} ms, {rejected:.0} \u{2030} rejected");
            wait
        });
        assert!(waits[0] < waits[1], "{noisy} noisy: {waits:?}");
        assert!(2.0 * waits[0] < waits[2], "{noisy} noisy: {waits:?}");
    }
}

fn run(hand_size: i64, seats: i64, clients: Vec<Client>, seed: u64) -> Vec<Served> {
    let mode = Mode::queue(QUEUES, hand_size, 600).expect("sizes that can be dealt");
    let config = QueueSetConfig { mode, concurrency_limit: seats };
    ClosedLoop::new(config, clients, HORIZON, seed).run(SECOND).clients
}

/// A flow with that many requests under way at any time.
fn client(hash: u64, threads: usize, works: &[WorkEstimate]) -> Client {
    let (exec, think) = (MILLISECOND..30 * MILLISECOND, 0..2 * MILLISECOND);
    Client { hash, threads, calls: usize::MAX, exec, think, works: works.to_vec() }
}

#[expect(clippy::cast_precision_loss, reason = "a share")]
fn shares(served: &[Served]) -> Vec<f64> {
    let all: i128 = served.iter().map(|served| served.seat_nanos).sum();
    served.iter().map(|served| served.seat_nanos as f64 / all as f64).collect()
}

/// 1 if all have the same, one over their number if one has it all.
#[expect(clippy::cast_precision_loss, reason = "a small number")]
fn jain(shares: &[f64]) -> f64 {
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    shares.iter().sum::<f64>().powi(2) / (shares.len() as f64 * squares)
}

#[expect(clippy::print_stdout, reason = "the figures are to be seen")]
fn assert_equal_shares(name: &str, hand_size: i64, seats: i64, works: &[WorkEstimate]) {
    for seed in SEEDS {
        let flows = flows(8, hand_size, seed);
        let clients = flows.iter().map(|&hash| client(hash, 20, works)).collect();
        let shares = shares(&run(hand_size, seats, clients, seed));
        let index = jain(&shares);
        println!("{name}, hand {hand_size}, seed {seed}: Jain's index {index:.6}, shares {shares:.4?}");
        assert!(index >= 0.99, "seed {seed}: Jain's index {index}, shares {shares:?}");
    }
}

#[test]
fn fq_23_equal_flows_of_one_seat_get_equal_shares() {
    let works = [WorkEstimate::ONE_SEAT];
    assert_equal_shares("one seat", 1, 10, &works);
    assert_equal_shares("one seat", 4, 10, &works);
}

#[test]
fn fq_23_equal_flows_of_mixed_widths_get_equal_shares() {
    let lingering = WorkEstimate { initial_seats: 1, final_seats: 3, additional_latency: 5 * MILLISECOND };
    let works = [WorkEstimate::ONE_SEAT, WorkEstimate::seats(2), WorkEstimate::seats(7), lingering];
    assert_equal_shares("mixed widths", 1, 20, &works);
    assert_equal_shares("mixed widths", 4, 20, &works);
}

/// How much less than its fair share a polite flow may get beside a greedy one.
const MARGIN: f64 = 0.01;

/// The fair share is an equal one: every polite flow asks for as many seats as there are in all.
#[expect(clippy::print_stdout, reason = "the figures are to be seen")]
fn assert_polite_flows_keep_their_share(hand_size: i64) {
    for seed in SEEDS {
        let flows = flows(8, hand_size, seed);
        let threads = |place: usize| if place == 0 { 50 * 10 } else { 10 };
        let works = [WorkEstimate::ONE_SEAT];
        let clients = flows.iter().enumerate().map(|(place, &hash)| client(hash, threads(place), &works)).collect();
        let shares = shares(&run(hand_size, 10, clients, seed));
        let fair = 1.0 / 8.0;
        let least = shares[1..].iter().copied().fold(f64::INFINITY, f64::min);
        println!(
            "hand {hand_size}, seed {seed}: greedy {:.4}, least of the polite {least:.4}, fair {fair:.4}",
            shares[0]
        );
        assert!(least >= fair * (1.0 - MARGIN), "seed {seed}: {shares:?}");
    }
}

#[test]
fn fq_23_a_flow_that_asks_for_fifty_times_as_much_takes_nothing_from_the_others() {
    assert_polite_flows_keep_their_share(1);
    assert_polite_flows_keep_their_share(4);
}
