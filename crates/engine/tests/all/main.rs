//! The tests of the engine, in one program: each further program would have to be linked.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod attribution;
mod auto_limit;
mod borrowing_properties;
mod busy_engine;
mod classify_model;
mod classify_rules;
mod closed_loop;
mod conformance_selectors;
mod controller_levels;
mod controller_limits;
mod controller_objects;
mod digest_properties;
mod exact_seats;
mod golden_allocate;
mod golden_borrowing;
mod golden_classify;
mod golden_deal;
mod golden_estimate;
mod golden_flow_hash;
mod golden_limits;
mod golden_queue_set;
mod golden_request_info;
mod golden_retry_after;
mod ledger_model;
mod ledger_widths;
mod level_table;
mod linear;
mod modes_together;
mod newcomers_borrow;
mod other_division;
mod plain_ledger;
mod plain_queue_set;
mod queue_set_events;
mod queue_set_fairness;
mod queue_set_invariants;
mod queue_set_model;
mod queue_set_trace;
mod queue_set_traces;
mod running_costs;
mod seatless;
mod short_form;
mod timeouts;
