//! The limit that finds itself, live: a service that collapses, the gateway with `auto` beside the right number, and beside Envoy with its
//! filter `adaptive_concurrency`.

mod collapsing;
mod contender;
mod course;
mod picture;

use std::io;
use std::path::Path;

use evenkeel_bars::{Bar, Bars};

use crate::contestant::Contestant;
use contender::Contender;
use course::{IMPATIENT, Outcome, PATIENT, cold_start, course, run, span};

/// The folder that pictures of the run are written to, if they are wanted.
const PICTURES: &str = "EVENKEEL_BENCH_PICTURES";
/// What is measured begins so long after a change.
const SETTLED: f64 = 5.0;
/// Services for which the 20 seats that the limit starts with are too many, or too few.
const COLD_SLOTS: [u32; 2] = [8, 45];

pub(crate) fn bars(bars: &mut Bars) -> io::Result<()> {
    let course = course();
    let unlimited = run(Contender::Unlimited, &course[..1], IMPATIENT)?;
    let auto = run(Contender::Auto, &course, IMPATIENT)?;
    let right = run(Contender::Right, &course, IMPATIENT)?;
    let mut all = vec![auto, right];
    if Contestant::Envoy.is_installed() {
        all.push(run(Contender::Envoy, &course, IMPATIENT)?);
    }
    let optimum = {
        let (from, until) = span("3 x");
        all[1].goodput(from + SETTLED, until)
    };
    bars.add("live limit: goodput at 3 x, the right number", optimum, "a second", Bar::None);
    for outcome in &all {
        tell(bars, outcome, optimum);
    }
    light(bars, &all[0], &unlimited);
    patient(bars, optimum)?;
    for slots in COLD_SLOTS {
        cold(bars, slots)?;
    }
    match std::env::var_os(PICTURES) {
        Some(folder) => picture::write(Path::new(&folder), &all),
        None => Ok(()),
    }
}

/// How much of the best goodput there was after each change.
fn tell(bars: &mut Bars, outcome: &Outcome, optimum: f64) {
    let (name, is_ours) = (outcome.contender.name(), outcome.contender == Contender::Auto);
    for part in &course()[1..] {
        let (from, until) = span(part.name);
        let best = part.best * optimum;
        let least = match part.name {
            "3 x" => 0.95,
            _ => 0.9,
        };
        let is_barred = is_ours && matches!(part.name, "3 x" | "halved");
        let bar = if is_barred { Bar::AtLeast(least, "x") } else { Bar::None };
        let share = outcome.goodput(from + SETTLED, until) / best;
        bars.add(format!("live limit: {}, after 5 s, of the best: {name}", part.name), share, "x", bar);
        if is_ours {
            let reached = outcome.reached(from, until, 0.9 * best);
            let bar = if part.name == "halved" { Bar::AtMost(SETTLED, "s") } else { Bar::None };
            bars.add(format!("live limit: {}: 0.9 of the best from", part.name), reached, "s", bar);
        }
    }
}

/// Clients that wait for late responses: Envoy knows of all requests that are inside then.
fn patient(bars: &mut Bars, optimum: f64) -> io::Result<()> {
    let (from, until) = span("3 x");
    for contender in [Contender::Auto, Contender::Envoy] {
        if contender == Contender::Envoy && !Contestant::Envoy.is_installed() {
            continue;
        }
        let outcome = run(contender, &course()[..2], PATIENT)?;
        let share = outcome.goodput(from + SETTLED, until) / optimum;
        let name =
            format!("live limit: 3 x, clients that do not give up, after 5 s, of the best: {}", contender.name());
        bars.add(name, share, "x", Bar::None);
    }
    Ok(())
}

/// A cold start from a limit that is wrong, beside the right number.
fn cold(bars: &mut Bars, slots: u32) -> io::Result<()> {
    let parts = cold_start(slots);
    let [light, over] = parts.map(|part| f64::from(part.seconds));
    let (auto, right) = (run(Contender::Auto, &parts, IMPATIENT)?, run(Contender::Right, &parts, IMPATIENT)?);
    let goodput = |outcome: &Outcome| outcome.goodput(light + SETTLED, light + over);
    let name = format!("live limit: cold start at 20, right are {slots}: after 5 s, of the right number");
    bars.add(name, goodput(&auto) / goodput(&right), "x", Bar::AtLeast(0.95, "x"));
    let reached = auto.reached(light, light + over, 0.9 * goodput(&right));
    let name = format!("live limit: cold start at 20, right are {slots}: 0.9 of it from");
    bars.add(name, reached, "s", Bar::AtMost(SETTLED, "s"));
    Ok(())
}

/// A limit that nobody needs must not be noticed.
fn light(bars: &mut Bars, auto: &Outcome, unlimited: &Outcome) {
    let (from, until) = span("light");
    let rejected = auto.rejected(from, until);
    bars.add("live limit: light load: rejected", rejected as f64, "requests", Bar::AtMost(0.0, "requests"));
    let (ours, others) = (auto.p99_ms(from + 1.0, until), unlimited.p99_ms(from + 1.0, until));
    bars.add("live limit: light load: p99, no limit", others, "ms", Bar::None);
    bars.add("live limit: light load: p99, evenkeel, auto", ours, "ms", Bar::TimesAtMost(1.1, others));
}
