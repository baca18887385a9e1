//! Two parts side by side, for people.

use super::part::Part;
use super::tally::Tally;
use crate::terminal::{Column, Table, milliseconds, thousands};

/// The columns of one part, and how wide they are.
const COLUMNS: [&str; 4] = ["requests", "rejected", "p50", "p99"];
const WIDTH: usize = 8;

/// One side of a table: a title and the part under it.
pub(crate) type Side<'a> = (&'static str, &'a Part);

/// A table with a line for each tenant; many greedy ones share a line.
pub(crate) fn table((left_title, left): Side<'_>, (right_title, right): Side<'_>) -> String {
    let columns = || COLUMNS.map(|title| Column::right(title).at_least(WIDTH));
    let mut table = Table::new([Column::left("tenant").at_least(10)].into_iter().chain(columns()).chain(columns()));
    let (first, second) = (1, 1 + COLUMNS.len());
    table.span(first, COLUMNS.len(), left_title);
    table.span(second, COLUMNS.len(), right_title);
    table.line_before(second);
    table.ruler();
    for ((name, left), (_, right)) in rows(left).into_iter().zip(rows(right)) {
        table.row([name].into_iter().chain(cells(&left)).chain(cells(&right)));
    }
    table.render()
}

fn rows(part: &Part) -> Vec<(String, Tally)> {
    let (polite, greedy): (Vec<_>, Vec<_>) = part.tenants.iter().partition(|(tenant, _)| tenant.is_polite());
    let last = match greedy.as_slice() {
        [(one, _)] => one.name.to_owned(),
        many => format!("{} greedy", many.len()),
    };
    let polite = polite.into_iter().map(|(tenant, tally)| (tenant.name.to_owned(), tally.clone()));
    polite.chain([(last, part.greedy())]).collect()
}

fn cells(tally: &Tally) -> [String; 4] {
    let [p50, p99] = [50, 99].map(|percent| milliseconds(tally.percentile(percent)));
    [thousands(tally.requests()), thousands(tally.rejected), p50, p99]
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::demo::tally::Ending;
    use crate::demo::tenant::{self, Tenant};

    fn part(tenants: Vec<Tenant>, latency_ms: u64, rejected: usize) -> Part {
        let tally = || {
            let mut tally = Tally::default();
            (0..rejected).for_each(|_| tally.add(Ending::Rejected, Duration::ZERO));
            (0..100).for_each(|_| tally.add(Ending::Served, Duration::from_millis(latency_ms)));
            tally
        };
        Part { tenants: tenants.into_iter().map(|tenant| (tenant, tally())).collect(), took: Duration::from_secs(10) }
    }

    #[test]
    fn two_parts_stand_side_by_side() {
        let [without, with] = [(1200, 0), (30, 12_345)].map(|(ms, rejected)| part(tenant::one_greedy(), ms, rejected));
        insta::assert_snapshot!(table(("without Evenkeel", &without), ("with Evenkeel", &with)));
    }

    #[test]
    fn many_greedy_tenants_share_a_line() {
        let [left, right] = [(800, 0), (30, 1)].map(|(ms, rejected)| part(tenant::many_greedy(), ms, rejected));
        insta::assert_snapshot!(table(("with Kubernetes' queues", &left), ("with Evenkeel", &right)));
    }
}
