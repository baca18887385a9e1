//! Frames: what the dashboard and `evenkeel top` show of one moment.
//!
//! A [`Frame`] is about an interval, usually a second: what happened in it, and the state at its end. It is complete by itself,
//! so that a slow reader can skip frames. The stream of the admin endpoint begins with [`PastLevel`]s, one for each level, and
//! goes on with frames.
//!
//! Fields with their default value are left out of the JSON: a frame of 200 levels is to fit into 64 KB.

mod buckets;
mod diagnosis;
mod event;
mod fleet;
mod level;
mod limit;
mod model;
mod past;
mod upstream;
mod usual;

use serde::{Deserialize, Serialize, Serializer};

pub use buckets::{percentiles, rounded, utilisation};
pub use diagnosis::diagnose;
pub use event::{Event, EventKind};
pub use fleet::{Fleet, FleetChange};
pub use level::{Delay, Flow, FlowCost, FlowRate, Level, Percentiles, Queuing, Schema, Utilisation};
pub use limit::{Limit, Step};
pub use model::Model;
pub use past::PastLevel;
pub use upstream::{OutCause, Upstream};
pub use usual::Usual;

/// The version of the frames. It changes when a field changes its meaning or goes away; new fields leave it as it is.
pub const VERSION: u32 = 1;

/// One moment of a server, and what happened in the interval before it.
///
/// Not `#[non_exhaustive]`: a frame is data that other programs make too; `frame::VERSION` tells of a change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Frame {
    /// [`VERSION`].
    pub version: u32,
    /// The end of the interval, in milliseconds since 1970.
    pub time_ms: u64,
    /// The length of the interval.
    pub interval_ms: u64,
    /// The server as a whole.
    pub server: Server,
    /// All levels, by name.
    #[serde(default)]
    pub levels: Vec<Level>,
    /// The upstreams, in the order of the settings.
    #[serde(default, skip_serializing_if = "is_default")]
    pub upstreams: Vec<Upstream>,
    /// The language models, by name: the busiest, and all others together. Empty if none has responded yet.
    #[serde(default, skip_serializing_if = "is_default")]
    pub models: Vec<Model>,
    /// The last events, the latest first. Frames repeat them, so that none is missed by a reader who skips frames.
    #[serde(default, skip_serializing_if = "is_default")]
    pub events: Vec<Event>,
    /// Problems of the objects and the store, if there are any.
    #[serde(default, skip_serializing_if = "is_default")]
    pub objects: Objects,
    /// The diagnosis.
    pub diagnosis: Diagnosis,
}

/// Problems of the objects that govern the server, and of their store.
///
/// Not `#[non_exhaustive]`: a frame is data that other programs make too; `frame::VERSION` tells of a change.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Objects {
    /// Why they may be out of date, if they may.
    #[serde(skip_serializing_if = "is_default")]
    pub stale: Option<String>,
    /// Whether the latest objects have errors, so that older ones are in effect.
    #[serde(skip_serializing_if = "is_default")]
    pub are_refused: bool,
    /// What is wrong with the store, if anything is.
    #[serde(skip_serializing_if = "is_default")]
    pub store: Option<String>,
    /// Flow schemas that are not used because their levels do not exist: the first of them, with the level that each names.
    #[serde(skip_serializing_if = "is_default")]
    pub dangling: Vec<[String; 2]>,
    /// How many such flow schemas there are.
    #[serde(skip_serializing_if = "is_default")]
    pub dangling_count: usize,
}

/// The server as a whole.
///
/// Not `#[non_exhaustive]`: a frame is data that other programs make too; `frame::VERSION` tells of a change.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Server {
    /// The version of the program, where it is known.
    #[serde(skip_serializing_if = "is_default")]
    pub program: String,
    /// The seats that all limited levels share.
    pub concurrency: i64,
    /// The seats in use in limited levels.
    pub in_use: i64,
    /// The seats in use in levels without a limit.
    #[serde(skip_serializing_if = "is_default")]
    pub exempt: i64,
    /// How levels borrow seats: `periodic` or `immediate`. Empty where it is not known.
    #[serde(skip_serializing_if = "is_default")]
    pub borrowing: String,
    /// Requests that upstreams failed per second: no connection, no response, or one that ended too early.
    #[serde(skip_serializing_if = "is_default")]
    pub upstream_failures: f64,
    /// The bytes of requests and responses that are buffered because their clients are slow.
    #[serde(skip_serializing_if = "is_default")]
    pub buffered: u64,
    /// How many bytes may be buffered; 0 where it is not known.
    #[serde(skip_serializing_if = "is_default")]
    pub buffer_limit: u64,
    /// The requests that arrive per second, lately.
    #[serde(skip_serializing_if = "is_default")]
    pub demand: f64,
    /// The demand as it usually was in the minutes before; `None` if that is not known.
    #[serde(skip_serializing_if = "is_default")]
    pub demand_before: Option<f64>,
    /// The limit, if it finds itself.
    #[serde(skip_serializing_if = "is_default")]
    pub limit: Option<Limit>,
    /// The fleet that it shares its seats with, if it does.
    #[serde(skip_serializing_if = "is_default")]
    pub fleet: Option<Fleet>,
    /// Whether there is a shadow, whose report is at `/debug/shadow`.
    #[serde(skip_serializing_if = "is_default")]
    pub has_shadow: bool,
}

/// A frame's meaning, in one sentence.
///
/// Not `#[non_exhaustive]`: a frame is data that other programs make too; `frame::VERSION` tells of a change.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Diagnosis {
    /// How urgent it is.
    pub state: DiagnosisState,
    /// The sentence.
    pub text: String,
    /// The level that it is about, if it is about one.
    #[serde(default, skip_serializing_if = "is_default")]
    pub level: Option<String>,
}

/// How urgent a diagnosis is.
///
/// Not `#[non_exhaustive]`: a frame is data that other programs make too; `frame::VERSION` tells of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DiagnosisState {
    /// Nothing to do.
    #[default]
    Well,
    /// Requests wait, or an upstream is slower than before.
    Slow,
    /// Requests are rejected, or an upstream is out.
    Failing,
}

/// A whole number needs no fraction: `8` instead of `8.0`.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
pub(crate) fn short<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    const EXACT: f64 = 1e15;
    if value.fract() == 0.0 && value.abs() < EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "it is whole and small")]
        return serializer.serialize_i64(*value as i64);
    }
    serializer.serialize_f64(*value)
}

pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

// === impl Frame ===

impl Frame {
    /// A frame of nothing, to be filled.
    pub fn new(time_ms: u64, interval_ms: u64) -> Self {
        Self {
            version: VERSION,
            time_ms,
            interval_ms,
            server: Server::default(),
            levels: Vec::new(),
            upstreams: Vec::new(),
            models: Vec::new(),
            events: Vec::new(),
            objects: Objects::default(),
            diagnosis: Diagnosis::default(),
        }
    }

    /// The level of this name.
    pub fn level(&self, name: &str) -> Option<&Level> {
        self.levels.iter().find(|level| level.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_survives_json_and_leaves_out_what_is_nothing() {
        let mut frame = Frame::new(1_800_000_000_000, 1000);
        frame.server = Server { concurrency: 600, in_use: 12, borrowing: "periodic".to_owned(), ..Server::default() };
        frame.levels.push(Level { name: "workload-low".to_owned(), nominal: 245, ..Level::default() });
        frame.levels.push(Level {
            name: "workload-high".to_owned(),
            queuing: Some(Queuing::PerFlow),
            wait_ms: Some(Percentiles { p50: 0.0, p99: 12.5 }),
            rejected: [("queue-full".to_owned(), 1.5)].into(),
            utilisation: Some(Utilisation { min: 0.0, mean: 0.25, max: 1.0 }),
            flows: vec![Flow { schema: "a".to_owned(), distinguisher: "b".to_owned(), seats: 1.0, ..Flow::default() }],
            delays: vec![Delay { waiter: 0, by: None, seconds: 0.1, share: 1.0 }],
            schemas: vec![Schema { name: "a".to_owned(), ..Schema::default() }],
            ..Level::default()
        });
        frame.events.push(Event { time_ms: 1, kind: EventKind::UpstreamOut, text: "gone".to_owned(), seats: None });
        let text = serde_json::to_string(&frame).unwrap();
        assert_eq!(serde_json::from_str::<Frame>(&text).unwrap(), frame);
        assert!(text.contains(r#"{"name":"workload-low","nominal":245}"#), "{text}");
        assert!(text.contains(r#""waitMs":{"p50":0,"p99":12.5}"#), "{text}");
    }
}
