//! `ShadowReport`: what requests would have got under the shadow's configuration, beside what they got.

use serde::{Deserialize, Serialize};

use evenkeel_engine::time::MILLISECOND;

use super::figures::{Counts, Outcomes};
use crate::control::canary::CanaryState;

/// What a shadow has seen so far. Times are in milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ShadowReport {
    /// The most important things, in a sentence or two.
    pub summary: String,
    /// What the figures cannot tell.
    pub caveat: String,
    /// Since when requests are counted, as in RFC 3339.
    pub since: String,
    /// For how many seconds requests have been counted.
    pub seconds: f64,
    /// How many seats the shadow has.
    pub seats: i64,
    /// How many requests were decided about.
    pub requests: u64,
    /// How many requests were not decided about: the shadow was too slow, or there were too many at once.
    pub dropped: u64,
    /// In how many seconds requests were dropped in this way.
    pub dropped_seconds: u64,
    /// Requests that run or wait, which are decided about when they have ended.
    pub pending: u64,
    /// The requests whose level is another one.
    pub moved: Vec<Moved>,
    /// All requests.
    pub totals: ShadowFigures,
    /// The heaviest flows; those first for which more changes.
    pub flows: Vec<ShadowFlow>,
    /// How many requests belonged to other flows.
    pub requests_of_other_flows: u64,
    /// The state of the canary, or of the last one, if there is or was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<CanaryState>,
}

/// Requests that would have been in another level.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Moved {
    /// The level that they were in.
    pub from: String,
    /// The level that they would have been in.
    pub to: String,
    /// How many.
    pub requests: u64,
}

/// A flow, in reality and in the shadow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ShadowFlow {
    /// Its flow schema, in reality.
    pub flow_schema: String,
    /// What tells it from the others of its schema.
    pub flow: String,
    /// Its levels.
    pub level: Sides<String>,
    /// How many requests it had.
    pub requests: u64,
    /// What became of them.
    #[serde(flatten)]
    pub figures: ShadowFigures,
}

/// What became of requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ShadowFigures {
    /// How many were rejected.
    pub rejected: Sides<u64>,
    /// How long those waited that started.
    pub wait: Sides<ShadowWait>,
}

/// A value for either side.
///
/// Not `#[non_exhaustive]`: there are two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sides<T> {
    /// The value in reality.
    pub real: T,
    /// The value in the shadow.
    pub shadow: T,
}

/// How long requests waited, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ShadowWait {
    /// Half of them waited no longer.
    pub p50: f64,
    /// One of a hundred waited longer.
    pub p99: f64,
    /// How many they were.
    pub samples: u64,
}

/// All requests together, for metrics.
#[cfg(feature = "metrics")]
#[derive(Debug)]
pub(crate) struct ShadowTotals {
    pub(crate) requests: u64,
    pub(crate) dropped: u64,
    pub(crate) rejected: Sides<u64>,
    pub(crate) wait: Sides<ShadowWait>,
    /// Those first between which most requests would move.
    pub(crate) moved: Vec<Moved>,
}

/// SH-4.
pub(crate) const CAVEAT: &str = "Service times are those of reality: a configuration that lets more requests in may make the service slower than \
                                 shown here.";

/// A wait is longer only if it is by more than this part, and by more than that many milliseconds.
const LONGER_BY: f64 = 0.1;
const LONGER_BY_MS: f64 = 1.0;
/// The share of rejected requests has to rise by this much before it counts as more.
const MORE_REJECTED: f64 = 0.01;
/// So many flows are named in the summary.
const NAMED_MAX: usize = 3;

/// What changes for a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    MoreRejected,
    LongerWait,
    None,
    ShorterWait,
    FewerRejected,
}

// === impl ShadowReport ===

impl ShadowReport {
    /// Puts the flows first for which most changes, and says what that is.
    pub(crate) fn summarized(mut self) -> Self {
        self.flows.sort_by(|one, other| other.weight().total_cmp(&one.weight()).then(one.flow.cmp(&other.flow)));
        self.summary = self.summary();
        self
    }

    fn summary(&self) -> String {
        if self.requests == 0 {
            return "No request has been decided about yet.".to_owned();
        }
        let of = |wanted: &[Change]| -> Vec<&ShadowFlow> {
            self.flows.iter().filter(|flow| wanted.contains(&flow.figures.change(flow.requests))).collect()
        };
        let mut said = Vec::new();
        let rejected = of(&[Change::MoreRejected]);
        let longer = of(&[Change::LongerWait]);
        let better = of(&[Change::ShorterWait, Change::FewerRejected]);
        if !rejected.is_empty() {
            let detail = |flow: &ShadowFlow| {
                let Sides { real, shadow } = flow.figures.rejected;
                format!("{shadow} rejected instead of {real}")
            };
            said.push(sentence(&rejected, "have more requests rejected", detail));
        }
        if !longer.is_empty() {
            let detail = |flow: &ShadowFlow| {
                let Sides { real, shadow } = flow.figures.wait;
                format!("p99 {} instead of {}", shown_ms(shadow.p99), shown_ms(real.p99))
            };
            said.push(sentence(&longer, "wait longer", detail));
        }
        let mut text = if said.is_empty() {
            format!(
                "Under the new configuration no flow would wait longer or have more requests rejected ({} requests).",
                self.requests
            )
        } else {
            format!("Under the new configuration {}.", said.join("; "))
        };
        if !better.is_empty() {
            let few = if better.len() == 1 { "flow" } else { "flows" };
            text += &format!(" {} {few} would wait less or have fewer requests rejected.", better.len());
        }
        if self.dropped > 0 {
            text += &format!(
                " The shadow was too slow in {} of {:.0} seconds: {} requests are missing in the figures.",
                self.dropped_seconds, self.seconds, self.dropped
            );
        }
        text
    }
}

/// `3 flows would wait longer: a (p99 …), b (…), …`
fn sentence(flows: &[&ShadowFlow], what: &str, detail: impl Fn(&ShadowFlow) -> String) -> String {
    let named = flows.iter().take(NAMED_MAX).map(|flow| format!("{} ({})", flow.name(), detail(flow)));
    let named: Vec<String> = named.collect();
    let more = if flows.len() > NAMED_MAX { ", …" } else { "" };
    let noun = if flows.len() == 1 { "flow" } else { "flows" };
    format!("{} {noun} would {what}: {}{more}", flows.len(), named.join(", "))
}

fn shown_ms(ms: f64) -> String {
    if ms >= 10.0 { format!("{ms:.0} ms") } else { format!("{ms:.1} ms") }
}

// === impl ShadowFlow ===

impl ShadowFlow {
    /// What people call it.
    pub fn name(&self) -> &str {
        if self.flow.is_empty() { &self.flow_schema } else { &self.flow }
    }

    /// How much changes for it, in requests times seconds.
    #[expect(clippy::cast_precision_loss, reason = "an order")]
    fn weight(&self) -> f64 {
        let Sides { real, shadow } = self.figures.wait;
        let waits = (shadow.p99 - real.p99).abs() / 1000.0 * self.requests as f64;
        let rejections = self.figures.rejected.real.abs_diff(self.figures.rejected.shadow) as f64;
        waits + rejections * 100.0
    }
}

// === impl ShadowFigures ===

impl ShadowFigures {
    pub(crate) fn of(counts: &Counts) -> Self {
        let (real, shadow) = (&counts.real, &counts.shadow);
        Self {
            rejected: Sides { real: real.rejected, shadow: shadow.rejected },
            wait: Sides { real: ShadowWait::of(real), shadow: ShadowWait::of(shadow) },
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a comparison of parts")]
    fn change(&self, requests: u64) -> Change {
        let more = (self.rejected.shadow as f64 - self.rejected.real as f64) / requests.max(1) as f64;
        let Sides { real, shadow } = self.wait;
        let is_longer = |one: f64, than: f64| one > than * (1.0 + LONGER_BY) && one > than + LONGER_BY_MS;
        if more > MORE_REJECTED {
            Change::MoreRejected
        } else if is_longer(shadow.p99, real.p99) {
            Change::LongerWait
        } else if more < -MORE_REJECTED {
            Change::FewerRejected
        } else if is_longer(real.p99, shadow.p99) {
            Change::ShorterWait
        } else {
            Change::None
        }
    }
}

// === impl ShadowWait ===

impl ShadowWait {
    fn of(outcomes: &Outcomes) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "milliseconds for people")]
        let part = |part| outcomes.wait.percentile(part) as f64 / MILLISECOND as f64;
        Self { p50: part(0.5), p99: part(0.99), samples: outcomes.wait.count() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(name: &str, rejected: [u64; 2], p99: [f64; 2]) -> ShadowFlow {
        let wait = |p99| ShadowWait { p50: 0.0, p99, samples: 1000 };
        ShadowFlow {
            flow_schema: "tenants".to_owned(),
            flow: name.to_owned(),
            level: Sides { real: "one".to_owned(), shadow: "two".to_owned() },
            requests: 1000,
            figures: ShadowFigures {
                rejected: Sides { real: rejected[0], shadow: rejected[1] },
                wait: Sides { real: wait(p99[0]), shadow: wait(p99[1]) },
            },
        }
    }

    fn report(flows: Vec<ShadowFlow>, dropped: u64) -> ShadowReport {
        let totals = flow("", [0, 0], [0.0, 0.0]).figures;
        ShadowReport {
            summary: String::new(),
            caveat: CAVEAT.to_owned(),
            since: "2026-11-18T10:00:00Z".to_owned(),
            seconds: 60.0,
            seats: 10,
            requests: 1000 * flows.len() as u64,
            dropped,
            dropped_seconds: dropped / 100,
            pending: 0,
            moved: Vec::new(),
            totals,
            flows,
            requests_of_other_flows: 0,
            canary: None,
        }
        .summarized()
    }

    #[test]
    fn sh_3_one_sentence_says_for_whom_it_gets_worse() {
        let flows = vec![
            flow("alice", [0, 0], [3.0, 3.2]),
            flow("bob", [0, 0], [3.0, 120.0]),
            flow("carol", [0, 300], [3.0, 3.0]),
            flow("dave", [0, 0], [80.0, 4.0]),
        ];
        let report = report(flows, 0);
        assert_eq!(
            report.summary,
            "Under the new configuration 1 flow would have more requests rejected: carol (300 rejected instead of 0); 1 \
             flow would wait longer: bob (p99 120 ms instead of 3.0 ms). 1 flow would wait less or have fewer requests rejected."
        );
        assert_eq!(report.flows.iter().map(ShadowFlow::name).collect::<Vec<_>>(), ["carol", "bob", "dave", "alice"]);
    }

    #[test]
    fn sh_2_the_summary_says_what_is_missing() {
        let report = report(vec![flow("alice", [0, 0], [3.0, 3.0])], 200);
        assert_eq!(
            report.summary,
            "Under the new configuration no flow would wait longer or have more requests rejected (1000 requests). The \
             shadow was too slow in 2 of 60 seconds: 200 requests are missing in the figures."
        );
        assert!(self::report(Vec::new(), 0).summary.contains("No request"));
    }

    #[test]
    fn the_fields_are_those_of_the_specification() {
        let json = serde_json::to_value(report(vec![flow("alice", [1, 2], [3.0, 4.0])], 0)).unwrap();
        let flow = &json["flows"][0];
        assert_eq!(flow["flowSchema"], "tenants");
        assert_eq!(flow["level"], serde_json::json!({"real": "one", "shadow": "two"}));
        assert_eq!(flow["rejected"], serde_json::json!({"real": 1, "shadow": 2}));
        assert_eq!(flow["wait"]["shadow"]["p99"], 4.0);
        assert!(json["totals"]["wait"]["real"]["p50"].is_number());
        let read: ShadowReport = serde_json::from_value(json.clone()).unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), json);
    }
}
