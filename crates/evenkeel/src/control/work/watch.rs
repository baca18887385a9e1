//! A watch that is counted while it runs (WE-20).

use std::sync::{Arc, Mutex, PoisonError};

use evenkeel_engine::RequestInfo;
use evenkeel_engine::digest::Query;
use evenkeel_engine::work::{WatchCounts, WatchRegistration};

/// A watch: counted from the time it is let in until its response has ended (HF-9, HF-11).
#[derive(Debug)]
pub struct Watch {
    counts: Arc<Mutex<WatchCounts>>,
    state: WatchState,
}

#[derive(Debug)]
enum WatchState {
    /// The watch has not been let in yet.
    Announced { request: Box<RequestInfo<'static>>, query: Box<str> },
    /// Let in. Some watches are not counted even then (WE-21).
    Running(Option<WatchRegistration>),
}

// === impl Watch ===

impl Watch {
    pub(super) fn new(counts: Arc<Mutex<WatchCounts>>, request: &RequestInfo<'_>, query: Query<'_>) -> Self {
        let request = Box::new(request.clone().into_owned());
        Self { counts, state: WatchState::Announced { request, query: query.as_str().into() } }
    }

    /// The watch has been let in: it counts from now on.
    pub(crate) fn start(&mut self) {
        if let WatchState::Announced { request, query } = &self.state {
            let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
            let registration = counts.register(request, Query::new(query));
            drop(counts);
            self.state = WatchState::Running(registration);
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let WatchState::Running(registration) = &mut self.state
            && let Some(registration) = registration.take()
        {
            self.counts.lock().unwrap_or_else(PoisonError::into_inner).forget(registration);
        }
    }
}
