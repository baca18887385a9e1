//! `Flows`: the outcomes of each flow, as recorded and under each configuration.

use std::collections::HashMap;

use evenkeel_engine::WorkEstimate;
use evenkeel_engine::time::Nanos;
use evenkeel_sim::{End, Histogram, Outcome, Outcomes, REASONS, reason_index};

/// The most configurations that a replay compares.
pub(crate) const SIDES_MAX: usize = 2;

/// The flows of a replay.
#[derive(Debug, Default)]
pub(crate) struct Flows {
    rows: Vec<Flow>,
    numbers: HashMap<FlowKey, u32>,
    /// When the last request ended.
    ended: Nanos,
}

/// Requests that are of one flow under each configuration.
#[derive(Debug)]
#[non_exhaustive]
pub struct Flow {
    /// Its name under each configuration.
    pub names: Vec<FlowName>,
    /// Its requests.
    pub requests: u64,
    /// The recorded outcomes.
    pub recorded: Recorded,
    /// The outcomes under each configuration.
    pub replayed: Vec<Replayed>,
}

/// The name of a flow.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlowName {
    /// The flow schema.
    pub schema: Box<str>,
    /// The priority level.
    pub level: Box<str>,
    /// The flow distinguisher; `None` for the row of all flows without a row of their own.
    pub distinguisher: Option<Box<str>>,
}

/// The outcomes of a flow's requests, as the log has them.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Recorded {
    /// How many were rejected.
    pub rejected: u64,
    /// The waits that the log has.
    pub wait: Histogram,
}

/// The outcomes of a flow's requests under one configuration.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Replayed {
    /// How many did not start at once.
    pub waited: u64,
    /// How long they waited, those that started or waited as long as they could.
    pub wait: Histogram,
    /// How many were rejected, by the place of the reason in [`REASONS`].
    pub rejected: [u64; REASONS.len()],
    /// Seats times nanoseconds.
    pub seat_time: i128,
}

/// The class of a request under each configuration: the indexes of the schemas, and the hashes of the flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct FlowKey {
    pub(crate) schemas: [u32; SIDES_MAX],
    /// `None` for all flows without a row of their own.
    pub(crate) hashes: Option<[u64; SIDES_MAX]>,
}

/// The token that the simulator keeps with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) flow: u32,
    pub(crate) work: WorkEstimate,
}

/// Counts the outcomes of requests under one configuration.
pub(crate) struct Counter<'a> {
    pub(crate) flows: &'a mut Flows,
    pub(crate) side: usize,
}

/// This many flows get a row of their own. Histograms take most of the memory.
const FLOWS_MAX: usize = 2000;

// === impl Flows ===

impl Flows {
    /// The number of a flow. The names are made when the flow is new.
    pub(crate) fn number(&mut self, key: FlowKey, sides: usize, names: impl FnOnce() -> Vec<FlowName>) -> u32 {
        if let Some(number) = self.numbers.get(&key) {
            return *number;
        }
        let (key, names) = if self.rows.len() < FLOWS_MAX {
            (key, names())
        } else {
            let key = FlowKey { hashes: None, ..key };
            if let Some(number) = self.numbers.get(&key) {
                return *number;
            }
            (key, names().into_iter().map(|name| FlowName { distinguisher: None, ..name }).collect())
        };
        let number = u32::try_from(self.rows.len()).unwrap_or(u32::MAX);
        let replayed = std::iter::repeat_with(Replayed::default).take(sides).collect();
        self.rows.push(Flow { names, requests: 0, recorded: Recorded::default(), replayed });
        self.numbers.insert(key, number);
        number
    }

    pub(crate) fn row(&mut self, number: u32) -> &mut Flow {
        &mut self.rows[number as usize]
    }

    /// When the last request ended.
    pub(crate) fn ended(&self) -> Nanos {
        self.ended
    }

    pub(crate) fn into_rows(self) -> Vec<Flow> {
        self.rows
    }
}

// === impl Flow ===

impl Flow {
    /// The difference between the recording, or the first configuration, and the last, in nanoseconds of waiting. A rejected
    /// request counts as one that waited for the longest allowed time.
    pub(crate) fn difference(&self, wait_limit: Nanos) -> i128 {
        let cost = |wait: &Histogram, rejected: u64| {
            i128::from(wait.mean()) * i128::from(wait.count()) + i128::from(rejected) * i128::from(wait_limit)
        };
        let of_side = |side: &Replayed| cost(&side.wait, side.rejected_at_once());
        let before = match &self.replayed[..] {
            [before, _] => of_side(before),
            _ => cost(&self.recorded.wait, self.recorded.rejected),
        };
        let after = self.replayed.last().map_or(0, of_side);
        (after - before).abs()
    }
}

// === impl Replayed ===

impl Replayed {
    /// How many were rejected, for whatever reason.
    pub fn rejected_total(&self) -> u64 {
        self.rejected.iter().sum()
    }

    /// The requests that were rejected before their wait limit.
    fn rejected_at_once(&self) -> u64 {
        let timed_out = reason_index(evenkeel_engine::queue_set::Rejection::TimeOut);
        self.rejected_total() - self.rejected[timed_out]
    }

    /// Seats times seconds.
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    pub fn seat_seconds(&self) -> f64 {
        self.seat_time as f64 / 1e9
    }
}

// === impl Counter ===

impl Outcomes<Token> for Counter<'_> {
    fn waits(&mut self, _now: Nanos, token: &mut Token) {
        self.flows.row(token.flow).replayed[self.side].waited += 1;
    }

    fn ended(&mut self, outcome: Outcome<Token>) {
        let wait = outcome.wait();
        self.flows.ended = self.flows.ended.max(outcome.ended);
        let replayed = &mut self.flows.row(outcome.token.flow).replayed[self.side];
        match outcome.end {
            End::Completed { started, seats, lingers, .. } => {
                replayed.wait.record(wait);
                let work = outcome.token.work;
                // The level may have given the request fewer seats than were estimated, and learnt costs may ask for more.
                let is_learnt = seats > work.max_seats();
                let held = |wanted: u32| i128::from(if is_learnt { seats } else { wanted.min(seats) });
                let (initial, last) = (held(work.initial_seats), held(work.final_seats));
                replayed.seat_time += initial * i128::from(outcome.ended - started) + last * i128::from(lingers);
            }
            End::Rejected { reason, .. } => replayed.rejected[reason_index(reason)] += 1,
            End::TimedOut { .. } => {
                replayed.wait.record(wait);
                replayed.rejected[reason_index(evenkeel_engine::queue_set::Rejection::TimeOut)] += 1;
            }
        }
    }
}
