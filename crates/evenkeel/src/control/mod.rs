//! The flow control itself: it takes requests in, lets them wait, wakes them, and follows its objects.

pub(crate) mod admission;
pub(crate) mod admit;
pub(crate) mod builder;
pub(crate) mod class;
pub(crate) mod clock;
pub(crate) mod flow_control;
pub(crate) mod into_objects;
pub(crate) mod kept_details;
pub(crate) mod known_levels;
pub(crate) mod ledger;
pub(crate) mod level;
pub(crate) mod long_running;
pub(crate) mod object_problems;
pub(crate) mod observers;
pub(crate) mod permit;
pub(crate) mod rare_list;
pub(crate) mod rejected;
pub(crate) mod request;
pub(crate) mod retry;
pub(crate) mod seat_division;
pub(crate) mod seat_times;
pub(crate) mod snapshot;
pub(crate) mod upkeep;
