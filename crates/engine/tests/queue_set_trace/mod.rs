//! Recorded traces of a queue set: their form, and how one is replayed.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use evenkeel_engine::WorkEstimate;
use evenkeel_engine::queue_set::{Arrival, Finish, Mode, QueueSet, QueueSetConfig, RequestId};
use evenkeel_engine::time::Instant;
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

#[derive(Deserialize, Debug, PartialEq)]
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
    pub(crate) panic: bool,
    pub(crate) defect: Option<String>,
    st: Option<State>,
}

#[derive(Deserialize)]
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
struct State {
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
#[derive(Debug, Default, PartialEq)]
struct Consequences {
    queue: Option<usize>,
    rejected: Option<String>,
    dispatched: Vec<u64>,
    release_at: Option<i64>,
    error: bool,
}

/// A queue set that a trace is replayed on.
pub(crate) struct Replay {
    set: QueueSet<u64>,
    ids: HashMap<u64, RequestId>,
    /// What the trace has told of each queue that is not empty.
    recorded_queues: BTreeMap<usize, QueueState>,
}

/// The traces of a folder, in the order of their names.
pub(crate) fn traces(folder: &Path) -> Vec<(PathBuf, Trace)> {
    let mut files: Vec<_> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    let read = |file: PathBuf| {
        let text = fs::read(&file).expect("a readable file");
        let trace = serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        (file, trace)
    };
    files.into_iter().map(read).collect()
}

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

impl Replay {
    pub(crate) fn new(config: Config) -> Self {
        let set = QueueSet::new(config.queue_set().expect("a valid configuration"), Instant::from_nanos(0));
        Self { set, ids: HashMap::new(), recorded_queues: BTreeMap::new() }
    }

    /// Replays an event, and tells every difference from what is recorded.
    pub(crate) fn step(&mut self, event: &Event) -> Result<(), String> {
        let actual = self.apply(event);
        let expected = Consequences {
            queue: event.queue,
            rejected: event.rejected.clone(),
            dispatched: event.dispatched.clone(),
            release_at: event.release_at.as_ref().map(|at| at.parse().expect("a time")),
            error: event.error,
        };
        let mut differences = String::new();
        let mut compare = |what: &str, expected: String, actual: String| {
            if expected != actual {
                writeln!(differences, "  {what}\n    recorded {expected}\n    actual   {actual}").expect("memory");
            }
        };
        compare("consequences", format!("{expected:?}"), format!("{actual:?}"));
        if let Some(state) = &event.st {
            let recorded = format!(
                "R {} rr {} nq {} w {} x {} s {} sw {}",
                state.r, state.rr, state.nq, state.w, state.x, state.s, state.sw
            );
            let set = &self.set;
            let found = format!(
                "R {} rr {} nq {} w {} x {} s {} sw {}",
                set.r().units(),
                set.robin(),
                set.queues().len(),
                set.waiting(),
                set.executing(),
                set.seats_in_use(),
                set.seats_waiting()
            );
            compare("state", recorded, found);
            self.note_queues(state);
            compare("queues", format!("{:?}", self.recorded_queues), format!("{:?}", self.queues()));
        }
        if differences.is_empty() { Ok(()) } else { Err(differences) }
    }

    pub(crate) fn check_totals(&self, totals: &Totals) {
        let counters = self.set.counters();
        let found =
            Totals { rejected: counters.rejected, cancelled: counters.cancelled, enqueue_attempts: self.set.placed() };
        assert_eq!(*totals, found);
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
                let hash = hash.parse().expect("a hash");
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
            Op::Finish { id } => match self.set.finish(now, self.ids[id], &mut note) {
                Some(Finish::Lingering { until }) => actual.release_at = Some(until.as_nanos()),
                Some(Finish::Released(payload)) => assert_eq!(payload, *id),
                None => panic!("request {id} is not executing"),
            },
            Op::Release { id } => assert_eq!(self.set.release(now, self.ids[id], &mut note), Some(*id)),
            Op::Cancel { id } => {
                assert_eq!(self.set.cancel(now, self.ids[id], &mut note), Some(*id));
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

    fn note_queues(&mut self, state: &State) {
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
        let state = |queue: evenkeel_engine::queue_set::QueueView| {
            let active = queue.waiting > 0 || queue.executing > 0;
            (active.then(|| queue.next_r.units()), queue.waiting, queue.executing, queue.seats_in_use)
        };
        let not_empty =
            |(_, (_, waiting, executing, seats)): &(usize, QueueState)| *waiting + *executing > 0 || *seats > 0;
        self.set.queues().map(state).enumerate().filter(not_empty).collect()
    }
}
