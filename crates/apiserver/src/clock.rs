//! The current time, to the second, as objects and responses show it.

use std::time::{SystemTime, UNIX_EPOCH};

use evenkeel_api::meta::Time;

/// Now.
pub(crate) fn now() -> Time {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs());
    Time::from_unix_seconds(i64::try_from(seconds).unwrap_or(i64::MAX))
}
