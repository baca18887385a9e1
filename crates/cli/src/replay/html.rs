//! The report as a page with pictures.

use evenkeel_replay::{Flow, Report};
use evenkeel_sim::Histogram;
use evenkeel_svg::{Bars, Interval, Intervals, escape};

use super::figures::{milliseconds, title};
use super::incident::IncidentView;
use super::text::{LEVEL_FIGURES, SIDE_FIGURES, count, heading, level_cells, levels_of, notes, side_cells, side_title};
use crate::report_page::{self, Levels, each, pictures};

/// So many flows are in pictures.
const DRAWN: usize = 8;
/// So many flows are in tables.
const LISTED: usize = 200;

/// The page about these logs, or about a dump and what it tells by itself.
pub(super) fn page(logs: &str, report: &Report, incident: Option<&IncidentView<'_>>) -> String {
    let sides: Vec<&str> = (0..report.sides()).map(|side| side_title(report, side)).collect();
    // What was recorded and each configuration have the same colours in all pictures of flows.
    let names: Vec<&str> = ["recorded"].into_iter().chain(sides.iter().copied()).collect();
    let mut body = format!("<p>{}.</p>\n", escape(&heading(report)));
    let comparison = &report.comparison;
    if comparison.compared > 0 {
        let (agree, compared) = (count(comparison.agree), count(comparison.compared));
        body += &format!("<p>The classification of {agree} of {compared} requests agrees with the server.</p>\n");
    }
    if report.damaged.count() > 0 {
        body += &format!("<p>{} lines could not be read.</p>\n", count(report.damaged.count()));
    }
    body += &incident.map(IncidentView::html).unwrap_or_default();
    body += "<h2>Flows</h2>\n";
    body += &pictures([rejections(report, &names), waits(report, &names)]);
    body += &flow_table(report);
    body += "<h2>Levels</h2>\n";
    body += &each("tables", &sides, |side| {
        let titles: Vec<&str> = ["level"].into_iter().chain(LEVEL_FIGURES).collect();
        let rows = report.levels(side).iter().map(|level| (level.name().to_owned(), level_cells(level).to_vec()));
        report_page::table(&titles, rows)
    });
    let runs: Vec<Levels<'_>> =
        (0..report.sides()).map(|side| Levels { records: report.levels(side), seconds: report.seconds() }).collect();
    body += &report_page::level_pictures(&sides, &runs);
    body += "<h2>Assumptions and omissions</h2>\n<ul>\n";
    for note in notes(&report.notes) {
        body += &format!("<li>{}</li>\n", escape(&note));
    }
    body += "</ul>\n";
    report_page::page(&format!("{logs}: replay"), &format!("Replay of {logs}"), &body)
}

/// Rejected requests of the flows that differ most, as recorded and under each configuration.
fn rejections(report: &Report, names: &[&str]) -> String {
    let is_rejected =
        |flow: &&Flow| flow.recorded.rejected > 0 || flow.replayed.iter().any(|side| side.rejected_total() > 0);
    let mut bars =
        Bars::new("Rejected requests by flow", "Rejected requests of flows, as bars side by side.", "", names);
    for flow in report.flows.iter().filter(is_rejected).take(DRAWN) {
        let numbers = flow.replayed.iter().map(evenkeel_replay::Replayed::rejected_total);
        let values = [flow.recorded.rejected].into_iter().chain(numbers);
        #[expect(clippy::cast_precision_loss, reason = "a place in a picture")]
        let values = values.map(|number| number as f64).collect();
        bars = bars.group(&title(flow), values);
    }
    bars.render()
}

/// Waits of the flows that differ most.
fn waits(report: &Report, names: &[&str]) -> String {
    let description = "For each flow a bar from the median to the 99th percentile of the wait.";
    let mut chart = Intervals::new("Wait by flow", description, "ms", names);
    let has_waited = |flow: &&Flow| flow.replayed.iter().any(|side| side.waited > 0);
    for flow in report.flows.iter().filter(has_waited).take(DRAWN) {
        let replayed = flow.replayed.iter().map(|side| interval(&side.wait));
        chart = chart.row(&title(flow), [interval(&flow.recorded.wait)].into_iter().chain(replayed).collect());
    }
    chart.render()
}

fn interval(wait: &Histogram) -> Interval {
    let [p50, p90, p99, p999] = [0.5, 0.9, 0.99, 0.999].map(|part| milliseconds(wait.percentile(part)));
    Interval { p50, p90, p99, p999 }
}

/// Each figure of a flow under one configuration beside that under the other.
fn flow_table(report: &Report) -> String {
    let mut titles = vec!["flow".to_owned(), "requests".to_owned(), "level".to_owned()];
    for figure in SIDE_FIGURES {
        match report.sides() {
            1 => titles.push(figure.to_owned()),
            _ => titles.extend([format!("{figure} before"), "after".to_owned()]),
        }
    }
    let rows = report.flows.iter().take(LISTED).map(|flow| {
        let sides: Vec<_> = flow.replayed.iter().map(side_cells).collect();
        let figures = (0..SIDE_FIGURES.len()).flat_map(|figure| sides.iter().map(move |cells| cells[figure].clone()));
        (title(flow), [count(flow.requests), levels_of(flow)].into_iter().chain(figures).collect())
    });
    let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
    report_page::table(&titles, rows)
}
