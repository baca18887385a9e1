//! Requests that hold their seats for long (PF-10): what others wait for a seat, and what it costs to keep some for them.

use evenkeel_api::annotations::NewcomerSeats;
use evenkeel_bars::{Bar, Bars};
use evenkeel_engine::time::{MILLISECOND, Nanos, SECOND};

use crate::one_level::{Arrivals, Client, Contestant, Served, Service};

const SEATS: i64 = 10;
const SLOW: Service = Service::Fixed(12 * SECOND);
const QUICK: Service = Service::Fixed(10 * MILLISECOND);

/// Adds the rows about slow requests.
pub(crate) fn measure(bars: &mut Bars) {
    for (name, newcomer_seats) in [("without PF-10", NewcomerSeats::NONE), ("per-flow", NewcomerSeats::Auto)] {
        let bar = |bar| if newcomer_seats == NewcomerSeats::Auto { bar } else { Bar::None };
        bars.measure(&format!("10 ms requests beside 30 requests of 12 s: wait p99, {name}"), "s", || {
            (quick_beside_slow(newcomer_seats), bar(Bar::AtMost(0.2, "s")))
        });
        bars.measure(&format!("the same once the level knows quick requests only: wait p99, {name}"), "s", || {
            (slow_beside_known_quick(newcomer_seats), bar(Bar::AtMost(0.2, "s")))
        });
        bars.measure(&format!("five newcomers of 2 s one after the other: wait of four, {name}"), "s", || {
            (newcomers_one_after_the_other(newcomer_seats), bar(Bar::AtMost(1.0, "s")))
        });
        bars.measure(&format!("requests of 12 s of one flow alone: seats in use, {name}"), "of all", || {
            (slow_alone(newcomer_seats), bar(Bar::AtLeast(0.75, "of all")))
        });
    }
    for flows in [1, 4, 40] {
        bars.measure(&format!("10 ms requests only, flows: {flows}, throughput beside that without PF-10"), "", || {
            (
                quick_alone(flows, NewcomerSeats::Auto) / quick_alone(flows, NewcomerSeats::NONE),
                Bar::AtLeast(0.9995, ""),
            )
        });
    }
}

/// The p99 of what a flow of short requests waits, in seconds.
fn quick_beside_slow(newcomer_seats: NewcomerSeats) -> f64 {
    let clients = [slow(), Client::new("quick".into(), Arrivals::PerSecond(10.0), QUICK)];
    let waits = [3, 33, 333].map(|seed| level(newcomer_seats).run(&clients, 120 * SECOND, seed).remove(1).waits);
    percentile(waits.concat(), 0.99)
}

/// The same where a level has had short requests only for twenty seconds, which need one seat of ten.
fn slow_beside_known_quick(newcomer_seats: NewcomerSeats) -> f64 {
    let slow = (0..20).map(|at| Client::new("slow".into(), Arrivals::Once(20 * SECOND + at), SLOW));
    let quick = (0..5).map(|flow| Client::new(format!("quick-{flow}"), Arrivals::PerSecond(20.0), QUICK));
    let clients: Vec<_> = quick.chain(slow).collect();
    let served = [4, 44, 444].map(|seed| level(newcomer_seats).run(&clients, 50 * SECOND, seed));
    let waits = served.iter().flat_map(|served| &served[..5]).flat_map(|served| &served.waits);
    percentile(waits.copied().collect(), 0.99)
}

/// What the fourth of five newcomers waits at most, in seconds.
fn newcomers_one_after_the_other(newcomer_seats: NewcomerSeats) -> f64 {
    let newcomer = |number: Nanos| {
        Client::new(format!("newcomer-{number}"), Arrivals::Once(number * SECOND), Service::Fixed(2 * SECOND))
    };
    let clients: Vec<_> = std::iter::once(slow()).chain((1..=5).map(newcomer)).collect();
    let served = level(newcomer_seats).run(&clients, 40 * SECOND, 5);
    let mut waits: Vec<_> = served[1..].iter().filter_map(|served| served.waits.first()).copied().collect();
    waits.sort_unstable();
    seconds(waits[3])
}

/// The part of the seats that a flow of slow requests uses which is alone.
fn slow_alone(newcomer_seats: NewcomerSeats) -> f64 {
    let served = level(newcomer_seats).run(&[slow()], 130 * SECOND, 6);
    // Requests that began in these seconds have ended by the end of the run.
    let used: Nanos = served[0].seat_time[..100].iter().sum();
    seconds(used) / 100.0 / 10.0
}

/// How many short requests end in a run in which more of them wait all the time.
#[expect(clippy::cast_precision_loss, reason = "a figure")]
fn quick_alone(flows: usize, newcomer_seats: NewcomerSeats) -> f64 {
    let client = |flow| Client::new(format!("quick-{flow}"), Arrivals::Outstanding(120 / flows), QUICK);
    let clients: Vec<_> = (0..flows).map(client).collect();
    let served = level(newcomer_seats).run(&clients, 30 * SECOND, 7);
    served.iter().map(|Served { latencies, .. }| latencies.len()).sum::<usize>() as f64
}

fn slow() -> Client {
    Client::new("slow".into(), Arrivals::Outstanding(30), SLOW)
}

fn level(newcomer_seats: NewcomerSeats) -> Contestant {
    Contestant::per_flow(SEATS, 100, newcomer_seats)
}

#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a figure")]
fn percentile(mut waits: Vec<Nanos>, share: f64) -> f64 {
    waits.sort_unstable();
    let index = ((waits.len() as f64 * share) as usize).min(waits.len() - 1);
    seconds(waits[index])
}

#[expect(clippy::cast_precision_loss, reason = "a figure")]
fn seconds(nanos: Nanos) -> f64 {
    nanos as f64 / SECOND as f64
}
