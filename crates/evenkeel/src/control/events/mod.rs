//! The event stream of a level: everything that happens there, in order, for all listeners.
//!
//! While the lock of a level is held, its [core](crate::control::core) decides, and appends what happened to a buffer as
//! [`Event`]s of 64 bytes. That is all: nothing is counted there. When the buffer has some dozens of them, the thread that appended the
//! last one takes the buffer away, after it has given the lock back, and hands it to the listeners of the level under a lock of their
//! own ([`LevelListeners`](crate::control::level_listeners::LevelListeners)).
//!
//! # Order
//!
//! The lock of the level gives each event its place. A buffer is taken away under the listeners' lock, which is held until its
//! events have been handed on. So every listener gets the events of a level one after the other, in the order in which they happened, though
//! different threads hand them on.
//!
//! # No lag
//!
//! A thread that reads the counts of listeners takes their lock, hands on the events in the buffer, and then reads. So a number
//! is never behind what a client has seen.
//!
//! # Bounds
//!
//! The buffer has room for [`BATCH`] events. If the listeners are slow, it grows to [`BACKLOG_MAX`]; then requests wait for the
//! listeners, as they would if everything were counted under one lock. One event of a level may go beyond that: the end of a
//! pause, say, that starts many requests.

mod buffer;
mod event;
mod listener;

pub(crate) use buffer::{BACKLOG_MAX, BATCH, EventBuffer};
pub use event::{CostKind, Event, EventKind, LevelNumbers, RunEnd};
pub(crate) use event::{EventSubject, NO_QUEUE};
pub use listener::{Arrival, ArrivalListener, Listener};
pub(crate) use listener::{ArrivalsTo, Listeners, MakeListener};
