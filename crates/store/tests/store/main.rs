//! The tests of both stores, as their users see them.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests, and what they share")]

mod access;
mod contract;
mod contract_embedded;
mod contract_etcd;
mod crash;
mod damage;
mod etcd_server;
mod faults;
mod folder;
mod gap;
mod model;
mod model_replay;
mod patient;
mod proxy;
mod random;
mod restored;
mod samples;
mod until;
