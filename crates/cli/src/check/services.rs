//! The seats of services: levels that have enough of the gateway's seats may have too few of a service's.

use evenkeel_check::{Assumptions, Finding, Located, Report, Rule, check_seats};

/// Findings about the levels with the seats of these services that were not found with the seats of the gateway.
pub(super) fn findings(
    services: &[(String, u32)],
    objects: &[Located<'_>],
    assumptions: &Assumptions,
    report: &Report,
) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for (name, seats) in services.iter().filter(|(_, seats)| *seats != assumptions.seats) {
        let assumptions = Assumptions { seats: *seats, ..assumptions.clone() };
        let is_new = |found: &Finding| {
            !report.findings.iter().any(|known| (known.rule, &known.object) == (found.rule, &found.object))
        };
        for mut found in check_seats(objects, &assumptions).findings.into_iter().filter(is_new) {
            found.message = format!("service {name:?}: {}", found.message);
            if matches!(found.rule, Rule::ZeroSeats | Rule::FewSeats) {
                found.help =
                    format!("give the service more seats (`services.{name}.concurrency`), or the level a larger share");
            }
            findings.push(found);
        }
    }
    findings
}
