//! The locks and flags of the library, named in one place so that a test can put others in theirs.
//!
//! `tests/handover.rs` compiles the library with a module of this name that has shuttle's locks, and tries out the
//! orders in which threads can take them.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
pub(crate) use std::sync::{Mutex, MutexGuard, PoisonError};

/// Runs a test that takes locks of this module. (Those in their place elsewhere work only where they are told to.)
#[cfg(test)]
pub(crate) fn run_test(test: impl Fn() + Send + Sync + 'static) {
    test();
}
