//! The figures of all parts, for programs, and the sentences that say what they mean.

use std::time::Duration;

use serde::Serialize;

use super::part::{Part, Parts};
use super::service::{self, Abilities};
use super::tally::Tally;
use super::tenant::Tenant;
use super::unknown_capacity::{self, Course, Stretch};
use crate::terminal::milliseconds;

/// Raised when a field changes its name or its meaning. New fields may come at any time.
const FORMAT_VERSION: u32 = 1;

/// What `-o json` prints, field by field. Times are in milliseconds, and `null` where nothing was served.
pub(crate) const FIELDS: [(&str, &str); 32] = [
    ("formatVersion", "1; raised when a field changes its name or its meaning, not when one is added"),
    ("secondsPerHalf", "how long requests were sent in each part"),
    ("service.workers", "how many requests the sample service works on at a time"),
    ("service.workMs", "how long a request takes on average when the service has room"),
    ("service.slowdownMax", "how many times slower the service is at worst when too many requests are inside"),
    ("withoutEvenkeel, withEvenkeel", "the two parts with one greedy tenant, with the same fields in both"),
    ("….servedPerSecond", "how many requests the service served per second"),
    ("….politeP99Ms", "the p99 of all polite tenants together"),
    ("….slowestPoliteP99Ms", "the p99 of the polite tenant with the highest p99"),
    ("….tenants[].name", "the tenant"),
    ("….tenants[].greedy", "whether the tenant is greedy"),
    ("….tenants[].requests", "the requests that it has sent: the sum of the next three"),
    ("….tenants[].served", "those with a successful response"),
    ("….tenants[].rejected", "those rejected with 429 or 503"),
    ("….tenants[].failed", "those with no response, or with any other response"),
    ("….tenants[].p50Ms, p99Ms", "the p50 and p99 of the served requests"),
    ("summary", "the sentence under the first table"),
    ("manyGreedy.asKubernetes", "many greedy tenants, shuffle-sharded queues and periodic borrowing; fields as above"),
    ("manyGreedy.withEvenkeel", "the same load, a queue for each flow and immediate borrowing; fields as above"),
    ("manyGreedy.summary", "the sentence under the second table"),
    ("burst.requests", "how many requests arrive at once in a priority level that was idle"),
    ("burst.nominalSeats", "the seats that the level has of its own"),
    ("burst.asKubernetes, withEvenkeel", "how many of them start at once, with periodic and with immediate borrowing"),
    ("burst.summary", "the sentence about the burst"),
    ("unknownCapacity.service", "the service whose capacity nobody told; fields as those of `service`"),
    (
        "unknownCapacity.withoutLimit, withAuto",
        "without a limit, and with `concurrency: auto`; the same fields in both",
    ),
    ("….stretches[].untilMs", "when this stretch of time ended, from the start of the part"),
    ("….stretches[].served", "how many requests were served in it"),
    ("….stretches[].servedPerSecond", "the same, per second"),
    ("….stretches[].p50Ms, p99Ms", "the p50 and p99 of these requests"),
    ("….stretches[].limit", "the limit at the end of the stretch; `null` without a limit"),
    ("unknownCapacity.summary", "the sentences under the third table"),
];

/// The report that `-o json` prints.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DemoReport {
    format_version: u32,
    seconds_per_half: u64,
    service: ServiceFigures,
    without_evenkeel: PartFigures,
    with_evenkeel: PartFigures,
    summary: String,
    many_greedy: ManyGreedyFigures,
    burst: BurstFigures,
    unknown_capacity: UnknownCapacityFigures,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct UnknownCapacityFigures {
    service: ServiceFigures,
    without_limit: CourseFigures,
    with_auto: CourseFigures,
    summary: String,
}

#[derive(Debug, Serialize)]
struct CourseFigures {
    stretches: Vec<StretchFigures>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct StretchFigures {
    until_ms: f64,
    served: usize,
    served_per_second: f64,
    p50_ms: Option<f64>,
    p99_ms: Option<f64>,
    limit: Option<u32>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct BurstFigures {
    requests: u32,
    nominal_seats: i64,
    as_kubernetes: i64,
    with_evenkeel: i64,
    summary: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ManyGreedyFigures {
    as_kubernetes: PartFigures,
    with_evenkeel: PartFigures,
    summary: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ServiceFigures {
    workers: usize,
    work_ms: u64,
    slowdown_max: u32,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PartFigures {
    served_per_second: f64,
    polite_p99_ms: Option<f64>,
    slowest_polite_p99_ms: Option<f64>,
    tenants: Vec<TenantFigures>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct TenantFigures {
    name: &'static str,
    greedy: bool,
    requests: usize,
    served: usize,
    rejected: usize,
    failed: usize,
    p50_ms: Option<f64>,
    p99_ms: Option<f64>,
}

/// Stands in for a sentence if polite tenants were not served.
const NOTHING_SERVED: &str =
    "Some polite tenants got no response in one of the parts; something is wrong with this machine.";

/// The result of the parts with one greedy tenant, in one sentence.
pub(crate) fn summary(without: &Part, with: &Part) -> String {
    let (Some(before), Some(after)) = (without.polite().percentile(99), with.polite().percentile(99)) else {
        return NOTHING_SERVED.to_owned();
    };
    let times = before.as_secs_f64() / after.as_secs_f64().max(f64::EPSILON);
    let polite = with.polite();
    let rejected = match (polite.rejected, polite.failed) {
        (0, 0) => "none of their requests is rejected".to_owned(),
        (rejected, failed) => format!("{rejected} of their requests are rejected and {failed} fail"),
    };
    let work = with.served_per_second() / without.served_per_second().max(f64::EPSILON);
    format!(
        "With Evenkeel the polite tenants' p99 is {} instead of {} ({times:.0} times less), {rejected}, and the \
         service serves {work:.1} times as many requests.",
        milliseconds(Some(after)),
        milliseconds(Some(before)),
    )
}

/// The result of the parts with many greedy tenants.
pub(crate) fn summary_of_many(kubernetes: &Part, evenkeel: &Part) -> String {
    let (Some(shared), Some(own)) = (kubernetes.slowest_polite_p99(), evenkeel.slowest_polite_p99()) else {
        return NOTHING_SERVED.to_owned();
    };
    format!(
        "By default, Kubernetes gives each tenant 8 of 64 queues. Polite tenants share queues with greedy ones, and the slowest \
         polite tenant has a p99 of {}. Evenkeel gives each tenant its own queue: {}.",
        milliseconds(Some(shared)),
        milliseconds(Some(own)),
    )
}

// === impl DemoReport ===

impl DemoReport {
    pub(crate) fn new(parts: &Parts, length: Duration) -> Self {
        let Parts { without, with, many_as_kubernetes, many_with, burst, unknown } = parts;
        Self {
            format_version: FORMAT_VERSION,
            seconds_per_half: length.as_secs(),
            service: ServiceFigures::new(service::SAMPLE),
            without_evenkeel: PartFigures::new(without),
            with_evenkeel: PartFigures::new(with),
            summary: summary(without, with),
            many_greedy: ManyGreedyFigures {
                as_kubernetes: PartFigures::new(many_as_kubernetes),
                with_evenkeel: PartFigures::new(many_with),
                summary: summary_of_many(many_as_kubernetes, many_with),
            },
            burst: BurstFigures {
                requests: burst.requests,
                nominal_seats: burst.nominal,
                as_kubernetes: burst.as_kubernetes,
                with_evenkeel: burst.with_evenkeel,
                summary: burst.summary(),
            },
            unknown_capacity: UnknownCapacityFigures {
                service: ServiceFigures::new(unknown_capacity::SERVICE),
                without_limit: CourseFigures::new(&unknown.without),
                with_auto: CourseFigures::new(&unknown.with),
                summary: unknown.summary(),
            },
        }
    }
}

// === impl ServiceFigures ===

impl ServiceFigures {
    fn new(abilities: Abilities) -> Self {
        let Abilities { workers, work_ms, slowdown_max, .. } = abilities;
        Self { workers, work_ms, slowdown_max }
    }
}

// === impl CourseFigures ===

impl CourseFigures {
    fn new(course: &Course) -> Self {
        let figures = |stretch: &Stretch| StretchFigures {
            until_ms: in_milliseconds(stretch.until),
            served: stretch.served.served(),
            served_per_second: rounded(stretch.per_second()),
            p50_ms: stretch.served.percentile(50).map(in_milliseconds),
            p99_ms: stretch.served.percentile(99).map(in_milliseconds),
            limit: stretch.limit,
        };
        Self { stretches: course.stretches.iter().map(figures).collect() }
    }
}

// === impl PartFigures ===

impl PartFigures {
    fn new(part: &Part) -> Self {
        Self {
            served_per_second: rounded(part.served_per_second()),
            polite_p99_ms: part.polite().percentile(99).map(in_milliseconds),
            slowest_polite_p99_ms: part.slowest_polite_p99().map(in_milliseconds),
            tenants: part.tenants.iter().map(|(tenant, tally)| TenantFigures::new(*tenant, tally)).collect(),
        }
    }
}

// === impl TenantFigures ===

impl TenantFigures {
    fn new(tenant: Tenant, tally: &Tally) -> Self {
        Self {
            name: tenant.name,
            greedy: !tenant.is_polite(),
            requests: tally.requests(),
            served: tally.served(),
            rejected: tally.rejected,
            failed: tally.failed,
            p50_ms: tally.percentile(50).map(in_milliseconds),
            p99_ms: tally.percentile(99).map(in_milliseconds),
        }
    }
}

fn in_milliseconds(duration: Duration) -> f64 {
    rounded(duration.as_secs_f64() * 1000.0)
}

/// To three places: more would pretend to know more.
fn rounded(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}
