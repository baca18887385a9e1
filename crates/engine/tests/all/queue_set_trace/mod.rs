//! Recorded traces of a queue set: their form, and how one is replayed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use evenkeel_engine::WorkEstimate;
use evenkeel_engine::queue_set::{Arrival, Finish, Mode, QueueSet, QueueSetConfig, QueueView, RequestId};
use evenkeel_engine::time::Instant;
use evenkeel_recorded::SideBySide;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Trace {
    pub(crate) config: Config,
    pub(crate) events: Vec<Event>,
    pub(crate) totals: Option<Totals>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Config {
    queues: i64,
    hand_size: i64,
    queue_length_limit: i64,
    concurrency_limit: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Totals {
    rejected: u64,
    cancelled: u64,
    enqueue_attempts: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Event {
    t: String,
    #[serde(flatten)]
    op: Op,
    queue: Option<usize>,
    rejected: Option<String>,
    #[serde(default)]
    dispatched: Vec<u64>,
    release_at: Option<String>,
    #[serde(default)]
    error: bool,
    /// The reference panicked here, or went on with a corrupted list of queues.
    #[serde(default)]
    panic: bool,
    defect: Option<String>,
    st: Option<TracedState>,
}

#[derive(Deserialize, Debug)]
#[serde(tag = "op", rename_all = "camelCase")]
enum Op {
    #[serde(rename_all = "camelCase")]
    Arrive {
        id: u64,
        hash: String,
        initial_seats: u32,
        final_seats: u32,
        additional_latency_ns: i64,
    },
    Finish {
        id: u64,
    },
    Release {
        id: u64,
    },
    Cancel {
        id: u64,
    },
    #[serde(rename_all = "camelCase")]
    Configure {
        queues: i64,
        hand_size: i64,
        queue_length_limit: i64,
        concurrency_limit: i64,
    },
}

#[derive(Deserialize)]
struct TracedState {
    #[serde(rename = "R")]
    r: String,
    rr: i64,
    nq: usize,
    w: usize,
    x: usize,
    s: i64,
    sw: i64,
    #[serde(default)]
    full: bool,
    q: Vec<(usize, Option<String>, usize, usize, i64)>,
}

/// A queue as the traces show it: `nextDispatchR`, waiting, executing, seats in use.
type QueueState = (Option<u64>, usize, usize, i64);

/// What an event brought about, in the words of the traces.
#[derive(Default)]
struct Consequences {
    queue: Option<usize>,
    rejected: Option<String>,
    dispatched: Vec<u64>,
    release_at: Option<i64>,
    error: bool,
    /// Why the event could not happen at all; nothing that is recorded has this.
    impossible: Option<String>,
}

/// A queue set that a trace is replayed on.
pub(crate) struct Replay {
    set: QueueSet<u64>,
    ids: HashMap<u64, RequestId>,
    /// What the trace has told of each queue that is not empty.
    recorded_queues: BTreeMap<usize, QueueState>,
}

// === impl Config ===

impl Config {
    fn queue_set(self) -> Option<QueueSetConfig> {
        let mode = match self.queues {
            ..0 => Mode::Exempt,
            0 => Mode::Reject,
            queues => Mode::queue(queues, self.hand_size, self.queue_length_limit).ok()?,
        };
        Some(QueueSetConfig { mode, concurrency_limit: self.concurrency_limit })
    }
}

// === impl Event ===

impl Event {
    /// Whether the recorded server went wrong here.
    pub(crate) fn is_defect(&self) -> bool {
        self.panic || self.defect.is_some()
    }

    fn consequences(&self) -> Consequences {
        Consequences {
            queue: self.queue,
            rejected: self.rejected.clone(),
            dispatched: self.dispatched.clone(),
            release_at: self.release_at.as_ref().map(|at| at.parse().expect("a time")),
            error: self.error,
            impossible: None,
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {}", self.op, self.t)
    }
}

// === impl Consequences ===

impl Consequences {
    fn compare(&self, actual: &Self, comparison: &mut SideBySide) {
        comparison.same("impossible", &self.impossible, &actual.impossible);
        comparison.same("queue", &self.queue, &actual.queue);
        comparison.same("rejected", &self.rejected, &actual.rejected);
        comparison.same("dispatched", &self.dispatched, &actual.dispatched);
        comparison.same("release at", &self.release_at, &actual.release_at);
        comparison.same("error", &self.error, &actual.error);
    }
}

// === impl Replay ===

impl Replay {
    pub(crate) fn new(config: Config) -> Self {
        let set = QueueSet::new(config.queue_set().expect("a valid configuration"), Instant::from_nanos(0));
        Self { set, ids: HashMap::new(), recorded_queues: BTreeMap::new() }
    }

    /// Replays an event, and compares what it brought about with what is recorded.
    pub(crate) fn step(&mut self, event: &Event) -> SideBySide {
        let actual = self.apply(event);
        let mut comparison = SideBySide::default();
        event.consequences().compare(&actual, &mut comparison);
        if let Some(state) = &event.st {
            self.note_queues(state);
            self.compare_state(state, &mut comparison);
        }
        comparison
    }

    pub(crate) fn compare_totals(&self, totals: &Totals) -> SideBySide {
        let counters = self.set.counters();
        let mut comparison = SideBySide::default();
        comparison.same("rejected", &totals.rejected, &counters.rejected);
        comparison.same("cancelled", &totals.cancelled, &counters.cancelled);
        comparison.same("enqueue attempts", &totals.enqueue_attempts, &self.set.placed());
        comparison
    }

    fn compare_state(&self, state: &TracedState, comparison: &mut SideBySide) {
        let set = &self.set;
        comparison.same("R", &*state.r, &*set.virtual_time().units().to_string());
        comparison.same("round robin", &state.rr, &set.robin().expect("shuffle-sharded queues"));
        comparison.same("queues", &state.nq, &set.queues().len());
        comparison.same("waiting", &state.w, &set.waiting());
        comparison.same("executing", &state.x, &set.executing());
        comparison.same("seats in use", &state.s, &set.seats_in_use());
        comparison.same("seats waiting", &state.sw, &set.seats_waiting());
        let actual = self.queues();
        for index in self.recorded_queues.keys().chain(actual.keys()).collect::<BTreeSet<_>>() {
            let name = format_args!("queue {index}: next R, waiting, executing, seats");
            comparison.same(name, &self.recorded_queues.get(index), &actual.get(index));
        }
    }

    pub(crate) fn set(&self) -> &QueueSet<u64> {
        &self.set
    }

    fn apply(&mut self, event: &Event) -> Consequences {
        let now = Instant::from_nanos(event.t.parse().expect("a time"));
        let mut actual = Consequences::default();
        let mut dispatched = Vec::new();
        let mut note = |_: RequestId, id: &mut u64| dispatched.push(*id);
        match &event.op {
            Op::Arrive { id, hash, initial_seats, final_seats, additional_latency_ns } => {
                let work = WorkEstimate {
                    initial_seats: *initial_seats,
                    final_seats: *final_seats,
                    additional_latency: *additional_latency_ns,
                };
                let hash: u64 = hash.parse().expect("a hash");
                match self.set.arrive(now, hash, work, *id, &mut note) {
                    Arrival::Started { id: request, queue } => {
                        actual.queue = queue;
                        self.ids.insert(*id, request);
                    }
                    Arrival::Waiting { id: request, queue } => {
                        actual.queue = Some(queue);
                        self.ids.insert(*id, request);
                    }
                    Arrival::Rejected { reason, queue, payload } => {
                        assert_eq!(payload, *id);
                        actual.queue = queue;
                        actual.rejected = Some(reason.as_str().to_owned());
                    }
                }
            }
            Op::Finish { id } => match self.ids.get(id).and_then(|known| self.set.finish(now, *known, &mut note)) {
                Some(Finish::Lingering { until }) => actual.release_at = Some(until.as_nanos()),
                Some(Finish::Released(payload)) => assert_eq!(payload, *id),
                None => actual.impossible = Some(format!("request {id} is not executing")),
            },
            Op::Release { id } => {
                let released = self.ids.get(id).and_then(|known| self.set.release(now, *known, &mut note));
                actual.impossible = (released != Some(*id)).then(|| format!("request {id} is not lingering"));
            }
            Op::Cancel { id } => {
                let cancelled = self.ids.get(id).and_then(|known| self.set.cancel(now, *known, &mut note));
                actual.impossible = (cancelled != Some(*id)).then(|| format!("request {id} is not waiting"));
                actual.rejected = Some("time-out".to_owned());
            }
            Op::Configure { queues, hand_size, queue_length_limit, concurrency_limit } => {
                let config = Config {
                    queues: *queues,
                    hand_size: *hand_size,
                    queue_length_limit: *queue_length_limit,
                    concurrency_limit: *concurrency_limit,
                };
                match config.queue_set() {
                    Some(config) => self.set.configure(now, config, &mut note),
                    None => actual.error = true,
                }
            }
        }
        actual.dispatched = dispatched;
        actual
    }

    fn note_queues(&mut self, state: &TracedState) {
        if state.full {
            self.recorded_queues.clear();
        }
        for (index, next_r, waiting, executing, seats) in &state.q {
            if (*waiting, *executing, *seats) == (0, 0, 0) {
                self.recorded_queues.remove(index);
            } else {
                let next_r = next_r.as_ref().map(|next_r| next_r.parse().expect("a number"));
                self.recorded_queues.insert(*index, (next_r, *waiting, *executing, *seats));
            }
        }
    }

    fn queues(&self) -> BTreeMap<usize, QueueState> {
        let state = |queue: QueueView| {
            let active = queue.waiting > 0 || queue.executing > 0;
            (active.then(|| queue.next_r.units()), queue.waiting, queue.executing, queue.seats_in_use)
        };
        let not_empty =
            |(_, (_, waiting, executing, seats)): &(usize, QueueState)| *waiting + *executing > 0 || *seats > 0;
        self.set.queues().map(state).enumerate().filter(not_empty).collect()
    }
}
