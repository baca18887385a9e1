//! Explains a level or a flow, in sentences.

use evenkeel_gateway::observe::frame::{Delay, Level};

use super::figures::{amount, counted, float, milliseconds, percent, share};
use super::grid::Tone;
use super::source::ServerKind;
use super::state::Top;
use super::tabs::{SelectedRow, behind, flow_name};
use crate::terminal::printable;

/// A paragraph of an explanation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Paragraph {
    pub(super) tone: Tone,
    pub(super) text: String,
}

/// How many other flows are named.
const OTHERS_NAMED: usize = 4;

/// The explanation of the selected row.
pub(super) fn explain(top: &Top) -> Vec<Paragraph> {
    let paragraphs = match top.tab.subject(top) {
        Some(SelectedRow::Level(level)) => of_level(level),
        Some(SelectedRow::Flow(level, at)) => of_flow(top, level, at),
        None => vec![plain("There is nothing to explain here; select a level, a flow or a delay.".to_owned())],
    };
    let clean = |one: Paragraph| Paragraph { text: unbroken(&printable(&one.text)), ..one };
    paragraphs.into_iter().map(clean).collect()
}

/// The text with its numbers and their units in one line each.
fn unbroken(text: &str) -> String {
    [" %", " ms", " s "]
        .iter()
        .fold(text.to_owned(), |text, unit| text.replace(unit, &format!("\u{a0}{}", unit.trim_start())))
}

fn of_level(level: &Level) -> Vec<Paragraph> {
    let mut told = vec![strong(format!("Level {}", level.name)), plain(seats(level))];
    if let Some(used) = level.utilisation {
        told.push(plain(format!(
            "It used {} of its limit on average in the last interval, between {} and {}.",
            percent(used.mean),
            percent(used.min),
            percent(used.max)
        )));
    }
    told.push(plain(waits(level)));
    for (reason, rate) in &level.rejected {
        told.push(Paragraph { tone: Tone::Bad, text: rejections(reason, *rate) });
    }
    if level.revoked > 0.0 {
        let text = format!(
            "{} requests are ended per second, because another level needs its own seats.",
            amount(level.revoked)
        );
        told.push(Paragraph { tone: Tone::Warn, text });
    }
    let schemas: Vec<&str> = level.schemas.iter().map(|schema| schema.name.as_str()).collect();
    if !schemas.is_empty() {
        told.push(plain(format!("Requests come from {}.", listed("the flow schema", &schemas))));
    }
    if let Some(delay) = level.delays.first() {
        told.push(plain(format!("The longest delay of the last minute: {}.", delay_text(level, delay))));
    }
    told
}

fn of_flow(top: &Top, level: &Level, at: usize) -> Vec<Paragraph> {
    let Some(flow) = level.flows.get(at) else { return Vec::new() };
    let name = flow_name(flow);
    let mut told = vec![strong(format!("Flow {name}, flow schema {}, level {}", flow.schema, level.name))];
    let of_level = if level.is_exempt() {
        String::new()
    } else {
        format!(", {} of the level's limit of {}", percent(share(flow.seats, float(level.current))), level.current)
    };
    let rejected = match flow.rejected {
        rate if rate > 0.0 => format!("; {} of its requests were rejected per second", amount(rate)),
        _ => String::new(),
    };
    told.push(plain(format!(
        "In the last minute it held {} on average{of_level}, and {} of its requests waited{rejected}.",
        match amount(flow.seats).as_str() {
            "1" => "1 seat".to_owned(),
            seats => format!("{seats} seats"),
        },
        amount(flow.waiting)
    )));
    told.extend(delays_of(level, at));
    told.push(plain(seats(level)));
    told.push(plain(waits(level)));
    if top.kind == ServerKind::Gateway {
        told.push(Paragraph {
            tone: Tone::Faint,
            text: format!("`evenkeel explain --live {} METHOD URL --user NAME` explains one request.", top.url),
        });
    }
    told
}

/// The flows that a flow waited behind, and those that it delayed.
fn delays_of(level: &Level, at: usize) -> Vec<Paragraph> {
    let mut told = Vec::new();
    let own = |delay: &&Delay| delay.waiter == at;
    let waited: f64 = level.delays.iter().filter(own).map(|delay| delay.seconds).sum();
    if waited > 0.0 {
        let parts: Vec<String> = level
            .delays
            .iter()
            .filter(own)
            .take(OTHERS_NAMED)
            .map(|delay| format!("{} behind {}", percent(share(delay.seconds, waited)), behind(level, delay)))
            .collect();
        told.push(plain(format!("Its requests waited {} s in all: {}.", amount(waited), parts.join(", "))));
        let behind_itself: f64 =
            level.delays.iter().filter(own).filter(|delay| delay.by == Some(at)).map(|delay| delay.seconds).sum();
        if share(behind_itself, waited) >= 0.5 {
            told.push(plain(
                "It mostly waits for itself: it sends more requests at a time than it gets seats. With fewer at a time it \
                 would get as much done."
                    .to_owned(),
            ));
        }
    } else {
        told.push(Paragraph { tone: Tone::Good, text: "None of its requests waited in the last minute.".to_owned() });
    }
    let delayed = |delay: &&Delay| delay.by == Some(at) && delay.waiter != at;
    let others: Vec<String> = level
        .delays
        .iter()
        .filter(delayed)
        .take(OTHERS_NAMED)
        .filter_map(|delay| Some(format!("{} {} s", flow_name(level.flows.get(delay.waiter)?), amount(delay.seconds))))
        .collect();
    if !others.is_empty() {
        told.push(Paragraph { tone: Tone::Warn, text: format!("It delayed others: {}.", others.join(", ")) });
    }
    told
}

fn delay_text(level: &Level, delay: &Delay) -> String {
    let waiter = level.flows.get(delay.waiter).map_or("a flow", flow_name);
    format!(
        "{waiter} waited {} s behind {}, {} of all waiting here",
        amount(delay.seconds),
        behind(level, delay),
        percent(delay.share)
    )
}

fn seats(level: &Level) -> String {
    if level.is_exempt() {
        return format!("The level has no limit; {} in use.", are(level.in_use));
    }
    let balance = match (level.borrowed, level.lent) {
        (0, 0) => "it has neither borrowed nor lent any".to_owned(),
        (0, lent) => format!("it has lent {lent}"),
        (borrowed, _) => format!("it has borrowed {borrowed}"),
    };
    let kept = match level.kept {
        0 => String::new(),
        1 => " 1 seat is kept for new clients.".to_owned(),
        kept => format!(" {kept} seats are kept for new clients."),
    };
    format!(
        "The level may use {} now, and {} in use. It has {} of its own, keeps at least {}, and gets at most {}; {balance}.{kept}",
        counted(level.current, "seat"),
        are(level.in_use),
        level.nominal,
        level.floor,
        level.limit,
    )
}

fn are(number: i64) -> String {
    if number == 1 { "1 is".to_owned() } else { format!("{number} are") }
}

fn waits(level: &Level) -> String {
    let waiting = match level.waiting {
        0 => "No request waits".to_owned(),
        1 => "1 request waits".to_owned(),
        many => format!("{many} requests wait"),
    };
    match level.wait_ms {
        Some(wait) => format!(
            "{waiting}. Half of those that started in the last interval had waited less than {}, 99 % less than {}.",
            milliseconds(wait.p50),
            milliseconds(wait.p99)
        ),
        None => format!("{waiting}, and none was started in the last interval after it had waited."),
    }
}

/// The meaning of a reason for rejections (OB-2).
fn rejections(reason: &str, rate: f64) -> String {
    let meaning = match reason {
        "queue-full" => "their queue was full",
        "concurrency-limit" => "all seats were taken, and the level has no queues",
        "time-out" => "they reached the maximum wait",
        "cancelled" => "their clients disconnected while they waited",
        "rate-limit" => "the client was over its rate",
        "too-many-long-running" => "the level had as many long-running requests as it may have",
        _ => "the server gives no other reason",
    };
    format!("{} requests are rejected per second ({reason}): {meaning}.", amount(rate))
}

fn listed(what: &str, names: &[&str]) -> String {
    match names {
        [one] => format!("{what} {one}"),
        _ => format!("{what}s {}", names.join(", ")),
    }
}

fn plain(text: String) -> Paragraph {
    Paragraph { tone: Tone::Normal, text }
}

fn strong(text: String) -> Paragraph {
    Paragraph { tone: Tone::Strong, text }
}
