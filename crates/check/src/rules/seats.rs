//! Seats and queues: `hand-too-wide`, `zero-seats`, `few-seats`, `reject-jail`, `bufferbloat`, `many-queues`, `lends-everything` and
//! `zero-shares-lost`.

use evenkeel_api::v1::{
    CONCURRENCY_SHARES_DEFAULT, LENDABLE_PERCENT_DEFAULT, LimitResponseType, LimitedPriorityLevelConfiguration,
    PriorityLevelConfiguration,
};
use evenkeel_api::{Preset, Version, annotations};
use evenkeel_engine::borrowing::SeatDivision;
use evenkeel_engine::controller::{SeatPlan, TooFewSeats};
use evenkeel_engine::limits::{LevelLimits, shares};
use evenkeel_engine::work::level_cap;

use crate::Borrowing;
use crate::analysis::{Analysis, Output};
use crate::finding::{Finding, Located};
use crate::rule::Rule;
use crate::rules::flows::{flow_count, is_per_flow, queues};

/// Queue sets keep a table of so many queues, and an index of those in use beyond.
const QUEUES_MAX: i32 = 4096;

/// A level with the limits that it would have.
struct CheckedLevel<'a> {
    analysis: &'a Analysis<'a>,
    located: &'a Located<'a>,
    object: &'a PriorityLevelConfiguration,
    limited: &'a LimitedPriorityLevelConfiguration,
    limits: LevelLimits,
    /// Whether there are fewer seats than levels that need one: a server does not start.
    too_few: Option<&'a TooFewSeats>,
}

pub(crate) fn run(analysis: &Analysis<'_>, output: &mut Output) {
    let limits = limits(analysis);
    // Only where seats are divided exactly: in Kubernetes every share is rounded up.
    let too_few = plan(analysis).check_seats(i64::from(analysis.assumptions.seats)).err();
    let too_few = too_few.filter(|_| !analysis.assumptions.preset.is_kubernetes());
    for ((located, object), limits) in analysis.levels.iter().zip(limits) {
        let Some(limited) = &object.spec.limited else { continue };
        let level = CheckedLevel { analysis, located, object, limited, limits, too_few: too_few.as_ref() };
        let findings = [
            level.zero_seats(),
            level.few_seats(),
            level.hand_too_wide(),
            level.reject_jail(),
            level.bufferbloat(),
            level.many_queues(),
            level.lends_everything(),
            level.zero_shares_lost(),
        ];
        findings.into_iter().flatten().for_each(|finding| output.accuse(analysis, located, finding));
    }
}

/// The limits of the levels of the analysis, in their order: those that a server of the preset would give them.
pub(crate) fn limits(analysis: &Analysis<'_>) -> Vec<LevelLimits> {
    let division = SeatDivision::from(analysis.assumptions.preset);
    let by_name = plan(analysis).limits(&division, i64::from(analysis.assumptions.seats));
    analysis.levels.iter().map(|(_, level)| by_name.get(level.name()).copied().unwrap_or_default()).collect()
}

fn plan<'a>(analysis: &Analysis<'a>) -> SeatPlan<'a> {
    let levels = analysis.levels.iter().map(|(_, level)| *level);
    SeatPlan::new(levels, analysis.view.configuration.schemas.iter().copied())
}

/// The nominal seats of a level, if it is among those of the analysis.
pub(crate) fn nominal(analysis: &Analysis<'_>, level: &str) -> Option<i64> {
    let limits = limits(analysis);
    analysis.levels.iter().zip(limits).find(|((_, own), _)| own.name() == level).map(|(_, limits)| limits.nominal)
}

/// The most seats that a level can have, if it is limited and among those of the analysis.
pub(crate) fn seats_max(analysis: &Analysis<'_>, level: &str) -> Option<i64> {
    let limits = limits(analysis);
    let ((_, object), limits) = analysis.levels.iter().zip(limits).find(|((_, own), _)| own.name() == level)?;
    object.spec.limited.as_ref()?;
    Some(limits.max.min(analysis.assumptions.seats.into()))
}

// === impl CheckedLevel ===

impl CheckedLevel<'_> {
    fn finding(&self, rule: Rule, field: &str, message: String, help: &str) -> Finding {
        Finding::new(rule, self.located, &format!("spec.limited{field}"), message, help)
    }

    fn shares_field(&self) -> &'static str {
        match self.located.version {
            Version::V1 | Version::V1beta3 => ".nominalConcurrencyShares",
            Version::V1beta2 | Version::V1beta1 => ".assuredConcurrencyShares",
        }
    }

    fn lendable_percent(&self) -> i32 {
        self.limited.lendable_percent.unwrap_or(LENDABLE_PERCENT_DEFAULT)
    }

    fn seats(&self) -> u32 {
        self.analysis.assumptions.seats
    }

    fn zero_seats(&self) -> Option<Finding> {
        if shares(&self.object.spec) == 0 {
            return None;
        }
        let seats = self.seats();
        if let Some(too_few) = self.too_few.filter(|_| self.limits.nominal == 0) {
            let message = format!("{too_few}, and this one gets none; the server does not start");
            let help = "give the server more seats (`concurrency`; here `--seats`), or remove levels";
            return Some(self.finding(Rule::ZeroSeats, self.shares_field(), message, help));
        }
        if self.limits.nominal == 0 {
            let message = format!("of {seats} seats, the level gets none: its shares round to 0");
            let help = "raise nominalConcurrencyShares, or set --seats to the number of seats of your server";
            return Some(self.finding(Rule::ZeroSeats, self.shares_field(), message, help));
        }
        let lendable = self.lendable_percent();
        if self.limits.min == 0 && lendable < 100 {
            let nominal = self.limits.nominal;
            let message = format!(
                "of {seats} seats, the level has {nominal} and lends {lendable} %, which leaves it no guaranteed seat"
            );
            let help = "raise nominalConcurrencyShares or lower lendablePercent";
            return Some(self.finding(Rule::ZeroSeats, ".lendablePercent", message, help));
        }
        None
    }

    /// The seats of the widest request in this level. A kube-apiserver holds its estimates within a part of a level with queues (WE-4).
    fn widest(&self) -> i64 {
        let widest = self.analysis.assumptions.widest;
        let is_capped = self.analysis.assumptions.preset == Preset::Kubernetes;
        match queues(self.object).filter(|_| is_capped) {
            Some(queuing) => i64::from(widest.min(level_cap(self.limits.nominal, queuing.hand_size))),
            None => i64::from(widest),
        }
    }

    fn few_seats(&self) -> Option<Finding> {
        let (nominal, widest) = (self.limits.nominal, self.widest());
        let needed = widest.max(2);
        if nominal == 0 || nominal >= needed {
            return None;
        }
        let message = if nominal < widest {
            format!("of {} seats, the level has {nominal}, and the widest request takes {widest}", self.seats())
        } else {
            format!("of {} seats, the level has {nominal}: one slow request blocks it", self.seats())
        };
        let help = "raise nominalConcurrencyShares, or set --seats and --widest to the values of your server";
        Some(self.finding(Rule::FewSeats, self.shares_field(), message, help))
    }

    fn hand_too_wide(&self) -> Option<Finding> {
        let queuing = queues(self.object).filter(|_| !is_per_flow(self.object))?;
        let (hand, widest) = (i64::from(queuing.hand_size), self.widest());
        // A flow without others takes nothing from anybody.
        let is_alone = flow_count(self.analysis, self.object.name()).is_some_and(|count| count < 2);
        if self.limits.nominal == 0 || hand * widest < self.limits.nominal || is_alone {
            return None;
        }
        let seats = |number: i64| if number == 1 { "1 seat".to_owned() } else { format!("{number} seats") };
        let message = format!(
            "one flow can hold all {} of the level: it has a request in each of its {hand} queues, and the widest takes {}",
            seats(self.limits.nominal),
            seats(widest)
        );
        let help = "lower handSize, raise nominalConcurrencyShares, or use one queue for each flow (`evenkeel.dev/queuing: per-flow`)";
        Some(self.finding(Rule::HandTooWide, ".limitResponse.queuing.handSize", message, help))
    }

    fn reject_jail(&self) -> Option<Finding> {
        let assumptions = self.analysis.assumptions;
        // Where seats are divided exactly, a level without seats is closed.
        let lets_through = assumptions.preset == Preset::Kubernetes && assumptions.borrowing == Borrowing::Periodic;
        let is_jail =
            self.limited.limit_response.response == LimitResponseType::Reject && shares(&self.object.spec) == 0;
        if !is_jail || !lets_through {
            return None;
        }
        let message = "the level has no seats, but still lets one request through at a time".to_owned();
        let help = "use limitResponse `Queue` with a short queue to stop everything, or give the level a share";
        Some(self.finding(Rule::RejectJail, ".limitResponse", message, help))
    }

    fn bufferbloat(&self) -> Option<Finding> {
        let queuing = queues(self.object)?;
        let waiting = u64::try_from(queuing.queues).ok()? * u64::try_from(queuing.queue_length_limit).ok()?;
        let nominal = u64::try_from(self.limits.nominal).ok().filter(|nominal| *nominal > 0)?;
        let assumptions = self.analysis.assumptions;
        let wait_limit = annotations::wait_limit(&self.object.metadata.annotations).unwrap_or(assumptions.wait_limit);
        let drain_ns = u128::from(waiting) * assumptions.service_time.as_nanos() / u128::from(nominal);
        if drain_ns <= wait_limit.as_nanos() {
            return None;
        }
        let tenths = drain_ns / 100_000_000;
        let message = format!(
            "when all queues are full, {waiting} requests wait, and {nominal} seats take {}.{} s for them: most wait until they time \
             out after {} s",
            tenths / 10,
            tenths % 10,
            wait_limit.as_secs_f64()
        );
        let help = "use fewer or shorter queues, so that clients are told at once, or check with the figures of the server \
                    (`--service-time`, `--wait-limit`, `--seats`)";
        Some(self.finding(Rule::Bufferbloat, ".limitResponse.queuing", message, help))
    }

    fn many_queues(&self) -> Option<Finding> {
        let queues = queues(self.object).filter(|_| !is_per_flow(self.object))?.queues;
        if queues <= QUEUES_MAX {
            return None;
        }
        let message = format!(
            "the level has {queues} queues: more than {QUEUES_MAX} make decisions slower and dumps long, and separate flows no better"
        );
        let help = "use some hundred queues with a handSize of 6 to 8, or one queue for each flow (`evenkeel.dev/queuing: per-flow`)";
        Some(self.finding(Rule::ManyQueues, ".limitResponse.queuing.queues", message, help))
    }

    /// The two oldest versions cannot tell zero shares from absent ones (API-63).
    fn zero_shares_lost(&self) -> Option<Finding> {
        if shares(&self.object.spec) != 0 {
            return None;
        }
        let message = format!(
            "the level has zero shares: a client that reads it and writes it back as {} or {} gives it {CONCURRENCY_SHARES_DEFAULT}",
            Version::V1beta1,
            Version::V1beta2
        );
        let help = "see that no client uses these versions, as `kubectl edit prioritylevelconfigurations.v1beta2.flowcontrol.apiserver.k8s.io` does";
        Some(self.finding(Rule::ZeroSharesLost, self.shares_field(), message, help))
    }

    fn lends_everything(&self) -> Option<Finding> {
        let is_periodic = self.analysis.assumptions.borrowing == Borrowing::Periodic;
        if !is_periodic || self.lendable_percent() < 100 || shares(&self.object.spec) == 0 {
            return None;
        }
        let message =
            "the level lends all its seats: after an idle period it starts with none until seats are divided again"
                .to_owned();
        let help = "lower lendablePercent, or use immediate borrowing (`--borrowing immediate`)";
        Some(self.finding(Rule::LendsEverything, ".lendablePercent", message, help))
    }
}
