//! How long things may take, and how much of a thing there may be.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{duration, memory};

/// How long things may take.
///
/// Not `#[non_exhaustive]`, so that literals can end with `..Default::default()`. End them so: releases add fields.
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
    /// A request of which nothing moves, neither its body nor its response's.
    #[serde(with = "duration")]
    pub stall: Duration,
    /// The first message of a gRPC call that has its seat already, because its client waits for the response to begin.
    #[serde(with = "duration")]
    pub first_message: Duration,
    /// A request from the time it may run, or its body moved last, until the head of its response. Zero means no limit.
    #[serde(with = "duration", alias = "answer")]
    pub response: Duration,
    /// A request from its arrival until its response has ended, watches and upgrades aside. Zero means no limit.
    #[serde(with = "duration")]
    pub total: Duration,
    /// An upgraded connection, such as a `WebSocket`, on which nothing moves in either direction. Zero means no limit.
    #[serde(with = "duration")]
    pub upgrade_idle: Duration,
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
///
/// Not `#[non_exhaustive]`, so that literals can end with `..Default::default()`. End them so: releases add fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Limits {
    /// Connections of clients at a time. Further connections get a response that asks to try again, and are closed. The default
    /// is 65,536, or fewer if the process may use less than 2 GiB of memory: one for each 32 KiB.
    pub connections: usize,
    /// Connections of one client at a time: of one user once a request has said who that is, of one address before. Zero
    /// means a quarter of `connections`. Trusted proxies have no such limit.
    pub connections_per_client: usize,
    /// The bytes of a request's head.
    pub head_bytes: usize,
    /// The header fields of a request.
    pub headers: usize,
    /// The bytes of a request's body. Zero means no limit.
    pub body_bytes: u64,
    /// The slowest that a body may be while the other side waits for it, in bytes a second over ten seconds: a request's
    /// body on its way in, and a response's on its way to the client as long as the request has its seat. A gRPC client may
    /// pause between messages. Upgrades and routes with `longRunning` may be slower. Zero means no limit.
    pub body_bytes_per_second_min: u64,
    /// The bytes of a request's body that are received before the request may take a seat. A longer body takes its seat
    /// when this many bytes have arrived, and a gRPC call with its first message. Zero means that a request takes its seat as
    /// soon as its head has arrived. At most a quarter of `buffer_bytes`, which is what one client may have.
    pub request_buffer: usize,
    /// The bytes of a response that are kept for a client that reads slowly, so that the request gives its seat back when
    /// the upstream has sent the last byte.
    pub response_buffer: usize,
    /// The bytes of all such buffers, and of heads that have arrived in part. When more is needed, the requests that
    /// take the longest to arrive are rejected. Responses are buffered in one half of it.
    /// The default is 128 MiB, or less if the process may use less than 512 MiB of memory: a quarter of it.
    pub buffer_bytes: usize,
    /// Streams at a time on one HTTP/2 connection.
    pub streams: u32,
    /// Streams of one client at a time, on all of its HTTP/2 connections. Zero means a quarter of `connections`.
    pub streams_per_client: usize,
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
            first_message: seconds(10),
            response: seconds(60),
            total: Duration::ZERO,
            upgrade_idle: seconds(600),
            queue: seconds(15),
            drain: seconds(30),
            drain_notice: Duration::ZERO,
        }
    }
}

// === impl Limits ===

impl Limits {
    /// The most connections and bytes of buffers by default, however much memory there is.
    pub const CONNECTIONS_MAX: usize = 65_536;
    const BUFFER_BYTES_MAX: usize = 128 * 1024 * 1024;

    /// How many connections one client may have.
    pub(crate) fn connections_per_client(&self) -> usize {
        share(self.connections_per_client, self.connections)
    }

    /// How many bytes of all buffers one client may have.
    pub(crate) fn buffer_bytes_per_client(&self) -> usize {
        self.buffer_bytes / CLIENTS_MIN
    }

    /// How many streams one client may have.
    pub(crate) fn streams_per_client(&self) -> usize {
        share(self.streams_per_client, self.connections)
    }
}

/// How many clients it takes at least to use up all of a limit.
pub(super) const CLIENTS_MIN: usize = 4;

/// The share of one client: the setting, or by default a quarter of the whole.
pub(crate) fn share(set: usize, whole: usize) -> usize {
    if set == 0 { whole.div_ceil(CLIENTS_MIN) } else { set }
}

impl Default for Limits {
    fn default() -> Self {
        let memory = memory::memory_limit();
        Self {
            connections: memory::connections(memory, Self::CONNECTIONS_MAX),
            connections_per_client: 0,
            head_bytes: 64 * 1024,
            headers: 128,
            body_bytes: 0,
            body_bytes_per_second_min: 1024,
            request_buffer: 64 * 1024,
            response_buffer: 1024 * 1024,
            buffer_bytes: memory::buffer_bytes(memory, Self::BUFFER_BYTES_MAX),
            streams: 256,
            streams_per_client: 0,
            idle_upstream_connections: 128,
        }
    }
}
