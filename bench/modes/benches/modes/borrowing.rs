//! Borrowing at once (chapter 3 of the specification), beside borrowing every ten seconds and a FIFO queue: the levels that a
//! Kubernetes API starts with, on 600 seats.

use std::cell::LazyCell;
use std::collections::VecDeque;

use evenkeel_bars::{Bar, Bars};
use evenkeel_engine::borrowing::{Granted, Ledger, Stake, Wish};
use evenkeel_engine::controller::Borrowing;
use evenkeel_engine::time::{MILLISECOND, Nanos, SECOND};

use crate::random::Random;
use crate::server::{Load, Scheme, Server};

/// When a burst begins: a little after the seats were last divided.
const BURST: Nanos = 60 * SECOND + 300 * MILLISECOND;

/// The two levels that most scenarios are about: one has 98 seats of its own, the other 245.
const HIGH: &str = "workload-high";
const LOW: &str = "workload-low";

/// Adds the rows of this chapter.
pub(crate) fn measure(bars: &mut Bars) {
    let immediate = Scheme::Levels(Borrowing::Immediate);
    let schemes = [("FIFO", Scheme::Fifo), ("periodic", Scheme::Levels(Borrowing::Periodic)), ("immediate", immediate)];
    for (name, scheme) in schemes {
        let bar = |bar| if scheme == immediate { bar } else { Bar::None };
        bars.measure(&format!("burst of 400 on an idle server, {name}: seats within 1 ms"), "% of nominal", || {
            (burst_on_idle_server(scheme), bar(Bar::AtLeast(95.0, "% of nominal")))
        });
        for mean in [10, 100] {
            let title = format!("the same, all seats lent for {mean} ms each, {name}: until 95 % of nominal");
            bars.measure(&title, "service times", || {
                (burst_on_lent_seats(scheme, mean * MILLISECOND), bar(Bar::AtMost(1.0, "service times")))
            });
        }
        let alternating = LazyCell::new(|| alternating_bursts(scheme));
        bars.measure(&format!("two levels in alternating bursts of 3 s, {name}: usable seats in use"), "%", || {
            (alternating.0, bar(Bar::AtLeast(100.0, "%")))
        });
        bars.measure(&format!("the same, {name}: the least at any event"), "%", || {
            (alternating.1, bar(Bar::AtLeast(100.0, "%")))
        });
        bars.measure(&format!("all levels saturated, {name}: furthest from nominal"), "%", || {
            (all_saturated(scheme), bar(Bar::AtMost(0.5, "%")))
        });
    }
    bars.measure("a level below its floor waits while a seat is free, of 10,000,000 events", "times", || {
        (broken_rules(10_000_000, 0.1, 6).0, Bar::AtMost(0.0, "times"))
    });
    let title = "widths 1 to 10: a level above its limit or on another's floor, of 10,000,000 events";
    bars.measure(title, "times", || (broken_rules(10_000_000, 1.0, 10).1, Bar::AtMost(0.0, "times")));
}

/// The seats that a burst has got after a millisecond, in percent of the level's own.
fn burst_on_idle_server(scheme: Scheme) -> f64 {
    let mut server = idle_until_burst(scheme);
    server.run_until(BURST + MILLISECOND, |_| {});
    percent(server.in_use(LOW), server.nominal(LOW))
}

/// The seats of the same level over time, from so long before the burst until so long after it, and the times relative to it:
/// a point for each change that lasts at least a millisecond, and one for the end.
pub(crate) fn seats_around_burst(borrowing: Borrowing, before: Nanos, after: Nanos) -> Vec<(Nanos, i64)> {
    let mut server = idle_until_burst(Scheme::Levels(borrowing));
    let mut points: Vec<(Nanos, i64)> = Vec::new();
    let mut at = -before;
    while at <= after {
        server.run_until(BURST + at, |_| {});
        let seats = server.in_use(LOW);
        if at == after || points.last().is_none_or(|(_, last)| *last != seats) {
            points.push((at, seats));
        }
        at += MILLISECOND;
    }
    points
}

/// The seats that this level has of its own.
pub(crate) fn nominal_of_burst() -> i64 {
    idle_until_burst(Scheme::Levels(Borrowing::Immediate)).nominal(LOW)
}

fn idle_until_burst(scheme: Scheme) -> Server {
    let burst = Load { level: LOW, phases: vec![(BURST, 400)], mean: 10 * MILLISECOND };
    Server::new(scheme, vec![burst])
}

/// How long a burst waits for 95 % of the level's own seats while another level has borrowed all that it can, in mean
/// service times of the borrower.
fn burst_on_lent_seats(scheme: Scheme, mean: Nanos) -> f64 {
    let borrower = Load { level: HIGH, phases: vec![(0, 900)], mean };
    let burst = Load { level: LOW, phases: vec![(BURST, 400)], mean: 10 * MILLISECOND };
    let mut server = Server::new(scheme, vec![borrower, burst]);
    let wanted = server.nominal(LOW) * 95 / 100;
    let mut reached = None;
    server.run_until(BURST + 20 * SECOND, |server| {
        if reached.is_none() && server.now() >= BURST && server.in_use(LOW) >= wanted {
            reached = Some(server.now() - BURST);
        }
    });
    as_f64(reached.unwrap_or(20 * SECOND)) / as_f64(mean)
}

/// How many of the seats that two levels could use they do use, in percent: over time, and at the worst event.
fn alternating_bursts(scheme: Scheme) -> (f64, f64) {
    let bursts = |first: Nanos| {
        let begins = (0..6).map(move |number| (first + 6 * number) * SECOND);
        begins.flat_map(|begin| [(begin, 600), (begin + 3 * SECOND, 0)]).collect()
    };
    let load = |level, first| Load { level, phases: bursts(first), mean: 10 * MILLISECOND };
    let mut server = Server::new(scheme, vec![load(HIGH, 0), load(LOW, 3)]);
    let (mut used, mut usable, mut least) = (0.0, 0.0, 100.0_f64);
    let (mut since, mut before) = (0, (0, 0));
    server.run_until(36 * SECOND, |server| {
        let span = as_f64(server.now() - since);
        used += span * as_f64(before.0);
        usable += span * as_f64(before.1);
        since = server.now();
        before = (server.in_use(HIGH) + server.in_use(LOW), server.usable_by_loads());
        least = least.min(percent(before.0, before.1));
    });
    (100.0 * used / usable, least)
}

/// How far the level that is furthest from its own seats is from them on average, in percent, while all levels are saturated.
fn all_saturated(scheme: Scheme) -> f64 {
    // The level `catch-all` rejects instead of queuing, so that nothing saturates it; its seats are its floor.
    let names = ["global-default", "leader-election", "node-high", "system", HIGH, LOW];
    let load = |level| Load { level, phases: vec![(0, 400)], mean: 10 * MILLISECOND };
    let mut server = Server::new(scheme, names.map(load).into());
    let (mut seat_time, mut since, mut before) = ([0.0; 6], 20 * SECOND, [0; 6]);
    server.run_until(60 * SECOND, |server| {
        if server.now() >= 20 * SECOND {
            let span = as_f64(server.now() - since);
            seat_time.iter_mut().zip(before).for_each(|(sum, seats)| *sum += span * as_f64(seats));
            since = server.now();
        }
        before = names.map(|name| server.in_use(name));
    });
    let span = as_f64(since - 20 * SECOND);
    let away = |(name, seat_time): (&str, f64)| (seat_time / span / as_f64(server.nominal(name)) - 1.0).abs() * 100.0;
    names.into_iter().zip(seat_time).map(away).fold(0.0, f64::max)
}

/// Over so many random events of a ledger: how often a level is below its floor and waits while there are seats for it, and how
/// often a start takes a level above its limit or uses a seat of another level's floor (LB-2). Some requests are wide.
fn broken_rules(events: u32, wide: f64, widest: u64) -> (f64, f64) {
    let mut random = Random::new(42);
    let (mut waits, mut starts) = (0_u32, 0_u32);
    let (mut ledger, mut levels) = (Ledger::default(), Vec::new());
    for event in 0..events {
        if event % 100_000 == 0 {
            (ledger, levels) = random_levels(&mut random);
        }
        let level = index(&mut random, levels.len());
        let width = if random.fraction() < wide { 1 + random.next() % widest } else { 1 };
        let seats = i64::try_from(width).expect("a small number").min(ledger.widest(level));
        let wish = if random.fraction() < 0.9 {
            Wish::new(seats)
        } else {
            Wish::long_running(seats, i64::try_from(random.next() % 40).expect("a small number"))
        };
        let RandomLevel { running, waiting, .. } = &mut levels[level];
        if random.fraction() < 0.5 {
            if waiting.is_empty() && ledger.try_start(level, wish) {
                running.push(seats);
                starts += u32::from(levels[level].breaks_a_rule(&ledger, level));
            } else {
                waiting.push_back(wish);
            }
        } else if !running.is_empty() {
            let ended = index(&mut random, running.len());
            ledger.give_back(level, running.swap_remove(ended));
        } else {
            waiting.pop_front();
        }
        ledger.set_wish(level, levels[level].waiting.front().copied());
        while let Some((granted, Granted { seats, .. })) = ledger.grant_next() {
            let RandomLevel { running, waiting, .. } = &mut levels[granted];
            waiting.pop_front();
            running.push(seats);
            let next = waiting.front().copied();
            starts += u32::from(levels[granted].breaks_a_rule(&ledger, granted));
            ledger.set_wish(granted, next);
        }
        let free = ledger.free();
        let is_broken = |(level, found): (usize, &RandomLevel)| {
            let within_floor = found.stake.floor - ledger.in_use(level);
            found.waiting.front().is_some_and(|wish| wish.seats <= free && wish.seats <= within_floor)
        };
        waits += u32::from(free < 0 || levels.iter().enumerate().any(is_broken));
    }
    (f64::from(waits), f64::from(starts))
}

struct RandomLevel {
    stake: Stake,
    running: Vec<i64>,
    waiting: VecDeque<Wish>,
}

impl RandomLevel {
    /// Whether its last start has taken it above its limit, or has used a seat of another level's floor.
    fn breaks_a_rule(&self, ledger: &Ledger, level: usize) -> bool {
        let in_use = ledger.in_use(level);
        in_use > self.stake.max || (in_use > self.stake.floor && ledger.unreserved() < 0)
    }
}

fn random_levels(random: &mut Random) -> (Ledger, Vec<RandomLevel>) {
    let mut number = |most: u64| i64::try_from(random.next() % most).expect("a small number");
    let stakes: Vec<_> = (0..7)
        .map(|level| {
            let nominal = 1 + number(30);
            let floor = number(31).min(nominal);
            (level, Stake { floor, nominal, max: nominal + number(100), weight: 1 + number(100), is_exempt: false })
        })
        .collect();
    let seats = stakes.iter().map(|(_, stake)| stake.nominal).sum();
    let level =
        |(_, stake): &(usize, Stake)| RandomLevel { stake: *stake, running: Vec::new(), waiting: VecDeque::new() };
    (Ledger::new(seats, stakes.iter().copied()), stakes.iter().map(level).collect())
}

fn index(random: &mut Random, count: usize) -> usize {
    usize::try_from(random.next() % u64::try_from(count).expect("a short list")).expect("a small number")
}

fn percent(part: i64, whole: i64) -> f64 {
    if whole == 0 { 100.0 } else { 100.0 * as_f64(part) / as_f64(whole) }
}

#[expect(clippy::cast_precision_loss, reason = "figures for people")]
fn as_f64(number: i64) -> f64 {
    number as f64
}
