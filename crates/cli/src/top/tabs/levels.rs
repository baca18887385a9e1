//! The tab of levels: their seats, waiting requests and rejections.

use evenkeel_api::bootstrap::{CATCH_ALL, EXEMPT};
use evenkeel_gateway::observe::frame::{DiagnosisState, Frame, Level, Queuing};

use crate::top::figures::{amount, milliseconds, percent, trend};
use crate::top::grid::{Column, Grid, Tone};
use crate::top::state::Top;

const TREND_WIDTH: usize = 20;

pub(super) fn grid(top: &Top, frame: &Frame) -> Grid {
    let columns = [
        Column::left("level", 0, 16),
        Column::right("in use", 1),
        Column::right("limit", 2),
        Column::right("own", 6),
        Column::right("at least", 11),
        Column::right("at most", 12),
        Column::right("borrowed", 8),
        Column::right("used", 3),
        Column::right("min-max", 9),
        Column::right("waiting", 1),
        Column::right("p50", 5),
        Column::right("p99", 2),
        Column::right("started/s", 4),
        Column::right("rejected/s", 2),
        Column::left("queuing", 10, 16),
        Column::left("lately", 7, TREND_WIDTH),
    ];
    let mut grid = Grid::new(&columns, "There are no levels.");
    let mut levels: Vec<&Level> = frame.levels.iter().collect();
    levels.sort_by_key(|level| is_idle_fallback(level));
    for level in levels {
        let seats = |number: i64| if level.is_exempt() { "-".to_owned() } else { number.to_string() };
        let wait = |which: fn(&Level) -> Option<f64>| which(level).map_or_else(|| "-".to_owned(), milliseconds);
        let used = level.utilisation;
        grid.push(
            level.name.clone(),
            tone(frame, level),
            [
                level.name.clone() + if level.is_quiescing { " (ending)" } else { "" },
                level.in_use.to_string(),
                if level.is_exempt() { "none".to_owned() } else { level.current.to_string() },
                seats(level.nominal),
                seats(level.floor),
                seats(level.limit),
                balance(level),
                used.map_or_else(|| "-".to_owned(), |used| percent(used.mean)),
                used.map_or_else(|| "-".to_owned(), |used| format!("{:.0}-{:.0}", used.min * 100.0, used.max * 100.0)),
                level.waiting.to_string(),
                wait(|level| level.wait_ms.map(|wait| wait.p50)),
                wait(|level| level.wait_ms.map(|wait| wait.p99)),
                amount(level.dispatched),
                amount(level.rejected_total()),
                queuing(level).to_owned(),
                top.trend(&level.name).map(|ratios| trend(ratios.iter(), TREND_WIDTH)).unwrap_or_default(),
            ],
        );
    }
    grid
}

/// Whether it is one of the levels that every server has, and nothing happens in it.
fn is_idle_fallback(level: &Level) -> bool {
    let is_idle = level.in_use == 0 && level.waiting == 0 && level.dispatched <= 0.0 && level.rejected_total() <= 0.0;
    is_idle && [CATCH_ALL, EXEMPT].contains(&level.name.as_str())
}

/// Red says that requests fail, yellow that they wait. Rejections of a client that is limited as intended are no alarm.
fn tone(frame: &Frame, level: &Level) -> Tone {
    if level.rejected_total() > 0.0 {
        if frame.diagnosis.state == DiagnosisState::Failing { Tone::Bad } else { Tone::Strong }
    } else if level.waiting > 0 {
        Tone::Warn
    } else if level.in_use == 0 && level.dispatched < 0.05 {
        Tone::Faint
    } else {
        Tone::Normal
    }
}

/// `+3` for borrowed seats, `-2` for lent ones.
fn balance(level: &Level) -> String {
    match level.borrowed - level.lent {
        0 => "0".to_owned(),
        balance => format!("{balance:+}"),
    }
}

pub(super) fn queuing(level: &Level) -> &'static str {
    match level.queuing {
        Some(Queuing::Exempt) => "exempt",
        Some(Queuing::Reject) => "rejects",
        Some(Queuing::ShuffleSharding) => "shuffle-sharded",
        Some(Queuing::PerFlow) => "per flow",
        None => "",
    }
}
