//! What requests cost: what is expected of them, what they turn out to cost, and what follows for their seats and their flows (CO).
//!
//! A cost is a number in a unit that the operator has chosen: seconds, bytes, whatever the service reports. Nothing here knows the unit.
//!
//! 1. When a request arrives, [`LearntCosts::expected`] says what requests of its [class](CostClass) have cost, and a [`SeatRule`] how
//!    many seats that is.
//! 2. While the request runs, its [`CostAccount`] is told what has arisen, and says what to charge and how many seats to hold.
//! 3. When it ends, the account says what remains to be charged, and [`LearntCosts::learn`] and [`SeatTimePrice::learn`] take the exact
//!    cost in.

mod account;
mod average;
mod class;
mod learnt;
mod price;
mod seat_rule;

pub use account::{Adjustment, CostAccount, Settlement};
pub use class::{CostClass, path_pattern, route_key, text_key, unit_key};
pub use learnt::{CLASSES_MAX, ClassPlace, ClassWidth, Expectation, LearntCosts, SEEN_MIN};
pub use price::SeatTimePrice;
pub use seat_rule::SeatRule;

/// The largest cost that is taken as it is; a larger one counts as this. Far above all units in use, and far below where sums of costs
/// lose what is added to them.
pub const COST_MAX: f64 = 1e15;

/// A cost within 0 and [`COST_MAX`]. NaN counts as zero.
#[inline]
pub fn sane(cost: f64) -> f64 {
    if cost.is_nan() { 0.0 } else { cost.clamp(0.0, COST_MAX) }
}
