//! The report as tables for people.

use std::ops::Range;

use evenkeel_replay::{Flow, Notes, Replayed, Report};
use evenkeel_sim::report::LimitReport;
use evenkeel_sim::{Histogram, LevelRecord, REASONS};

use super::figures::{self, utilisation};
use crate::terminal::{Column, Paint, Shade, Table, printable, taken, text_width, thousands};

/// The columns of a flow under each configuration.
pub(super) const SIDE_FIGURES: [&str; 5] = ["waited", "p50", "p99", "rejected", "seat-s"];

/// The columns of a level under each configuration.
pub(super) const LEVEL_FIGURES: [&str; 6] = ["seats", "used", "at most", "waiting", "at most", "rejected"];

/// Names of flows are not cut to less than this.
const NAME_MIN: usize = 16;

/// Names of levels are not cut to less than this.
const LEVEL_MIN: usize = 9;

/// So many requests that were classified otherwise are shown.
const DIFFERENCES: usize = 10;

/// So many of the latest changes of a limit are shown.
const LIMIT_CHANGES: usize = 8;

/// The widest that names may be.
#[derive(Clone, Copy)]
struct NameWidths {
    flow: usize,
    level: usize,
}

/// The report, with that many flows at most. Names are cut where a table would be wider than the terminal.
pub(crate) fn render(report: &Report, top: usize, paint: Paint, width: Option<usize>) -> String {
    let mut text = summary(report, paint);
    let shown = if top == 0 { report.flows.len() } else { top.min(report.flows.len()) };
    let heading = |text: &str| format!("\n{}\n", paint.text(Shade::Strong, text));
    text += &heading("Flows, the largest differences first (waits in ms)");
    text += &fitting_flows(report, shown, width);
    if shown < report.flows.len() {
        text += &format!("and {} more flows (--top 0 for all)\n", count((report.flows.len() - shown) as u64));
    }
    let reasons = fitting_reasons(report, shown, width);
    if !reasons.is_empty() {
        text += &heading("Rejected requests by reason");
        text += &reasons;
    }
    text += &heading("Levels");
    text += &fitting_levels(report, width);
    for side in 0..report.sides() {
        if let Some(limit) = report.limit(side) {
            text += &limit_lines(&limit, side_title(report, side));
        }
    }
    let notes = notes(&report.notes);
    if !notes.is_empty() {
        text += &heading("Assumptions and omissions");
        for note in notes {
            text += &wrapped(&note, width);
        }
    }
    text
}

/// Where a limit that found itself has ended, and its latest changes.
fn limit_lines(limit: &LimitReport, side: &str) -> String {
    let found = if limit.is_known { "found" } else { "not known yet" };
    let mut text = format!("\nLimit at the end, {side}: {:.0} ({found})\n", limit.limit);
    let left_out = limit.changes.len().saturating_sub(LIMIT_CHANGES);
    for change in &limit.changes[left_out..] {
        text += &format!("  {:9.3} s  {}\n", change.at, change.reason);
    }
    text
}

/// The heading: what was read.
pub(super) fn heading(report: &Report) -> String {
    format!(
        "{}: {} lines, {} requests in {:.1} s",
        report.notes.formats.join(", "),
        count(report.lines),
        count(report.requests),
        report.seconds()
    )
}

fn summary(report: &Report, paint: Paint) -> String {
    let mut text = format!("{}\n", printable(&heading(report)));
    let damaged = report.damaged.count();
    if damaged > 0 {
        let shade = |text: &str| paint.text(Shade::Yellow, text);
        let lines = if damaged == 1 { "line" } else { "lines" };
        text += &format!("{}\n", shade(&format!("{} {lines} could not be read:", count(damaged))));
        for line in report.damaged.first() {
            text += &format!("  {}\n", printable(&line.to_string()));
        }
        if damaged > report.damaged.first().len() as u64 {
            text += "  …\n";
        }
    }
    let comparison = &report.comparison;
    if comparison.compared > 0 {
        let differ = comparison.compared - comparison.agree;
        let verdict = format!(
            "classification: {} of {} requests agree with the server",
            count(comparison.agree),
            count(comparison.compared)
        );
        text += &format!("{}\n", paint.text(if differ == 0 { Shade::Green } else { Shade::Red }, &verdict));
        for one in comparison.differ.iter().take(DIFFERENCES) {
            let line = format!(
                "  {} {} {}: {} in {} instead of {} in {}",
                one.user, one.verb, one.target, one.ours.schema, one.ours.level, one.theirs.schema, one.theirs.level
            );
            text += &format!("{}\n", printable(&line));
        }
        if differ > DIFFERENCES as u64 {
            text += &format!("  and {} more\n", count(differ - DIFFERENCES as u64));
        }
    }
    text
}

/// The table of flows, no wider than the terminal as far as that is possible.
fn fitting_flows(report: &Report, shown: usize, width: Option<usize>) -> String {
    let shown = &report.flows[..shown];
    let longest = |text: fn(&Flow) -> String| shown.iter().map(|flow| text_width(&text(flow))).max().unwrap_or(0);
    let longest = NameWidths { flow: longest(title), level: longest(levels_of) };
    let shortened = |sides: Range<usize>| {
        let mut names = longest;
        let whole = flows(report, shown, names, sides.clone());
        names.flow = names.flow.saturating_sub(excess(&whole, width)).max(NAME_MIN);
        let shorter = flows(report, shown, names, sides.clone());
        names.level = names.level.saturating_sub(excess(&shorter, width)).max(LEVEL_MIN);
        flows(report, shown, names, sides)
    };
    beside_or_below(report, width, shortened)
}

/// A table of both configurations or, if that is too wide, a table of each.
fn beside_or_below(report: &Report, width: Option<usize>, table: impl Fn(Range<usize>) -> String) -> String {
    let beside = table(0..report.sides());
    if excess(&beside, width) == 0 || report.sides() == 1 {
        return beside;
    }
    (0..report.sides()).map(|side| table(side..side + 1)).collect::<Vec<_>>().join("\n")
}

/// How much wider than the terminal a table is.
fn excess(table: &str, width: Option<usize>) -> usize {
    let table_width = table.lines().map(text_width).max().unwrap_or(0);
    width.map_or(0, |width| table_width.saturating_sub(width))
}

/// The table that `made` makes of the widest names, or with shorter ones where it would be wider than the terminal.
fn fitting(longest: usize, name_min: usize, width: Option<usize>, made: impl Fn(usize) -> String) -> String {
    let whole = made(longest);
    match excess(&whole, width) {
        0 => whole,
        excess => made(longest.saturating_sub(excess).max(name_min)),
    }
}

fn fitting_reasons(report: &Report, shown: usize, width: Option<usize>) -> String {
    let shown = &report.flows[..shown];
    let longest = shown.iter().map(|flow| text_width(&title(flow))).max().unwrap_or(0);
    fitting(longest, NAME_MIN, width, |name_max| reasons(report, shown, name_max))
}

fn fitting_levels(report: &Report, width: Option<usize>) -> String {
    let names = (0..report.sides()).flat_map(|number| report.levels(number)).map(|level| text_width(level.name()));
    let longest = names.max().unwrap_or(0);
    beside_or_below(report, width, |sides| {
        fitting(longest, LEVEL_MIN, width, |name_max| levels(report, name_max, sides.clone()))
    })
}

/// A note, on several lines where it is longer than the terminal is wide.
fn wrapped(note: &str, width: Option<usize>) -> String {
    let width = width.unwrap_or(usize::MAX);
    let (mut text, mut line) = (String::new(), String::from("-"));
    for word in note.split(' ') {
        if text_width(&line) + 1 + text_width(word) > width {
            text += &line;
            text.push('\n');
            line = String::from(" ");
        }
        line.push(' ');
        line += word;
    }
    text + &line + "\n"
}

fn flows(report: &Report, shown: &[Flow], names: NameWidths, sides: Range<usize>) -> String {
    let is_compared = report.sides() > 1;
    let mut columns = vec![Column::left("flow"), Column::right("requests"), Column::left("level")];
    let mut groups = Vec::new();
    if !is_compared {
        groups.push(("recorded", vec![Column::right("p99"), Column::right("rejected")]));
    }
    for number in sides.clone() {
        groups.push((side_title(report, number), SIDE_FIGURES.map(Column::right).to_vec()));
    }
    let mut spans = Vec::new();
    for (title, group) in groups {
        spans.push((columns.len(), group.len(), title));
        columns.extend(group);
    }
    let mut table = Table::new(columns);
    for (first, width, title) in spans {
        table.line_before(first);
        table.span(first, width, title);
    }
    table.ruler();
    for flow in shown {
        let (name, level) = (cut(&title(flow), names.flow), cut(&levels_of(flow), names.level));
        let mut cells = vec![name, count(flow.requests), level];
        if !is_compared {
            cells.push(if flow.recorded.wait.count() > 0 { wait(&flow.recorded.wait, 0.99) } else { "-".to_owned() });
            cells.push(count(flow.recorded.rejected));
        }
        cells.extend(flow.replayed[sides.clone()].iter().flat_map(side_cells));
        table.row(cells);
    }
    table.render()
}

/// The name of a flow. It may hold any characters, since clients choose the names of users and namespaces.
fn title(flow: &Flow) -> String {
    printable(&figures::title(flow)).into_owned()
}

/// The level of a flow, or both if they differ.
pub(super) fn levels_of(flow: &Flow) -> String {
    match &flow.names[..] {
        [before, after] if before.level != after.level => format!("{} -> {}", before.level, after.level),
        [.., name] => name.level.to_string(),
        [] => String::new(),
    }
}

/// A name without its middle, if it is too long: names begin and end with what tells them apart.
fn cut(name: &str, max: usize) -> String {
    if text_width(name) <= max {
        return name.to_owned();
    }
    let kept = max.saturating_sub(1);
    let start = taken(name.chars(), kept.div_ceil(2));
    let end: String = taken(name.chars().rev(), kept / 2).chars().rev().collect();
    format!("{start}…{end}")
}

pub(super) fn side_cells(side: &Replayed) -> [String; 5] {
    [
        count(side.waited),
        wait(&side.wait, 0.5),
        wait(&side.wait, 0.99),
        count(side.rejected_total()),
        format!("{:.1}", side.seat_seconds()),
    ]
}

fn reasons(report: &Report, shown: &[Flow], name_max: usize) -> String {
    let titles = (0..report.sides()).map(|side| Column::right(side_title(report, side)));
    let mut table = Table::new([Column::left("flow"), Column::left("reason")].into_iter().chain(titles));
    table.ruler();
    let mut is_empty = true;
    for flow in shown {
        for (place, reason) in REASONS.iter().enumerate() {
            let numbers = rejected_for(flow, place);
            if numbers.iter().any(|number| *number > 0) {
                is_empty = false;
                let cells = [cut(&title(flow), name_max), reason.as_str().to_owned()];
                table.row(cells.into_iter().chain(numbers.into_iter().map(count)));
            }
        }
    }
    if is_empty { String::new() } else { table.render() }
}

fn rejected_for(flow: &Flow, reason: usize) -> Vec<u64> {
    flow.replayed.iter().map(|side| side.rejected[reason]).collect()
}

fn levels(report: &Report, name_max: usize, sides: Range<usize>) -> String {
    let side = LEVEL_FIGURES;
    let mut table =
        Table::new(std::iter::once(Column::left("level")).chain(sides.clone().flat_map(|_| side.map(Column::right))));
    for (place, number) in sides.clone().enumerate() {
        let first = 1 + place * side.len();
        table.line_before(first);
        table.span(first, side.len(), side_title(report, number));
    }
    table.ruler();
    let mut names: Vec<&str> =
        (0..report.sides()).flat_map(|number| report.levels(number)).map(LevelRecord::name).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let mut cells = vec![cut(name, name_max)];
        for number in sides.clone() {
            let level = report.levels(number).iter().find(|level| level.name() == name);
            cells.extend(level.map_or_else(|| ["-"; 6].map(str::to_owned), level_cells));
        }
        table.row(cells);
    }
    table.render()
}

pub(super) fn level_cells(level: &LevelRecord) -> [String; 6] {
    let totals = level.totals();
    let used = if level.limits().nominal > 0 {
        format!("{:.0} %", utilisation(level) * 100.0)
    } else {
        format!("{:.1}", totals.seats_mean())
    };
    [
        level.limits().nominal.to_string(),
        used,
        totals.seats_max.to_string(),
        format!("{:.1}", totals.waiting_mean()),
        count(totals.waiting_max),
        count(totals.rejected.iter().sum()),
    ]
}

pub(super) fn side_title(report: &Report, side: usize) -> &'static str {
    match (report.sides(), side) {
        (2, 0) => "before (--against)",
        (2, _) => "after (--objects)",
        _ => "replayed",
    }
}

/// Notes on assumptions about facts that the log does not contain, and on requests that were left out.
pub(super) fn notes(notes: &Notes) -> Vec<String> {
    let mut lines = Vec::new();
    let mut note = |number: u64, text: &str| {
        if number > 0 {
            lines.push(text.replace("{}", &count(number)));
        }
    };
    note(
        notes.rejected,
        "{} requests were rejected in the log. Their service times are estimated from requests of the same verb and resource. \
         Some of them may be retries that clients would not have sent otherwise.",
    );
    note(
        notes.untimed,
        "The log has no service times of {} requests. They are estimated from requests of the same verb and resource.",
    );
    note(notes.unknown_waits, "The log has no waits of {} requests. Their waits count as service time.");
    note(
        notes.lists,
        "The number of objects is not known for {} lists, so each takes one seat. Name a file of metrics with --object-counts.",
    );
    note(notes.unknown_seats, "The log has no seats of {} requests, so each takes one.");
    let names = notes.untold_header_names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    note(
        notes.untold_headers,
        &format!(
            "Flow schemas ask {{}} requests for headers that the log does not have ({names}). Whether they match cannot be decided: they \
             count as requests without the header. Log it: see \"Headers\" in docs/replay.md."
        ),
    );
    note(
        notes.untold_addresses,
        "The log has no client addresses of {} requests, by which flow schemas tell flows apart, so they are one flow.",
    );
    note(
        notes.untold_costs,
        "The log does not have the costs of {} requests in the unit of their flow schemas. They cost what is expected of their kind, if \
         anything is known of that.",
    );
    note(
        notes.narrowed,
        "{} requests took more seats than their level can have in the replay. They run on as many as it can have.",
    );
    note(
        u64::from(notes.without_users),
        "The log has no users. Requests stay in their recorded flow schemas, with one flow for each.",
    );
    note(notes.unplaced, "{} requests were left out: their flow schemas are not in the objects.");
    note(notes.unfinished, "{} requests were left out: the log has their start, but not their end.");
    note(notes.late, "{} requests were logged more than 90 s after they arrived. They arrive too late in the replay.");
    note(notes.not_understood, "{} requests were left out: their paths are malformed.");
    note(
        notes.unauthenticated,
        "{} requests were left out: they failed authentication, so flow control never saw them.",
    );
    note(notes.seatless, "{} requests were left out: they took no seats, and flow control does not limit them.");
    note(notes.not_limited, "{} requests were left out: they are long-running, and flow control does not limit them.");
    if notes.formats.iter().any(|format| format.starts_with("Kubernetes audit log")) {
        lines.push(
            "An audit log has no waits of requests that took less than half a second, and no requests that the audit policy \
             leaves out, although they took seats."
                .to_owned(),
        );
    }
    lines
}

fn wait(histogram: &Histogram, part: f64) -> String {
    let microseconds = histogram.percentile(part) / 1000;
    if microseconds < 10_000 && microseconds % 1000 != 0 {
        return format!("{}.{}", microseconds / 1000, microseconds % 1000 / 100);
    }
    count(u64::try_from((microseconds + 500) / 1000).unwrap_or_default())
}

pub(super) fn count(number: u64) -> String {
    thousands(usize::try_from(number).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use evenkeel_api::Preset;
    use evenkeel_engine::controller::Objects;
    use evenkeel_replay::{Input, Replay, Settings};

    use super::*;
    use crate::terminal::ColorChoice;

    #[test]
    fn tables_fit_the_terminal_and_names_keep_both_ends() {
        assert_eq!(cut("system:serviceaccount:shop:web", 16), "system:s…hop:web");
        assert_eq!(cut("shop", 16), "shop");
        assert_eq!(cut("ab", 1), "…");
        let event = |user: &str, id: usize| {
            format!(
                r#"{{"auditID":"{id}","stage":"ResponseComplete","requestURI":"/api/v1/namespaces/a/pods","verb":"list","user":{{"username":"{user}","groups":["system:serviceaccounts","system:authenticated"]}},"requestReceivedTimestamp":"2026-11-16T10:51:10Z","stageTimestamp":"2026-11-16T10:51:11Z"}}"#
            )
        };
        let long_name = format!("system:serviceaccount:{}:web", "n".repeat(60));
        let log =
            (0..40).map(|id| event(if id % 2 == 0 { &long_name } else { "alice" }, id)).collect::<Vec<_>>().join("\n");
        let preset = Preset::Kubernetes;
        let mut replay = Replay::new(Settings::new(preset, 10), vec![Objects::from(preset); 2], None);
        let input = Input::new("log", Box::new(std::io::Cursor::new(log)), None, None);
        replay.read(&mut input.unwrap(), |_, _| ());
        let report = replay.finish();
        let paint = ColorChoice::Never.paint(&std::io::stdout());
        for width in [90, 120, 160] {
            let text = render(&report, 0, paint, Some(width));
            let widest = text.lines().map(text_width).max().unwrap();
            assert!(widest <= width, "{widest} columns of {width}:\n{text}");
            assert!(text.contains("nnn:web  "), "{text}");
        }
        assert!(render(&report, 0, paint, None).contains(&long_name));
    }

    #[test]
    fn what_clients_sent_cannot_control_the_terminal() {
        let log = r#"{"auditID":"a","stage":"ResponseComplete","requestURI":"/api/v1/namespaces/a\u001b[31m/pods\u009b2J","verb":"list","user":{"username":"eve\u001b]0;owned\u0007\n\u202e","groups":["system:authenticated"]},"requestReceivedTimestamp":"2026-11-16T10:51:10Z","stageTimestamp":"2026-11-16T10:51:11Z","annotations":{"apiserver.latency.k8s.io/apf-queue-wait":"1s"}}"#;
        let truth = "I1116 10:51:11.000000       1 httplog.go:134] \"HTTP\" verb=\"LIST\" URI=\"/x\" latency=\"1ms\" userAgent=\"x\" audit-ID=\"a\" srcIP=\"127.0.0.1:1\" apf_pl=\"moon\" apf_fs=\"moon\" resp=200";
        let input =
            |text: &str| Input::new("log", Box::new(std::io::Cursor::new(text.to_owned())), None, None).unwrap();
        let truth = evenkeel_replay::Truth::read(&mut input(truth), |_, _| ());
        assert!(!truth.is_empty());
        let preset = Preset::Kubernetes;
        let mut replay = Replay::new(Settings::new(preset, 10), vec![Objects::from(preset)], Some(truth));
        replay.read(&mut input(log), |_, _| ());
        let text = render(&replay.finish(), 0, ColorChoice::Never.paint(&std::io::stdout()), None);
        assert!(text.lines().all(|line| printable(line) == line), "{text:?}");
        let name = r"eve\u{1b}]0;owned\u{7}\u{a}\u{202e}";
        assert!(text.contains(&format!("/{name} ")), "the flow: {text}");
        assert!(text.contains(&format!("  {name} list ")), "the classification: {text}");
    }
}
