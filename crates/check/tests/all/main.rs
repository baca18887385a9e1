//! All tests of the crate.

#[path = "../oracle/mod.rs"]
mod oracle;

mod differences;
mod faults;
mod reachability;
mod short_form;
