//! Random statuses.

use evenkeel_api::v1::{Condition, Status};
use proptest::option;
use proptest::prelude::*;

use super::meta::time;
use super::{few, text};

/// The status of an object of either kind.
pub fn status() -> BoxedStrategy<Status> {
    few(condition()).prop_map(|conditions| Status { conditions }).boxed()
}

fn condition() -> BoxedStrategy<Condition> {
    let condition = prop_oneof![Just("Dangling".to_owned()), text()];
    (condition, text(), option::of(time()), text(), text())
        .prop_map(|(condition, status, last_transition_time, reason, message)| Condition {
            condition,
            status,
            last_transition_time,
            reason,
            message,
        })
        .boxed()
}
