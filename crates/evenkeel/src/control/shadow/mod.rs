//! A shadow: a second configuration that decides about the same requests, and changes none of them (SH-1).
//!
//! Requests are classified by both configurations where their texts are, in their threads ([`tap`]). Records of a few words go
//! through [rings](crate::control::ring), from each thread and from each level, to the shadow's own thread ([`session`]). There
//! the [`model`] joins them and decides, with an engine of its own. [`figures`] counts the outcomes on both sides, and [`report`]
//! shows them to people.
//!
//! Requests never wait for the shadow: if it is too slow, it misses records and reports how many (SH-2).

mod figures;
mod model;
mod names;
mod records;
mod report;
mod running;
mod service_times;
mod session;
mod tap;

pub use report::{Moved, ShadowFigures, ShadowFlow, ShadowReport, ShadowWait, Sides};
pub use running::{Observed, ShadowSettings};

#[cfg(feature = "metrics")]
pub(crate) use report::ShadowTotals;
pub(crate) use tap::{Arriving, ShadowTap};
