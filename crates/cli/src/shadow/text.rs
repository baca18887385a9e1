//! The report of a shadow as text for people: the sentence first, then totals, levels and flows.

use evenkeel::canary::CanaryState;
use evenkeel::shadow::{ShadowFigures, ShadowReport, ShadowWait, Sides};

use crate::terminal::{Column, Paint, Shade, Table, printable, thousands};

/// The report of one service, with so many flows.
pub(super) fn report(service: Option<&str>, report: &ShadowReport, flows: usize, paint: Paint) -> String {
    let mut text = String::new();
    if let Some(service) = service {
        text += &format!("{}\n\n", paint.text(Shade::Strong, &printable(service)));
    }
    text += &format!("{}\n", printable(&report.summary));
    text += &format!("{}\n\n", paint.text(Shade::Faint, &report.caveat));
    text += &format!(
        "{} requests since {} ({} s), {} seats in the shadow",
        count(report.requests),
        printable(&report.since),
        count(whole(report.seconds)),
        report.seats
    );
    if report.pending > 0 {
        text += &format!(", {} more that have not ended", count(report.pending));
    }
    text.push('\n');
    if let Some(canary) = &report.canary {
        text += &format!("{}\n", sentence_of(canary));
    }
    text.push('\n');
    text += &table(report, flows).render();
    for moved in &report.moved {
        let (from, to) = (printable(&moved.from), printable(&moved.to));
        text += &format!("\n{} requests would be in level {to} instead of {from}", count(moved.requests));
    }
    if !report.moved.is_empty() {
        text.push('\n');
    }
    let hidden = report.flows.len().saturating_sub(flows);
    let others = report.requests_of_other_flows;
    if hidden > 0 {
        text += &format!("\n{hidden} more flows (--flows)\n");
    }
    if others > 0 {
        text += &format!("\n{} requests of flows that are too light to be listed\n", count(others));
    }
    text
}

/// The state of the canary, or why it has ended.
fn sentence_of(canary: &CanaryState) -> String {
    let figures = format!(
        "{} requests, {} rejected, wait p50 {}, p99 {}",
        count(canary.requests),
        count(canary.rejected),
        milliseconds(canary.wait_p50),
        milliseconds(canary.wait_p99)
    );
    match &canary.returned {
        Some(reason) => {
            format!("The canary has returned after {} s: {} ({figures})", whole(canary.seconds), printable(reason))
        }
        None => format!(
            "The canary has {} % of the flows and {} seats for real: {figures}, in {} s",
            canary.percent,
            canary.seats,
            whole(canary.seconds)
        ),
    }
}

fn table(report: &ShadowReport, flows: usize) -> Table {
    let mut table = Table::new([
        Column::left("flow"),
        Column::left("flow schema"),
        Column::left("level"),
        Column::right("requests"),
        Column::right("now"),
        Column::right("shadow"),
        Column::right("now"),
        Column::right("shadow"),
        Column::right("now"),
        Column::right("shadow"),
    ]);
    table.span(4, 2, "rejected");
    table.span(6, 2, "wait p50");
    table.span(8, 2, "wait p99");
    for first in [4, 6, 8] {
        table.line_before(first);
    }
    table.ruler();
    let all = ["all".to_owned(), String::new(), String::new(), count(report.requests)];
    table.row(all.into_iter().chain(cells(&report.totals)));
    for flow in report.flows.iter().take(flows) {
        let Sides { real, shadow } = &flow.level;
        let level = if real == shadow {
            printable(real).into_owned()
        } else {
            format!("{} → {}", printable(real), printable(shadow))
        };
        let name = [
            printable(&flow.flow).into_owned(),
            printable(&flow.flow_schema).into_owned(),
            level,
            count(flow.requests),
        ];
        table.row(name.into_iter().chain(cells(&flow.figures)));
    }
    table
}

fn cells(figures: &ShadowFigures) -> [String; 6] {
    let ShadowFigures { rejected, wait, .. } = figures;
    // Where no request started, nobody knows how long one waits.
    let known = |wait: &ShadowWait, ms| if wait.samples == 0 { "–".to_owned() } else { milliseconds(ms) };
    [
        count(rejected.real),
        count(rejected.shadow),
        known(&wait.real, wait.real.p50),
        known(&wait.shadow, wait.shadow.p50),
        known(&wait.real, wait.real.p99),
        known(&wait.shadow, wait.shadow.p99),
    ]
}

fn milliseconds(ms: f64) -> String {
    match ms {
        0.0 => "0".to_owned(),
        ms if ms < 10.0 => format!("{ms:.1} ms"),
        ms => format!("{ms:.0} ms"),
    }
}

fn count(number: u64) -> String {
    thousands(usize::try_from(number).unwrap_or(usize::MAX))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "seconds for people")]
fn whole(seconds: f64) -> u64 {
    seconds.max(0.0).round() as u64
}
