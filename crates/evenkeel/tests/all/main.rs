//! The tests of the library, in one program: each further program would have to be linked.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod auto_limit;
mod auto_traits;
mod canary;
mod cancellation;
mod cost_sources;
#[path = "../costed_objects/mod.rs"]
mod costed_objects;
mod debug_dumps;
mod debug_router;
mod e2e_gone;
mod events;
mod explain;
mod extract;
mod fairness;
mod flows;
mod invalid_objects;
mod keeper;
#[path = "../layer/mod.rs"]
mod layer;
mod layer_body;
mod layer_boxed;
mod layer_deadlines;
mod layer_local;
mod layer_metrics;
mod layer_readiness;
mod layer_responses;
mod layer_rules;
mod layer_waiting;
mod learnt_costs;
mod lingering;
mod metrics_exposition;
mod metrics_scenarios;
mod metrics_scrape;
mod newcomers;
#[path = "../observed/mod.rs"]
mod observed;
mod panics;
mod plain;
#[path = "../random_objects/mod.rs"]
mod random_objects;
mod rates;
mod reconfiguration;
mod recorder;
mod revocation;
mod running_costs;
mod seat_times;
#[path = "../service/mod.rs"]
mod service;
mod shadow;
mod short_form;
mod subscriber;
mod timeouts;
mod wakers;

// `service` is also part of tests that compile the library themselves, and so takes this from the root.
use evenkeel::FlowControl;
