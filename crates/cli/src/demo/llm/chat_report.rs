//! `ChatReport`: the result of the comparison with language models, for people and for programs.

use std::time::Duration;

use serde::Serialize;

use super::chat_load::{FirstTokens, JOB};
use crate::demo::{WITH, WITHOUT};
use crate::terminal::{Column, Table, milliseconds, thousands};

/// Raised when a field changes its name or its meaning. New fields may come at any time.
const FORMAT_VERSION: u32 = 1;

/// The report that `evenkeel demo --llm -o json` prints.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChatReport {
    format_version: u32,
    seconds_per_part: u64,
    without_evenkeel: ChatPart,
    with_evenkeel: ChatPart,
    summary: String,
}

/// All tenants of one part.
#[derive(Debug, Serialize)]
pub(super) struct ChatPart {
    pub(super) tenants: Vec<TenantFigures>,
}

/// The figures of a tenant.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TenantFigures {
    name: &'static str,
    requests: usize,
    /// Requests without a first token at the end of the part. They count with the time that they had waited.
    unanswered: usize,
    /// Requests that were refused.
    failed: usize,
    first_token_p50_ms: Option<f64>,
    first_token_p99_ms: Option<f64>,
    /// Of prompts and responses, as the server has counted them.
    tokens: u64,
}

// === impl ChatReport ===

impl ChatReport {
    pub(super) fn new(length: Duration, without_evenkeel: ChatPart, with_evenkeel: ChatPart) -> Self {
        let summary = summary(&without_evenkeel, &with_evenkeel);
        let seconds_per_part = length.as_secs();
        Self { format_version: FORMAT_VERSION, seconds_per_part, without_evenkeel, with_evenkeel, summary }
    }

    /// Both parts side by side, and what they mean.
    pub(crate) fn text(&self) -> String {
        let columns = || ["first p50", "first p99", "tokens"].map(|title| Column::right(title).at_least(9));
        let mut table = Table::new([Column::left("tenant").at_least(8)].into_iter().chain(columns()).chain(columns()));
        table.span(1, 3, WITHOUT);
        table.span(4, 3, WITH);
        table.line_before(4);
        table.ruler();
        for (without, with) in self.without_evenkeel.tenants.iter().zip(&self.with_evenkeel.tenants) {
            table.row([without.name.to_owned()].into_iter().chain(without.cells()).chain(with.cells()));
        }
        format!("{}\n{}", table.render(), self.summary)
    }
}

/// The result of the table, in words.
fn summary(without: &ChatPart, with: &ChatPart) -> String {
    let [before, after] =
        [without, with].map(|part| milliseconds(part.longest_wait_of_people().map(Duration::from_secs_f64)));
    let unanswered: usize = without.people().map(|tenant| tenant.unanswered).sum();
    let requests: usize = without.people().map(|tenant| tenant.requests).sum();
    let of_job =
        |part: &ChatPart| part.tenants.iter().find(|tenant| tenant.name == JOB.name).map_or(0, |job| job.tokens);
    let tokens = |part| thousands(usize::try_from(of_job(part)).unwrap_or(usize::MAX));
    format!(
        "A job keeps 200 long requests at a server that generates for 32 at a time. Without Evenkeel, people wait behind them for {before} until \
         their first word (p99), and {unanswered} of their {requests} requests had none when the part ended. With `preset: llm`, they wait for {after}, \
         and the job still gets {} tokens instead of {}.",
        tokens(with),
        tokens(without),
    )
}

// === impl ChatPart ===

impl ChatPart {
    fn people(&self) -> impl Iterator<Item = &TenantFigures> {
        self.tenants.iter().filter(|tenant| tenant.name != JOB.name)
    }

    /// The p99 of whoever of the people waited longest, in seconds.
    fn longest_wait_of_people(&self) -> Option<f64> {
        self.people().filter_map(|tenant| tenant.first_token_p99_ms).max_by(f64::total_cmp).map(|wait| wait / 1e3)
    }
}

// === impl TenantFigures ===

impl TenantFigures {
    pub(super) fn new(name: &'static str, first_tokens: &FirstTokens, tokens: u64) -> Self {
        let waits = &first_tokens.waits;
        let [first_token_p50_ms, first_token_p99_ms] =
            [50, 99].map(|percent| waits.percentile(percent).map(|wait| (wait.as_secs_f64() * 1e4).round() / 10.0));
        let (requests, unanswered, failed) = (waits.requests(), first_tokens.unanswered, waits.failed);
        Self { name, requests, unanswered, failed, first_token_p50_ms, first_token_p99_ms, tokens }
    }

    fn cells(&self) -> [String; 3] {
        let [p50, p99] = [self.first_token_p50_ms, self.first_token_p99_ms]
            .map(|wait| milliseconds(wait.map(|wait| Duration::from_secs_f64(wait / 1e3))));
        [p50, p99, thousands(usize::try_from(self.tokens).unwrap_or(usize::MAX))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::tally::Ending;

    fn part(wait_ms: u64, unanswered: usize) -> ChatPart {
        let tenant = |name, wait_ms, tokens| {
            let mut first_tokens = FirstTokens { unanswered, ..FirstTokens::default() };
            (0..20).for_each(|_| first_tokens.waits.add(Ending::Served, Duration::from_millis(wait_ms)));
            TenantFigures::new(name, &first_tokens, tokens)
        };
        ChatPart { tenants: vec![tenant("ann", wait_ms, 2_800), tenant(JOB.name, 2 * wait_ms, 40_000)] }
    }

    #[test]
    fn both_parts_stand_side_by_side() {
        let report = ChatReport::new(Duration::from_secs(15), part(9_000, 12), part(80, 0));
        let text = report.text();
        let rows: Vec<&str> = text.lines().map(str::trim).collect();
        assert!(rows.iter().any(|row| row.starts_with("ann") && row.ends_with("2,800")), "{text}");
        assert!(rows.iter().any(|row| row.contains("9,000 ms") && row.contains("80 ms")), "{text}");
        assert!(text.contains("for 9,000 ms until their first word (p99), and 12 of their 20 requests"), "{text}");
        assert!(text.lines().filter(|line| line.contains('|')).all(|line| line.len() <= 100), "{text}");
    }
}
