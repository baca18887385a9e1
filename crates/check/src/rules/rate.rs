//! `rate-unreachable`: rates that the seats of a level cannot serve, so that they never limit anybody (RL-1).

use evenkeel_api::annotations::{self, RateUnit};

use crate::analysis::{Analysis, Output};
use crate::finding::Finding;
use crate::rule::Rule;
use crate::rules::seats::seats_max;

pub(crate) fn run(analysis: &Analysis<'_>, output: &mut Output) {
    let assumptions = analysis.assumptions;
    let service_seconds = assumptions.service_time.as_secs_f64();
    for (located, schema) in &analysis.schemas {
        let noted = &schema.metadata.annotations;
        let rate = annotations::rate(noted).filter(|rate| rate.unit == RateUnit::Requests);
        let level = &schema.spec.priority_level_configuration.name;
        let Some((rate, seats)) = rate.zip(seats_max(analysis, level)) else { continue };
        let seats_each = annotations::seats(noted).unwrap_or(1).max(1);
        #[expect(clippy::cast_precision_loss, reason = "seats of a server")]
        let served = seats as f64 / f64::from(seats_each) / service_seconds;
        if seats == 0 || served >= rate.per_second() {
            continue;
        }
        let message = format!(
            "the rate {rate} is never reached: the level {level:?} can have {seats} of {} seats, which serve at most {served:.0} requests a \
             second that take {} ms each",
            assumptions.seats,
            assumptions.service_time.as_millis()
        );
        let help = "lower the rate or remove it, or set --seats and --service-time to the values of your server";
        let finding = Finding::new(Rule::RateUnreachable, located, "", message, help);
        output.accuse(analysis, located, finding.at(located.annotation_place(annotations::RATE)));
    }
}
