//! `IdleTimeout`: rings when nothing has moved for too long in an exchange, neither of the request nor of its answer.
//!
//! A client that sends once and then listens has not stalled while something is said to it, and an upstream that is sent
//! a large body need not answer meanwhile. So there is one time for both directions at which something moved last. Noting it
//! costs next to nothing; it is looked at when an timeout rings, which then begins again if it was wrong.

use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use super::stream_timeout::StreamLimit;
use super::{CoarseTimer, Timeout};
use crate::proxy::exchange::Exchange;

/// The timeout of one side of an exchange.
#[derive(Debug)]
pub(crate) struct IdleTimeout {
    timeout: Timeout,
    after: Duration,
    exchange: Rc<Exchange>,
}

// === impl IdleTimeout ===

impl IdleTimeout {
    /// From now on, which counts as a movement.
    pub(crate) fn new(timer: &Rc<CoarseTimer>, exchange: &Rc<Exchange>, after: Duration) -> Self {
        exchange.note_movement(timer.now());
        Self { timeout: timer.timeout(after), after, exchange: Rc::clone(exchange) }
    }

    /// The exchange that it is about.
    pub(crate) fn exchange(&self) -> &Exchange {
        &self.exchange
    }

    /// Something has moved.
    pub(crate) fn note_movement(&self) {
        self.exchange.note_movement(self.timeout.now());
    }

    /// Whether nothing has moved for too long; if not, the task is woken to look again.
    pub(crate) fn poll(&mut self, context: &Context<'_>) -> Poll<()> {
        poll_idle(&mut self.timeout, self.after, &self.exchange, context)
    }
}

impl StreamLimit for IdleTimeout {
    fn set(&mut self, after: Duration) {
        self.timeout.set(after);
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        IdleTimeout::poll(self, context)
    }
}

/// Whether an timeout rings with good reason: nothing has moved in this exchange for so long.
pub(crate) fn poll_idle(
    timeout: &mut Timeout,
    after: Duration,
    exchange: &Exchange,
    context: &Context<'_>,
) -> Poll<()> {
    ready!(timeout.poll(context));
    timeout.set_from(exchange.moved_at(), after);
    timeout.poll(context)
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    #[test]
    fn what_moves_in_one_direction_keeps_the_other_alive() {
        let (timer, exchange, context) = (CoarseTimer::new(), Rc::default(), Context::from_waker(Waker::noop()));
        let after = Duration::from_millis(500);
        let (mut request, answer) =
            (IdleTimeout::new(&timer, &exchange, after), IdleTimeout::new(&timer, &exchange, after));
        for now in 1..100 {
            timer.advance(now);
            answer.note_movement();
            assert!(request.poll(&context).is_pending(), "{now}");
        }
        // Ten timer after the last movement, and two more because the clock may have been behind.
        for now in 100..111 {
            timer.advance(now);
            assert!(request.poll(&context).is_pending(), "{now}");
        }
        timer.advance(111);
        assert!(request.poll(&context).is_ready());
    }
}
