//! The tests of the API server, in one program: each further program would have to be linked.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod conformance;
mod faulty_store;
mod model;
mod owner_references;
mod ownership;
mod ownership_rules;
mod patch_limits;
mod plain;
mod protobuf;
mod recorded_patches;
mod refused_bodies;
#[path = "../server/mod.rs"]
mod server;
mod unread_responses;
mod unreadable;
