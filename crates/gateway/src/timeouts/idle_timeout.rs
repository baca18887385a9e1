//! `IdleTimeout`: ends a request of which nothing has moved for too long, in neither direction.
//!
//! A client that waits for a response is not idle while it receives data, and an upstream that receives a large body need
//! not respond meanwhile. So both directions share one [`Activity`]. Recording activity costs next to nothing: the time is
//! compared only when a timeout fires, which then starts again if there was activity.

use std::cell::Cell;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use super::stream_timeout::Restart;
use super::{CoarseTimer, Timeout};

/// When something moved last, by the worker's timer.
#[derive(Debug, Default)]
pub(crate) struct Activity(Cell<u64>);

/// Something that has an activity.
pub(crate) trait Active {
    fn activity(&self) -> &Activity;
}

/// The timeout of one side of whatever is active.
#[derive(Debug)]
pub(crate) struct IdleTimeout<A> {
    timeout: Timeout,
    after: Duration,
    subject: Rc<A>,
}

// === impl Activity ===

impl Activity {
    /// Something moves now.
    pub(crate) fn note(&self, timer: &CoarseTimer) {
        self.0.set(timer.now());
    }
}

impl Active for Activity {
    fn activity(&self) -> &Activity {
        self
    }
}

// === impl IdleTimeout ===

impl<A: Active> IdleTimeout<A> {
    /// Starts now, which counts as activity.
    pub(crate) fn new(timer: &Rc<CoarseTimer>, subject: &Rc<A>, after: Duration) -> Self {
        subject.activity().note(timer);
        Self { timeout: timer.timeout(after), after, subject: Rc::clone(subject) }
    }

    /// How long without activity it fires after.
    pub(crate) fn after(&self) -> Duration {
        self.after
    }

    /// The subject whose activity is watched.
    pub(crate) fn subject(&self) -> &A {
        &self.subject
    }

    /// Something has moved.
    pub(crate) fn note_activity(&self) {
        self.subject.activity().0.set(self.timeout.now());
    }

    /// Whether nothing has moved for too long; if not, the task is woken to check again.
    pub(crate) fn poll(&mut self, context: &Context<'_>) -> Poll<()> {
        ready!(self.timeout.poll(context));
        self.timeout.set_from(self.subject.activity().0.get(), self.after);
        self.timeout.poll(context)
    }
}

impl<A: Active> Restart for IdleTimeout<A> {
    fn restart(&mut self, after: Duration) {
        self.timeout.set(after);
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        IdleTimeout::poll(self, context)
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    #[test]
    fn activity_in_one_direction_keeps_the_other_alive() {
        let (timer, activity, context) =
            (CoarseTimer::new(), Rc::<Activity>::default(), Context::from_waker(Waker::noop()));
        let after = Duration::from_millis(500);
        let (mut request, response) =
            (IdleTimeout::new(&timer, &activity, after), IdleTimeout::new(&timer, &activity, after));
        for now in 1..100 {
            timer.advance(now);
            response.note_activity();
            assert!(request.poll(&context).is_pending(), "{now}");
        }
        // Ten ticks after the last activity, and two more because the timer may have been behind.
        for now in 100..111 {
            timer.advance(now);
            assert!(request.poll(&context).is_pending(), "{now}");
        }
        timer.advance(111);
        assert!(request.poll(&context).is_ready());
    }
}
