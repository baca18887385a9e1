//! Something that happened, in a frame.

use serde::{Deserialize, Serialize};

use super::is_default;

/// Something that happened, and may explain a change.
///
/// Not `#[non_exhaustive]`: a frame is data that other programs make too; `frame::VERSION` tells of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// When, in milliseconds since 1970.
    pub time_ms: u64,
    /// What kind of event it is.
    pub kind: EventKind,
    /// What happened, in one sentence without a full stop.
    pub text: String,
    /// If the number of all seats changed: before and after.
    #[serde(default, skip_serializing_if = "is_default")]
    pub seats: Option<[i64; 2]>,
}

/// The kinds of events.
///
/// Not `#[non_exhaustive]`: a frame is data that other programs make too; `frame::VERSION` tells of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EventKind {
    /// New objects are in effect.
    ObjectsChanged,
    /// New objects cannot be used; the old ones stay in effect.
    ObjectsRefused,
    /// New settings are in effect.
    SettingsChanged,
    /// The number of seats has changed.
    LimitChanged,
    /// An upstream is down, and out of the rotation unless it is the only one.
    UpstreamOut,
    /// An upstream responds again.
    UpstreamBack,
    /// Another process responds. Only for frames that are made of the metrics of a server (`evenkeel top --kube`).
    ServerChanged,
}
