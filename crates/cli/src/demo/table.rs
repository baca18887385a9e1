//! Two parts side by side, for people.

use std::fmt::Write;
use std::time::Duration;

use super::part::Part;
use super::tally::Tally;

/// The columns of one part.
const COLUMNS: &str = "requests  rejected       p50       p99";

/// One side of a table: a title and the part under it.
pub(crate) type Side<'a> = (&'static str, &'a Part);

/// A table with a line for each tenant; many greedy ones share a line.
pub(crate) fn table((left_title, left): Side<'_>, (right_title, right): Side<'_>) -> String {
    const WIDTH: usize = COLUMNS.len();
    let mut table = format!("{:<10}  {left_title:>WIDTH$}  |  {right_title:>WIDTH$}\n", "");
    table += &format!("{:<10}  {COLUMNS}  |  {COLUMNS}\n", "tenant");
    table += &format!("{}+{}\n", "-".repeat(WIDTH + 14), "-".repeat(WIDTH + 2));
    for ((name, left), (_, right)) in rows(left).into_iter().zip(rows(right)) {
        // Writing to a text cannot fail.
        let _ = writeln!(table, "{name:<10}  {}  |  {}", cells(&left), cells(&right));
    }
    table
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

fn cells(tally: &Tally) -> String {
    let [p50, p99] = [50, 99].map(|percent| milliseconds(tally.percentile(percent)));
    format!("{:>8}  {:>8}  {p50:>8}  {p99:>8}", thousands(tally.requests()), thousands(tally.rejected))
}

/// `1,234 ms`, or a dash if there is nothing to tell.
pub(crate) fn milliseconds(duration: Option<Duration>) -> String {
    let rounded = |duration: Duration| usize::try_from((duration.as_micros() + 500) / 1000).unwrap_or(usize::MAX);
    duration.map_or_else(|| "-".to_owned(), |duration| format!("{} ms", thousands(rounded(duration))))
}

/// A number as people read it: `12,345`.
fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
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
    fn numbers_are_grouped() {
        assert_eq!([0, 999, 1000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(milliseconds(Some(Duration::from_micros(1500))), "2 ms");
        assert_eq!(milliseconds(None), "-");
    }

    #[test]
    fn two_parts_stand_side_by_side() {
        let [without, with] = [(1200, 0), (30, 12_345)].map(|(ms, rejected)| part(tenant::one_greedy(), ms, rejected));
        insta::assert_snapshot!(table(("without Evenkeel", &without), ("with Evenkeel", &with)));
    }

    #[test]
    fn many_greedy_tenants_share_a_line() {
        let [left, right] = [(800, 0), (30, 1)].map(|(ms, rejected)| part(tenant::many_greedy(), ms, rejected));
        insta::assert_snapshot!(table(("as Kubernetes does it", &left), ("with Evenkeel", &right)));
    }
}
