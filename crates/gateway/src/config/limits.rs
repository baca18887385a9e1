//! How long things may take, and how much of a thing there may be.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::duration;

/// How long things may take.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Timeouts {
    /// A connection to an upstream, TLS included.
    #[serde(with = "duration")]
    pub connect: Duration,
    /// Each of these of a client: agreeing on TLS, the first byte of a connection, and the head of a request from its first
    /// byte on.
    #[serde(with = "duration")]
    pub head: Duration,
    /// A connection without a request, on either side.
    #[serde(with = "duration")]
    pub idle: Duration,
    /// A request of which nothing moves, neither its body nor its answer's.
    #[serde(with = "duration")]
    pub stall: Duration,
    /// A request from the time it may run, or its body moved last, until the head of its answer. Zero means no limit.
    #[serde(with = "duration")]
    pub answer: Duration,
    /// A request from its arrival until its answer has ended, watches and upgrades aside. Zero means no limit.
    #[serde(with = "duration")]
    pub total: Duration,
    /// Waiting for a seat, if the request does not say how long it makes sense.
    #[serde(with = "duration")]
    pub queue: Duration,
    /// Requests that are running when the gateway is told to stop.
    #[serde(with = "duration")]
    pub drain: Duration,
    /// Between the time readiness turns false and the time no connection is accepted any more.
    #[serde(with = "duration")]
    pub drain_notice: Duration,
}

/// How much of a thing there may be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Limits {
    /// Connections of clients at a time. More are told to come back, and closed.
    pub connections: usize,
    /// The bytes of a request's head.
    pub head_bytes: usize,
    /// The header fields of a request.
    pub headers: usize,
    /// The bytes of a request's body. Zero means no limit.
    pub body_bytes: u64,
    /// Streams at a time on one HTTP/2 connection.
    pub streams: u32,
    /// Connections that wait for the next request, for each upstream and worker.
    pub idle_upstream_connections: usize,
}

// === impl Timeouts ===

impl Default for Timeouts {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            connect: seconds(5),
            head: seconds(10),
            idle: seconds(75),
            stall: seconds(60),
            answer: seconds(60),
            total: Duration::ZERO,
            queue: seconds(15),
            drain: seconds(30),
            drain_notice: Duration::ZERO,
        }
    }
}

// === impl Limits ===

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 65_536,
            head_bytes: 64 * 1024,
            headers: 128,
            body_bytes: 0,
            streams: 256,
            idle_upstream_connections: 128,
        }
    }
}
