//! A canary: a part of the flows is decided about by a second configuration, for real, with its part of the seats (SH-5).
//!
//! The second configuration is a flow control of its own ([`running`]), which the first one hands requests to where they are
//! classified ([`slot`]). [`counts`] listens to its levels, and [`watch`] decides by that whether it has to end: the flows go back to the
//! first configuration then, and the seats follow.

mod counts;
mod running;
mod slot;
mod state;
mod watch;

pub use running::{CanaryError, CanarySettings};
pub use state::{CanaryBounds, CanaryPhase, CanaryState};

pub(crate) use slot::CanarySlot;
