//! The API as its clients know it: kubectl, kube-rs and the Python client talk to the binary.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../child/mod.rs"]
mod child;
#[path = "../peer/mod.rs"]
mod peer;

#[path = "../../../store/tests/store/etcd_server.rs"]
#[allow(dead_code, reason = "the tests of the store need more of it")]
mod etcd_server;
#[path = "../../../store/tests/store/folder.rs"]
mod folder;
#[path = "../../../store/tests/store/until.rs"]
#[allow(dead_code, reason = "the tests of the store need more of it")]
mod until;

mod access;
mod conversations;
mod cut;
mod gateway;
mod instances;
mod kube_rs;
mod kubectl;
mod kubectl_auth;
mod kubectl_writes;
mod life;
mod llm_sdks;
mod manifest;
mod python;
mod reflector;
mod served;
mod slow_reader;
mod unreadable;
