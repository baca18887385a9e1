//! `Trouble`: what goes wrong again and again is said once, and so is that it is over.

use std::fmt::Display;

/// Something that is tried again and again, and whether it failed the last time.
#[derive(Debug)]
pub(crate) struct Trouble {
    /// What it means that it fails.
    meaning: &'static str,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Fine,
    Failing,
}

// === impl Trouble ===

impl Trouble {
    pub(crate) fn new(meaning: &'static str) -> Self {
        Self { meaning, state: State::Fine }
    }

    /// It has failed.
    pub(crate) fn failed(&mut self, problem: &impl Display) {
        if std::mem::replace(&mut self.state, State::Failing) == State::Fine {
            tracing::warn!(%problem, "{}", self.meaning);
        }
    }

    /// It has worked.
    pub(crate) fn worked(&mut self) {
        if std::mem::replace(&mut self.state, State::Fine) == State::Failing {
            tracing::info!("it is over that {}", self.meaning);
        }
    }

    /// It has worked or failed.
    pub(crate) fn note<E: Display>(&mut self, outcome: &Result<(), E>) {
        match outcome {
            Ok(()) => self.worked(),
            Err(problem) => self.failed(problem),
        }
    }
}
