//! The flow control itself: it takes requests in, lets them wait, wakes them, counts them, and follows its objects. It knows
//! nothing of `layer` and `observe`, which are built on it.

pub(crate) mod accounts;
pub(crate) mod admission;
pub(crate) mod admit;
pub(crate) mod builder;
pub(crate) mod canary;
pub(crate) mod class;
pub(crate) mod clock;
pub(crate) mod core;
mod core_events;
pub(crate) mod cost_source;
pub(crate) mod counts;
pub(crate) mod digests;
pub(crate) mod events;
#[cfg(feature = "check")]
mod findings;
#[cfg(feature = "fleet")]
pub(crate) mod fleet;
pub(crate) mod flight;
pub(crate) mod flow_control;
pub(crate) mod into_objects;
pub(crate) mod known_levels;
pub(crate) mod ledger;
pub(crate) mod level;
pub(crate) mod level_listeners;
mod level_names;
pub(crate) mod limit;
pub(crate) mod long_running;
pub(crate) mod object_problems;
pub(crate) mod permit;
pub(crate) mod rare_list;
pub(crate) mod recorder;
pub(crate) mod rejected;
pub(crate) mod request;
pub(crate) mod retry;
pub(crate) mod reused_box;
pub(crate) mod revocation;
mod ring;
mod rings;
pub(crate) mod seat_division;
pub(crate) mod seat_times;
pub(crate) mod shadow;
mod short_form;
pub(crate) mod snapshot;
pub(crate) mod trace;
pub(crate) mod uid_headers;
pub(crate) mod upkeep;
pub(crate) mod wakers;
pub(crate) mod work;
