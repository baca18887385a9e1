//! Every decision of API Priority and Fairness, and nothing else.
//!
//! Which flow schema a request belongs to, how many seats it takes, whether it runs, waits or is rejected, which
//! waiting request runs next, and how many seats each priority level may use at this moment. The decisions are those of
//! Kubernetes, event by event; what a real one decided is replayed in the tests.
//!
//! The crate does no I/O, reads no clock, spawns nothing and never blocks: times and events are arguments, decisions are
//! results. So live traffic, simulations and tests run the same code.
//!
//! The modules are the steps of a request, from left to right:
//!
//! | step | module |
//! |---|---|
//! | what is asked: a URL becomes attributes | [`digest`] |
//! | which schema it belongs to, and what tells its flow from others | [`classify`], [`flow_hash`] |
//! | how many seats it takes | [`work`], [`cost`] |
//! | whether its flow is within its rate | [`rate`] |
//! | what queues its flow may use | [`deal`] |
//! | whether it runs, waits or is rejected; when it ends | [`queue_set`] |
//! | when it has waited or lingered for long enough; who observes it | [`level`] |
//! | who uses a level, and who delays whom | [`attribution`] |
//! | when a rejected client should try again | [`retry_after`], [`drain`] |
//!
//! and of the configuration:
//!
//! | step | module |
//! |---|---|
//! | objects become levels and a compiled configuration | [`controller`], [`Configuration`] |
//! | each level's share of the seats | [`limits`] |
//! | lending and borrowing by what was asked for | [`borrowing`] |
//! | the seats of one service among the instances in front of it | [`fleet_division`] |
//!
//! [`Engine`] has them all in one. A server of many threads keeps each [`Level`](level::Level) behind a lock of its own and
//! uses the [`controller`] directly; the crate `evenkeel` does that. Both ask `next_timeout` when something is due, and call
//! `handle_timeout` then.

mod attributes;
mod configuration;
mod engine;
mod flow;
mod flow_hash;
mod histogram;
mod request_head;
mod seat_rounding;
mod seat_seconds;
mod terms;
mod work_estimate;

pub mod attribution;
pub mod auto_limit;
pub mod borrowing;
pub mod classify;
pub mod controller;
pub mod cost;
pub mod deal;
pub mod digest;
pub mod drain;
pub mod elementary;
pub mod fleet_division;
pub mod implied_groups;
pub mod level;
pub mod limits;
pub mod queue_set;
pub mod rate;
pub mod retry_after;
pub mod revocation;
pub mod time;
pub mod work;

pub use attributes::{Attributes, RequestInfo, User};
pub use configuration::{Classification, Configuration, LevelId, LevelInfo, Schema};
pub use engine::{ApplyReport, Engine, EngineEffects, LevelView, Ticket};
pub use flow::Flow;
pub use flow_hash::{FlowHasher, flow_hash};
pub use histogram::Histogram;
pub use request_head::{HeadSource, KnownHead, RequestHead};
pub use seat_seconds::SeatSeconds;
pub use terms::{FlowRate, Terms};
pub use work_estimate::WorkEstimate;

/// Tests the example of the page.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
