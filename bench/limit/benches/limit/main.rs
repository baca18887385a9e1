//! The limit that finds itself against its bars, in a simulation: `cargo xtask bench limit`.

use evenkeel_bars::{Bar, Bars};
use evenkeel_limit_bench::{Figures, FleetFigures, FleetScenario, Record, Seats, Steps, measure, run, scenarios};

/// Seeds on which nothing was chosen.
const SEEDS: std::ops::RangeInclusive<u64> = 1001..=1020;

/// For runs that take long.
const FEW_SEEDS: usize = 3;

/// The first and the last of other seeds, such as `1..40`: for whoever looks for a better law.
const OTHER_SEEDS: &str = "EVENKEEL_LIMIT_SEEDS";

fn main() {
    let mut bars = Bars::filtered(std::env::args().skip(1));
    goodput(&mut bars);
    recovery(&mut bars);
    half_an_hour(&mut bars);
    step(&mut bars);
    light(&mut bars);
    failures(&mut bars);
    others(&mut bars);
    fleet(&mut bars);
    bars.print("The limit that finds itself, beside the best fixed limit with the same seeds");
}

/// Goodput of a limit that is known, and of one that has to be found.
fn goodput(bars: &mut Bars) {
    for (scenarios, bar) in [(scenarios::learnt(), 0.97), (scenarios::learning(), 0.95)] {
        for scenario in scenarios {
            if bars.wants("limit goodput") {
                let figures = measure(&scenario, seeds());
                let name = format!("limit: {}: goodput", scenario.name);
                bars.add(&name, figures.goodput.mean, "x", Bar::AtLeast(bar, "x"));
                bars.add(format!("{name}, the worst seed"), figures.goodput.worst, "x", Bar::None);
                bars.add(format!("limit: {}: p99 inside", scenario.name), figures.held_p99 * 1e3, "ms", Bar::None);
            }
        }
    }
}

/// How soon nine tenths of the goodput are there.
fn recovery(bars: &mut Bars) {
    let [halved, back] = scenarios::halved();
    let [dearer, dearer_3] = scenarios::dearer_mix();
    let [servers, collapse] = scenarios::elsewhere();
    let cases = [
        (scenarios::from_low(), 3.0),
        (scenarios::from_high(), 8.0),
        (scenarios::stale(), 8.0),
        (halved, 3.0),
        (back, 5.0),
        (dearer, 20.0),
        (dearer_3, 20.0),
        (servers, 20.0),
        (collapse, 20.0),
    ];
    for (scenario, bar) in cases {
        if bars.wants("limit recovery") {
            let figures = measure(&scenario, seeds());
            tell_recovery(bars, scenario.name, &figures, bar);
        }
    }
}

fn tell_recovery(bars: &mut Bars, name: &str, figures: &Figures, bar: f64) {
    let seconds = figures.recovery.seconds();
    let (within, seeds) = (figures.recovery.within(bar), count());
    bars.add(
        format!("limit: {name}: 90 % reached, the slowest of {seeds} seeds"),
        seconds.worst,
        "s",
        Bar::AtMost(bar, "s"),
    );
    let name = format!("limit: {name}: the average of those that got there; {within} of {seeds} within the bar");
    bars.add(&name, seconds.mean, "s", Bar::None);
}

/// The limit does not drift.
fn half_an_hour(bars: &mut Bars) {
    if !bars.wants("limit half an hour") {
        return;
    }
    let scenario = scenarios::half_an_hour();
    let (mut furthest, mut goodput) = (0.0_f64, 1.0_f64);
    for seed in seeds().take(FEW_SEEDS) {
        let found = run(&scenario.environment, &scenario.seats(), scenario.span, seed);
        let right = run(&scenario.environment, &scenario.right(), scenario.span, seed);
        for minute in found.buckets.chunks(600).skip(1) {
            let limit = minute.iter().map(|bucket| bucket.limit).sum::<f64>() / 600.0;
            furthest = furthest.max((limit / 20.0 - 1.0).abs());
        }
        goodput = goodput.min(good(&found) / good(&right));
    }
    bars.add("limit: 30 minutes at 3 x: furthest of a minute from 20", furthest * 100.0, "%", Bar::AtMost(15.0, "%"));
    bars.add("limit: 30 minutes at 3 x: goodput", goodput, "x", Bar::AtLeast(0.95, "x"));
}

/// Nothing is lost when an overload begins.
fn step(bars: &mut Bars) {
    if !bars.wants("limit step") {
        return;
    }
    let scenario = scenarios::step();
    let (mut first, mut later, mut best) = (0_usize, 0, 0);
    for seed in seeds() {
        let found = run(&scenario.environment, &scenario.seats(), scenario.span, seed);
        let right = run(&scenario.environment, &scenario.right(), scenario.span, seed);
        let goal = 0.9 * right.buckets[100..190].iter().map(|bucket| bucket.good).sum::<f64>() / 90.0;
        let below = |record: &Record, from: usize, to: usize| {
            record.buckets[from..to].iter().filter(|bucket| bucket.good < goal).count()
        };
        first += below(&found, 100, 110);
        later += below(&found, 100, 150);
        best += below(&right, 100, 150);
    }
    let each = |windows: usize| f64::from(u32::try_from(windows).unwrap_or(u32::MAX)) / count();
    bars.add(
        "limit: 0.5 → 10 x: windows of 100 ms below 0.9 in the first second",
        each(first),
        "of 10",
        Bar::AtMost(0.0, "of 10"),
    );
    bars.add("limit: 0.5 → 10 x: the same in the first five seconds", each(later), "of 50", Bar::AtMost(0.0, "of 50"));
    bars.add("limit: 0.5 → 10 x: the same, with the fixed limit", each(best), "of 50", Bar::None);
}

/// Light load: hardly anybody waits, and nobody is rejected.
fn light(bars: &mut Bars) {
    if !bars.wants("limit light") {
        return;
    }
    let [collapse, servers] = scenarios::light();
    let delayed = |scenario: &scenarios::Scenario, seats: &Seats| {
        let (mut delayed, mut rejected, mut arrived) = (0.0, 0.0, 0.0);
        for seed in seeds() {
            let record = run(&scenario.environment, seats, scenario.span, seed);
            for bucket in &record.buckets[300..] {
                delayed += bucket.delayed;
                rejected += bucket.rejected;
                arrived += bucket.arrived;
            }
        }
        (100.0 * delayed / arrived, rejected)
    };
    let (figure, rejected) = delayed(&servers, &servers.seats());
    bars.add("limit: light noisy load, k servers: delayed", figure, "%", Bar::AtMost(0.1, "%"));
    bars.add("limit: light noisy load, k servers: rejected", rejected, "requests", Bar::AtMost(0.0, "requests"));
    let fixed = [24.0, 29.0, 35.0, 40.0].map(|seats| delayed(&collapse, &Seats::Fixed(Steps::constant(seats))).0);
    let best = fixed.into_iter().fold(f64::MAX, f64::min);
    let (figure, rejected) = delayed(&collapse, &collapse.seats());
    bars.add("limit: light noisy load, collapse: delayed by the best fixed limit", best, "%", Bar::None);
    bars.add("limit: light noisy load, collapse: delayed", figure, "%", Bar::TimesAtMost(1.5, best));
    bars.add("limit: light noisy load, collapse: rejected", rejected, "requests", Bar::AtMost(0.0, "requests"));
}

/// A service that refuses what is too much, and one that fails for a while whatever comes.
fn failures(bars: &mut Bars) {
    if !bars.wants("limit failures") {
        return;
    }
    let scenario = scenarios::refusing();
    let (mut failed, mut ended) = (0.0, 0.0);
    for seed in seeds().take(FEW_SEEDS) {
        let found = run(&scenario.environment, &scenario.seats(), scenario.span, seed);
        for bucket in &found.buckets[300..] {
            failed += bucket.failed;
            ended += bucket.failed + bucket.good;
        }
    }
    bars.add("limit: refuses above 24: failed from 30 s on", 100.0 * failed / ended, "%", Bar::AtMost(0.1, "%"));
    let figures = measure(&scenarios::all_failing(), seeds().take(FEW_SEEDS));
    let slowest = figures.recovery.seconds().worst;
    bars.add("limit: all failing for 5 s: 90 % reached afterwards, the slowest", slowest, "s", Bar::AtMost(0.5, "s"));
}

fn others(bars: &mut Bars) {
    for scenario in scenarios::others() {
        if bars.wants("limit others") {
            let figures = measure(&scenario, seeds());
            bars.add(format!("limit: {}: goodput", scenario.name), figures.goodput.mean, "x", Bar::None);
            let seconds = figures.recovery.seconds();
            bars.add(format!("limit: {}: 90 % reached, the slowest", scenario.name), seconds.worst, "s", Bar::None);
        }
    }
}

/// Three instances that find the seats of one service together.
fn fleet(bars: &mut Bars) {
    if !bars.wants("limit fleet") {
        return;
    }
    for (name, start, from, to) in [
        ("from 6, the first minute", 6, 0, 60),
        ("from 6, the second minute", 6, 60, 120),
        ("from 80, the second minute", 80, 60, 120),
    ] {
        let scenario = FleetScenario::new(from, to);
        let all: Vec<_> = seeds().map(|seed| scenario.measure(start, seed)).collect();
        let mean = |figure: fn(&FleetFigures) -> f64| all.iter().map(figure).sum::<f64>() / count();
        let name = format!("limit: a fleet of three at 3 x, {name}");
        bars.add(format!("{name}: goodput"), mean(|one| one.goodput), "x", Bar::AtLeast(0.9, "x"));
        let worst = all.iter().map(|one| one.goodput).fold(f64::MAX, f64::min);
        bars.add(format!("{name}: the worst seed"), worst, "x", Bar::None);
        bars.add(format!("{name}: with a limit for each instance"), mean(|one| one.apart), "x", Bar::None);
        bars.add(
            format!("{name}: writes of an instance"),
            mean(|one| one.publications),
            "a second",
            Bar::AtMost(4.0, "a second"),
        );
        bars.add(format!("{name}: ledgers"), mean(|one| one.ledgers), "a second", Bar::None);
    }
}

fn seeds() -> std::ops::RangeInclusive<u64> {
    let Ok(text) = std::env::var(OTHER_SEEDS) else { return SEEDS };
    let range = text.split_once("..").and_then(|(first, last)| Some(first.parse().ok()?..=last.parse().ok()?));
    range.unwrap_or_else(|| panic!("{OTHER_SEEDS} is {text:?}, but must be two numbers such as 1..40"))
}

/// How many of them there are.
fn count() -> f64 {
    seeds().fold(0.0, |count, _| count + 1.0)
}

fn good(record: &Record) -> f64 {
    record.buckets.iter().map(|bucket| bucket.good).sum()
}
