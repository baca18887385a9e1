//! Queues per flow (chapter 2 of `docs/spec/beyond.md`), beside shuffle sharding and a FIFO queue under the same load.

use std::cell::LazyCell;

use evenkeel_api::annotations::NewcomerSeats;
use evenkeel_bars::{Bar, Bars};
use evenkeel_engine::queue_set::QueuingDiscipline;
use evenkeel_engine::time::{MILLISECOND, Nanos, SECOND};

use crate::cost::{Next, cost, shuffle_sharded};
use crate::one_level::{Arrivals, Client, Contestant, Served, Service};

const SEATS: i64 = 26;
const TEN_MS: Service = Service::Between(8 * MILLISECOND, 12 * MILLISECOND);

/// Adds the rows of this chapter.
pub(crate) fn measure(bars: &mut Bars) {
    small_beside_greedy(bars);
    unknown_costs(bars);
    weights(bars);
    small_in_a_full_level(bars);
    many_flows(bars);
    shuffle_sharded_cost(bars);
}

/// The p99 of 16 small flows of 5 requests a second beside greedy ones with 640 requests outstanding in all.
fn small_beside_greedy(bars: &mut Bars) {
    for (greedy, bar) in [(1, 14.0), (4, 14.0), (16, 17.0)] {
        for (name, contestant, has_bar) in contestants(100) {
            bars.measure(&format!("p99 of small flows beside {greedy} greedy, {name}"), "ms", || {
                let figure = p99_beside_greedy(&contestant, greedy);
                (figure, if has_bar { Bar::AtMost(bar, "ms") } else { Bar::None })
            });
        }
    }
}

/// The same figures for a picture: the number of greedy flows, and for each contestant its name and its p99 in milliseconds.
pub(crate) fn small_flows_p99() -> [(usize, [(&'static str, f64); 3]); 3] {
    [1, 4, 16].map(|greedy| {
        let figures = contestants(100).map(|(name, contestant, _)| (name, p99_beside_greedy(&contestant, greedy)));
        (greedy, figures)
    })
}

fn p99_beside_greedy(contestant: &Contestant, greedy: usize) -> f64 {
    let clients = greedy_and_small(greedy, 640 / greedy);
    let runs = [11, 222, 3333, 44444].map(|seed| contestant.run(&clients, 20 * SECOND, seed));
    percentile(runs.iter().flat_map(|served| latencies(&served[greedy..])).collect(), 0.99)
}

/// Eight flows that always have 40 requests under way, each with other costs, and eight small ones.
fn unknown_costs(bars: &mut Bars) {
    let costs = [TEN_MS; 4].into_iter().chain([Service::Between(80 * MILLISECOND, 120 * MILLISECOND); 2]);
    let costs = costs.chain([Service::MostlyElse(10 * MILLISECOND, SECOND); 2]);
    let large =
        costs.zip(0..).map(|(cost, number)| Client::new(format!("large-{number}"), Arrivals::Outstanding(40), cost));
    let small = (0..8).map(|number| Client::new(format!("small-{number}"), Arrivals::PerSecond(5.0), TEN_MS));
    let clients: Vec<_> = large.chain(small).collect();
    for (name, contestant, has_bar) in contestants(100) {
        let runs = LazyCell::new(|| [5, 66, 777].map(|seed| contestant.run(&clients, 120 * SECOND, seed)));
        let windows = |seconds| runs.iter().flat_map(move |served| jain_in_windows(&served[..8], seconds));
        let small = || runs.iter().flat_map(|served| latencies(&served[8..])).collect();
        let at_least = |bar| if has_bar { Bar::AtLeast(bar, "") } else { Bar::None };
        let at_most = |bar| if has_bar { Bar::AtMost(bar, "ms") } else { Bar::None };
        bars.measure(&format!("unknown costs: Jain index in 10 s windows, least, {name}"), "", || {
            (windows(10).fold(1.0, f64::min), at_least(0.999))
        });
        bars.measure(&format!("unknown costs: Jain index in 1 s windows, mean, {name}"), "", || {
            (mean(windows(1)), at_least(0.99))
        });
        bars.measure(&format!("unknown costs: p99 of small flows, {name}"), "ms", || {
            (percentile(small(), 0.99), at_most(16.0))
        });
        bars.measure(&format!("unknown costs: p99.9 of small flows, {name}"), "ms", || {
            (percentile(small(), 0.999), at_most(20.0))
        });
    }
}

/// How far the seat-time of any of four flows is from its share.
fn weights(bars: &mut Bars) {
    let service = Service::Exponential(10 * MILLISECOND);
    let client =
        |weight: u16| Client::new(format!("weight-{weight}"), Arrivals::Outstanding(60), service).weight(weight);
    let clients = [1, 2, 4, 8].map(client);
    for (name, contestant, has_bar) in contestants(100) {
        bars.measure(&format!("weights 1:2:4:8, farthest from its share, {name}"), "%", || {
            let served = contestant.run(&clients, 60 * SECOND, 9);
            let used = served.iter().zip(&clients).map(|(served, client)| seat_time(served) / f64::from(client.weight));
            let used: Vec<_> = used.collect();
            let farthest = used.iter().map(|used_by_one| (used_by_one / mean(used.iter().copied()) - 1.0).abs());
            (100.0 * farthest.fold(0.0, f64::max), if has_bar { Bar::AtMost(0.5, "%") } else { Bar::None })
        });
    }
}

/// Greedy flows want to have twice as many requests waiting as the level takes.
fn small_in_a_full_level(bars: &mut Bars) {
    let clients = greedy_and_small(16, 400);
    for (name, contestant, has_bar) in contestants(50) {
        bars.measure(&format!("small flows rejected while the level is full, {name}"), "", || {
            let served = contestant.run(&clients, 20 * SECOND, 7);
            let rejected = served[16..].iter().map(|served| served.rejected).sum::<usize>();
            assert!(served[..16].iter().all(|served| served.rejected > 0) || !has_bar, "the level is not full");
            (count(rejected), if has_bar { Bar::AtMost(0.0, "") } else { Bar::None })
        });
    }
}

/// What a request costs while 100,000 requests wait: each flow replaces its own request, or any flow sends the next one.
fn many_flows(bars: &mut Bars) {
    use QueuingDiscipline::{PerFlow, ShuffleSharded};
    for (name, next) in [("of the same flow", Next::Same), ("of any flow", Next::Any)] {
        bars.measure(&format!("arrival {name} and dispatch, 50,000 flows, shuffle-sharded"), "ns", || {
            (cost(ShuffleSharded, 50_000, next), Bar::None)
        });
        let few = LazyCell::new(|| cost(PerFlow, 64, next));
        let many = LazyCell::new(|| cost(PerFlow, 50_000, next));
        bars.measure(&format!("arrival {name} and dispatch, 64 flows, per-flow"), "ns", || (*few, Bar::None));
        bars.measure(&format!("arrival {name} and dispatch, 4,000 flows, per-flow"), "ns", || {
            (cost(PerFlow, 4_000, next), Bar::None)
        });
        bars.measure(&format!("arrival {name} and dispatch, 50,000 flows, per-flow"), "ns", || {
            (*many, Bar::AtMost(1000.0, "ns"))
        });
        bars.measure(&format!("arrival {name} and dispatch, 50,000 flows beside 64"), "ns", || {
            (*many, Bar::TimesAtMost(1.3, *few))
        });
    }
}

/// What a request costs in a shuffle-sharded level.
fn shuffle_sharded_cost(bars: &mut Bars) {
    for (name, crowd, bar) in [("nobody waiting", 0, 54.0), ("100,000 waiting", 100_000, 150.0)] {
        let row = format!("admit and finish, shuffle-sharded, {name}");
        bars.measure(&row, "ns", || (shuffle_sharded(crowd), Bar::AtMost(bar, "ns")));
    }
}

/// Who is measured, and whether the bar is theirs. All have the same limits.
fn contestants(queue_length_limit: i32) -> [(&'static str, Contestant, bool); 3] {
    [
        ("FIFO", Contestant::fifo(SEATS), false),
        ("shuffle-sharded", Contestant::shuffle_sharded(SEATS, queue_length_limit), false),
        ("per-flow", Contestant::per_flow(SEATS, queue_length_limit, NewcomerSeats::Auto), true),
    ]
}

fn greedy_and_small(greedy: usize, outstanding: usize) -> Vec<Client> {
    let greedy =
        (0..greedy).map(|number| Client::new(format!("greedy-{number}"), Arrivals::Outstanding(outstanding), TEN_MS));
    let small = (0..16).map(|number| Client::new(format!("small-{number}"), Arrivals::PerSecond(5.0), TEN_MS));
    greedy.chain(small).collect()
}

fn latencies(served: &[Served]) -> impl Iterator<Item = Nanos> {
    served.iter().flat_map(|Served { latencies, .. }| latencies).copied()
}

#[expect(clippy::cast_precision_loss, reason = "a figure")]
fn seat_time(served: &Served) -> f64 {
    served.seat_time.iter().sum::<Nanos>() as f64
}

/// The Jain index of what the flows used, in each window of that many seconds. The first ten seconds and the last ones, in which
/// requests do not end any more, do not count.
fn jain_in_windows(served: &[Served], seconds: usize) -> Vec<f64> {
    let used = |flow: &Served, from: usize| Served {
        seat_time: flow.seat_time[from..from + seconds].to_vec(),
        ..Served::default()
    };
    (10..110)
        .step_by(seconds)
        .map(|from| {
            let used: Vec<_> = served.iter().map(|flow| seat_time(&used(flow, from))).collect();
            let (sum, squares) = (used.iter().sum::<f64>(), used.iter().map(|used| used * used).sum::<f64>());
            sum * sum / (count(used.len()) * squares)
        })
        .collect()
}

fn mean(figures: impl Iterator<Item = f64>) -> f64 {
    let figures: Vec<_> = figures.collect();
    figures.iter().sum::<f64>() / count(figures.len())
}

#[expect(clippy::cast_precision_loss, reason = "a figure")]
fn count(number: usize) -> f64 {
    number as f64
}

/// In milliseconds.
#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a figure")]
fn percentile(mut latencies: Vec<Nanos>, share: f64) -> f64 {
    latencies.sort_unstable();
    let index = ((latencies.len() as f64 * share) as usize).min(latencies.len() - 1);
    latencies[index] as f64 / MILLISECOND as f64
}
