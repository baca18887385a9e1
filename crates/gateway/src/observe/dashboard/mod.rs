//! The dashboard: looks at the flow control once a second, remembers ten minutes, and shows them to its viewers.
//!
//! `Recorder` makes a [`Frame`](crate::observe::frame::Frame) of two readings; it knows no clock and no network. [`Frames`] runs
//! it, keeps the latest frame for all viewers, and writes it as JSON at most once, and only if there is a viewer.

mod attribution;
mod changes;
mod frames;
mod history;
mod interval;
mod page;
mod recorder;
mod viewer;

pub(crate) use frames::{Sources, now_ms};
pub(crate) use page::{Asset, page};
pub(crate) use recorder::UpstreamReading;

pub use frames::{Frames, Recording};
pub use viewer::{TooManyViewers, Viewer};
