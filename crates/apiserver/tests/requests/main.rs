//! Requests to the API inside of the process: what they ask for, and what comes back.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../../../store/tests/store/etcd_server.rs"]
#[allow(dead_code, reason = "the tests of the store need more of it")]
mod etcd_server;
#[path = "../../../store/tests/store/folder.rs"]
mod folder;
#[path = "../../../store/tests/store/until.rs"]
#[allow(dead_code, reason = "the tests of the store need more of it")]
mod until;

#[path = "../server/mod.rs"]
mod server;

mod ask;
mod audit_trail;
mod bodies;
mod contention;
mod deletion;
mod field_validation;
mod findings;
mod lists;
mod managed_fields_size;
mod pages;
mod parameters;
mod reviews;
mod too_few_seats;
mod websocket;
mod zero_shares;
