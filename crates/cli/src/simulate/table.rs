//! The figures for people.

use serde_json::Value;

use super::inputs::Inputs;
use super::runs::Figures;
use crate::terminal::{Column, Paint, Shade, Table, printable, thousands};

/// The unit of a figure, by which it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    /// A whole number.
    Count,
    /// Milliseconds.
    Time,
    /// A number with one decimal.
    Number,
    /// A part of a whole.
    Percent,
}

/// A column: its heading, where its figure is, and its unit. `*` sums up all members.
pub(super) type Figure = (&'static str, &'static [&'static str], Unit);

const FLOW_FIGURES: [Figure; 9] = [
    ("requests", &["requests"], Unit::Count),
    ("completed", &["completed"], Unit::Count),
    ("rejected", &["rejected", "*"], Unit::Count),
    ("timed out", &["timedOut"], Unit::Count),
    ("wait p99", &["wait", "p99"], Unit::Time),
    ("total p50", &["total", "p50"], Unit::Time),
    ("total p99", &["total", "p99"], Unit::Time),
    ("seat-seconds", &["seatSeconds"], Unit::Number),
    ("cost", &["cost"], Unit::Count),
];

/// The columns of flows: that of costs only where a flow has any.
pub(super) fn flow_figures(figures: &Figures) -> &'static [Figure] {
    let has_costs = items(figures, "flows").iter().any(|[flow, ..]| flow.get("cost").is_some());
    &FLOW_FIGURES[..FLOW_FIGURES.len() - usize::from(!has_costs)]
}

pub(super) const LEVEL_FIGURES: [Figure; 7] = [
    ("nominal", &["nominal"], Unit::Count),
    ("seats", &["seats", "mean"], Unit::Number),
    ("at most", &["seats", "max"], Unit::Count),
    ("utilisation", &["utilisation"], Unit::Percent),
    ("waiting", &["waiting", "mean"], Unit::Number),
    ("at most", &["waiting", "max"], Unit::Count),
    ("rejected", &["rejected", "*"], Unit::Count),
];

/// All tables.
pub(super) fn tables(inputs: &Inputs, figures: &[Figures], paint: Paint) -> String {
    let mut text = format!("{}: {}\n", printable(&inputs.workload.name), heading(inputs, figures));
    for (index, figures) in figures.iter().enumerate() {
        if inputs.configurations.len() > 1 {
            let name = printable(&inputs.configurations[index].name);
            text += &format!("\n{}\n", paint.text(Shade::Strong, &name));
        }
        text += &format!("\n{}", flow_table(figures));
        text += &format!("\n{}", level_table(figures));
        text += &format!("\n{}\n", fairness(figures));
        text += &limit(figures);
        for line in fleet(figures) {
            text += &format!("{line}\n");
        }
    }
    if let [old, new] = figures {
        text += &format!("\n{}\n\n{}", paint.text(Shade::Strong, "differences"), differences(old, new, paint));
    }
    text
}

/// The heading: what was simulated, in one line.
pub(super) fn heading(inputs: &Inputs, figures: &[Figures]) -> String {
    let settings = &inputs.configurations[0].scenario.settings;
    let first = |name| figures.first().and_then(|figures| at(&figures.median, &[name])).unwrap_or(0.0);
    let (events, seconds) = (first("events"), first("simulatedSeconds"));
    let seed = figures.first().map_or_else(String::new, |figures| figures.median["seed"].to_string());
    let runs = figures.first().map_or(1, |figures| figures.runs);
    let runs =
        if runs > 1 { format!("medians and ranges of {runs} runs from seed {seed}") } else { format!("seed {seed}") };
    format!(
        "{seconds} s simulated, {} events, {} seats, {} borrowing, {runs}",
        written(events, Unit::Count),
        inputs.concurrency,
        settings.borrowing,
    )
}

/// How the limit found itself, if it did: where it ended, and its latest changes.
fn limit(figures: &Figures) -> String {
    const SHOWN: usize = 12;
    let Some(limit) = figures.median.get("limit") else { return String::new() };
    let end = written(at(limit, &["limit"]).unwrap_or_default(), Unit::Number);
    let is_known = limit["isKnown"] == Value::Bool(true);
    let found = if is_known { "found" } else { "not found yet; too few requests waited, or for too short a time" };
    let mut text = format!("\nlimit at the end: {end} ({found})\n");
    let changes = limit["changes"].as_array().map_or(&[][..], Vec::as_slice);
    for change in &changes[changes.len().saturating_sub(SHOWN)..] {
        let at = at(change, &["at"]).unwrap_or_default();
        text += &format!("  {at:>8.3} s  {}\n", self::text(change, "reason"));
    }
    text
}

/// How instances shared the seats, and beside it what they would do with a fixed part each. Nothing, if there is one server.
pub(super) fn fleet(figures: &Figures) -> Vec<String> {
    let Some(shared) = figures.median.get("fleet") else { return Vec::new() };
    let count = shared["instances"].as_array().map_or(0, Vec::len);
    let seats = at(shared, &["seats"]).unwrap_or_default();
    let line = |value: &Value| {
        let number = |path: &[&str]| at(value, path).unwrap_or_default();
        let used = value["instances"].as_array().map_or(&[][..], Vec::as_slice).iter();
        let used: Vec<f64> = used.filter_map(|instance| at(instance, &["inUse", "mean"])).collect();
        let by_instance = if used.len() > 8 {
            let [least, most] =
                [f64::min, f64::max].map(|choose| used.iter().copied().reduce(choose).unwrap_or_default());
            format!("{} to {}", written(least, Unit::Number), written(most, Unit::Number))
        } else {
            used.iter().map(|mean| written(*mean, Unit::Number)).collect::<Vec<_>>().join(", ")
        };
        let jain = at(value, &["jain"]).map_or_else(|| "-".to_owned(), |jain| jain.to_string());
        format!(
            "{} of {seats} seats in use on average, {} at most; by instance {by_instance}; {} requests completed; Jain index {jain}",
            written(number(&["inUse", "mean"]), Unit::Number),
            written(number(&["inUse", "max"]), Unit::Count),
            written(number(&["completed"]), Unit::Count),
        )
    };
    let part = written(seats / f64::from(u32::try_from(count.max(1)).unwrap_or(u32::MAX)), Unit::Number);
    let is_found = shared["isFound"] == Value::Bool(true);
    let apart = if is_found { "each finds its own".to_owned() } else { format!("with {part} seats each") };
    vec![
        format!("{count} instances that share the seats: {}", line(shared)),
        format!("{apart}: {}", line(&shared["apart"])),
    ]
}

/// The columns before the figures of flows: the name of a flow, and where its requests went.
pub(super) const FLOW_TITLES: [&str; 3] = ["flow", "schema", "level"];
pub(super) const LEVEL_TITLES: [&str; 1] = ["level"];

/// A row of a table: its titles, and its figures.
pub(super) type Row<const TITLES: usize> = ([String; TITLES], Vec<String>);

/// The rows of a table of flows: each flow, and below it the worst of several of a kind.
pub(super) fn flow_rows(figures: &Figures) -> Vec<Row<3>> {
    let mut rows = Vec::new();
    for [flow, least, most] in items(figures, "flows") {
        let (name, count) = (text(flow, "name"), at(flow, &["count"]).unwrap_or(1.0));
        let name = if count > 1.0 { format!("{name} ({count})") } else { name.to_owned() };
        let [schema, level] = ["flowSchema", "priorityLevel"].map(|member| text(flow, member).to_owned());
        rows.push(([name, schema, level], cells(flow_figures(figures), [flow, least, most])));
        if let Some(worst) = flow.get("worst") {
            let ends = [least, most].map(|end| end.get("worst").unwrap_or(worst));
            let cells = cells(flow_figures(figures), [worst, ends[0], ends[1]]);
            rows.push(([format!("  worst: {}", text(worst, "user")), String::new(), String::new()], cells));
        }
    }
    rows
}

/// Why a simulation ended early, in a sentence.
pub(super) fn ended_early(report: &Value, early: &Value) -> String {
    let number = |value: &Value, name| at(value, &[name]).unwrap_or_default();
    format!(
        "the simulation ended after {} events, at {} s of {} s; the flow {:?} has sent {} requests: give it a longer service time, \
         or `think` time, or simulate fewer seconds",
        written(number(report, "events"), Unit::Count),
        number(report, "simulatedSeconds"),
        number(early, "ofSeconds"),
        text(early, "busiestFlow"),
        written(number(early, "requests"), Unit::Count),
    )
}

/// The rows of a table of levels, without those that nobody used.
pub(super) fn level_rows(figures: &Figures) -> Vec<Row<1>> {
    let used = |level: &Value| at(level, &["seats", "max"]) > Some(0.0) || at(level, &["rejected", "*"]) > Some(0.0);
    let levels = items(figures, "levels").into_iter().filter(|[_, _, most]| used(most));
    levels.map(|levels| ([text(levels[0], "name").to_owned()], cells(&LEVEL_FIGURES, levels))).collect()
}

/// How evenly seats were divided, in a sentence.
pub(super) fn fairness(figures: &Figures) -> String {
    let index = |name: &str| {
        let values = [&figures.median, &figures.least, &figures.most].map(|value| at(value, &["jain", name]));
        match values {
            [Some(median), Some(least), Some(most)] if least < most => Some(format!("{median} ({least} to {most})")),
            [Some(median), ..] => Some(median.to_string()),
            _ => None,
        }
    };
    match (index("overall"), index("perSecondMean"), index("perSecondMin")) {
        (Some(overall), Some(mean), Some(min)) => format!(
            "fairness among flows that waited (Jain index, 1 is even): {overall} overall; in each second {mean} on average, {min} at least"
        ),
        _ => "fairness: no two flows of a level had requests waiting for a whole second".to_owned(),
    }
}

fn flow_table(figures: &Figures) -> String {
    rendered(FLOW_TITLES, flow_figures(figures), flow_rows(figures))
}

fn level_table(figures: &Figures) -> String {
    rendered(LEVEL_TITLES, &LEVEL_FIGURES, level_rows(figures))
}

fn rendered<const TITLES: usize>(titles: [&str; TITLES], figures: &[Figure], rows: Vec<Row<TITLES>>) -> String {
    let numbers = figures.iter().map(|(title, ..)| Column::right(*title));
    let mut table = Table::new(titles.map(Column::left).into_iter().chain(numbers));
    table.ruler();
    for (titles, cells) in rows {
        table.row(titles.map(|title| printable(&title).into_owned()).into_iter().chain(cells));
    }
    table.render()
}

/// The changes for each flow, old and new side by side.
fn differences(old: &Figures, new: &Figures, paint: Paint) -> String {
    const SHOWN: [usize; 5] = [1, 2, 3, 4, 6];
    let mut columns = vec![Column::left("flow")];
    let mut table = {
        columns.extend(SHOWN.iter().map(|index| Column::right(FLOW_FIGURES[*index].0)));
        Table::new(columns)
    };
    table.ruler();
    let olds = items(old, "flows");
    for ([before, ..], [after, ..]) in olds.into_iter().zip(items(new, "flows")) {
        let mut cells = vec![printable(text(before, "name")).into_owned()];
        for (title, path, unit) in SHOWN.iter().map(|index| FLOW_FIGURES[*index]) {
            let [old, new] = [before, after].map(|flow| at(flow, path).unwrap_or(0.0));
            let [from, to] = [old, new].map(|value| written(value, unit));
            let is_better = if title == "completed" { new > old } else { new < old };
            let shade = if is_better { Shade::Green } else { Shade::Red };
            // Small changes have no colour.
            let differs = (new - old).abs() > 0.05 * old.max(new);
            let change = if from == to { from } else { format!("{from} → {to}") };
            cells.push(if differs { paint.text(shade, &change) } else { change });
        }
        table.row(cells);
    }
    table.render()
}

/// The items of a list, each with those of the least and of the greatest figures.
fn items<'a>(figures: &'a Figures, list: &str) -> Vec<[&'a Value; 3]> {
    let of = |value: &'a Value| value.get(list).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let (least, most) = (of(&figures.least), of(&figures.most));
    let medians = of(&figures.median).iter().enumerate();
    medians.map(|(index, item)| [item, least.get(index).unwrap_or(item), most.get(index).unwrap_or(item)]).collect()
}

fn cells(figures: &[Figure], [median, least, most]: [&Value; 3]) -> Vec<String> {
    let cell = |(_, path, unit): &Figure| {
        let Some(value) = at(median, path) else { return "-".to_owned() };
        let [low, high] = [least, most].map(|value| written(at(value, path).unwrap_or(0.0), *unit));
        let own = written(value, *unit);
        if low == high { own } else { format!("{own} ({low} to {high})") }
    };
    figures.iter().map(cell).collect()
}

/// The number at a place of a tree.
fn at(value: &Value, path: &[&str]) -> Option<f64> {
    match path {
        [] => value.as_f64(),
        ["*", rest @ ..] => Some(value.as_object()?.values().filter_map(|member| at(member, rest)).sum()),
        [name, rest @ ..] => at(value.get(name)?, rest),
    }
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a figure that is written")]
fn written(value: f64, unit: Unit) -> String {
    let whole = |value: f64| thousands(value.round() as usize);
    match unit {
        Unit::Count => whole(value),
        Unit::Time if value >= 100.0 => format!("{} ms", whole(value)),
        Unit::Time => format!("{value:.1} ms"),
        Unit::Number if value >= 1000.0 => whole(value),
        Unit::Number => format!("{value:.1}"),
        Unit::Percent => format!("{:.0} %", value * 100.0),
    }
}
