//! `FlightHeader`: the header of a dump, with everything that is the same for all records.

use serde::{Deserialize, Serialize};

/// Settings and objects in effect, and what the numbers of records stand for.
///
/// Not `#[non_exhaustive]`: recorders make it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FlightHeader {
    /// The moment that the times of records count from, in nanoseconds since 1970.
    pub epoch: i64,
    /// How long before the dump the recording begins, in nanoseconds.
    pub length: i64,
    /// `plain` or `kubernetes`.
    pub preset: String,
    /// How many seats the server had at the end.
    pub seats: i64,
    /// `immediate` or `periodic`.
    pub borrowing: String,
    /// How long requests waited at most, in nanoseconds.
    pub wait_limit: i64,
    /// How long newcomers may have had to wait before seats were kept for them, in nanoseconds; `None` if the dump does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newcomer_wait: Option<i64>,
    /// The settings in effect, of a program that has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings: Option<serde_json::Value>,
    /// What caused the dump.
    pub cause: String,
    /// Whether names of users are left out, and hashes stand for them.
    pub hides_users: bool,
    /// Whether the recording begins when the server did: it knows of every request.
    pub is_complete: bool,
    /// How many requests of that time could not be recorded.
    pub missed: u64,
    /// The objects in effect at the end, as a list of JSON.
    pub objects: Vec<serde_json::Value>,
    /// The names of levels, by the numbers that records have.
    pub levels: Vec<String>,
    /// The requests, by the numbers that records have.
    pub requests: Vec<FlightRequest>,
    /// Other changes, by time.
    pub changes: Vec<FlightChange>,
}

/// Who asked for what: as far as flow schemas tell requests apart.
///
/// Not `#[non_exhaustive]`: recorders make it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FlightRequest {
    /// The user.
    pub user: String,
    /// The groups.
    pub groups: Vec<String>,
    /// The verb.
    pub verb: String,
    /// The path, or that of one of them.
    pub path: String,
    /// The resource, where the request is for one: API group, resource, subresource, namespace and name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<[String; 5]>,
    /// The flow schema that it belonged to.
    pub flow_schema: String,
    /// What told its flow from others.
    pub flow: String,
}

/// Something that changed while requests were recorded.
///
/// Not `#[non_exhaustive]`: recorders make it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FlightChange {
    /// When, as the times of records.
    pub at: i64,
    /// What, in a few words.
    pub what: String,
    /// The seats of the server until then, if they changed.
    #[serde(rename = "seatsBefore", skip_serializing_if = "Option::is_none")]
    pub seats_before: Option<i64>,
    /// The seats of the server from then on, if they changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seats: Option<i64>,
    /// How levels borrowed until then and from then on, if that changed: `immediate` or `periodic`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub borrowing: Option<[String; 2]>,
    /// The [wait of newcomers](FlightHeader::newcomer_wait) until then and from then on, if it changed.
    #[serde(rename = "newcomerWait", skip_serializing_if = "Option::is_none")]
    pub newcomer_wait: Option<[i64; 2]>,
    /// Whether other objects came into effect. A dump has only the last ones.
    #[serde(rename = "changesObjects", skip_serializing_if = "std::ops::Not::not")]
    pub changes_objects: bool,
}
