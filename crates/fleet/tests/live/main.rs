//! Instances with a real etcd, in front of a service that counts what is in flight.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../../../store/tests/store/etcd_server.rs"]
#[allow(dead_code, reason = "the tests of the store use all of it")]
mod etcd_server;
mod fleets;
#[path = "../../../store/tests/store/folder.rs"]
mod folder;
mod instance;
#[path = "../../../store/tests/store/until.rs"]
#[allow(dead_code, reason = "the tests of the store use all of it")]
mod until;
