//! Both halves side by side, for people.

use std::fmt::Write;
use std::time::Duration;

use super::half::Half;
use super::tally::Tally;

/// The columns of one half.
const COLUMNS: &str = "requests  rejected       p50       p99";

/// A table with a line for each tenant.
pub(crate) fn table(without: &Half, with: &Half) -> String {
    const WIDTH: usize = COLUMNS.len();
    let mut table = format!("{:<10}  {:>WIDTH$}  |  {:>WIDTH$}\n", "", "without Evenkeel", "with Evenkeel");
    table += &format!("{:<10}  {COLUMNS}  |  {COLUMNS}\n", "tenant");
    table += &format!("{}+{}\n", "-".repeat(WIDTH + 14), "-".repeat(WIDTH + 2));
    for ((tenant, before), (_, after)) in without.tenants.iter().zip(&with.tenants) {
        // Writing to a text cannot fail.
        let _ = writeln!(table, "{:<10}  {}  |  {}", tenant.name, cells(before), cells(after));
    }
    table
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
    use crate::demo::tenant;

    fn half(latency_ms: u64, rejected: usize) -> Half {
        let tally = || {
            let mut tally = Tally::default();
            (0..rejected).for_each(|_| tally.add(Ending::Rejected, Duration::ZERO));
            (0..100).for_each(|_| tally.add(Ending::Served, Duration::from_millis(latency_ms)));
            tally
        };
        let tenants = tenant::all().into_iter().map(|tenant| (tenant, tally())).collect();
        Half { tenants, took: Duration::from_secs(10) }
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!([0, 999, 1000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(milliseconds(Some(Duration::from_micros(1500))), "2 ms");
        assert_eq!(milliseconds(None), "-");
    }

    #[test]
    fn both_halves_stand_side_by_side() {
        insta::assert_snapshot!(table(&half(1200, 0), &half(30, 12_345)));
    }
}
