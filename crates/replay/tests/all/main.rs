//! The tests of the crate: the recorded log of a real server, hostile logs, and logs of our own.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod costs;
mod exports;
mod flight;
mod flight_modes;
mod headers;
mod hostile;
mod kinds;
mod logs;
mod own_log;
mod recorded;
mod seats;
mod stage;
