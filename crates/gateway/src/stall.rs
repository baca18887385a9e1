//! `Stall`: rings when nothing has moved for too long in an exchange, neither of the request nor of its answer.
//!
//! A client that sends once and then listens has not stalled while something is said to it, and an upstream that is sent
//! a large body need not answer meanwhile. So there is one time for both directions at which something moved last. Noting it
//! costs next to nothing; it is looked at when an alarm rings, which then begins again if it was wrong.

use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use crate::exchange::Exchange;
use crate::stream_watch::StallAlarm;
use crate::ticks::{Alarm, Ticks};

/// The alarm of one side of an exchange.
#[derive(Debug)]
pub(crate) struct Stall {
    alarm: Alarm,
    after: Duration,
    exchange: Rc<Exchange>,
}

// === impl Stall ===

impl Stall {
    /// From now on, which counts as a movement.
    pub(crate) fn new(ticks: &Rc<Ticks>, exchange: &Rc<Exchange>, after: Duration) -> Self {
        exchange.note_movement(ticks.now());
        Self { alarm: ticks.alarm(after), after, exchange: Rc::clone(exchange) }
    }

    /// The exchange that it is about.
    pub(crate) fn exchange(&self) -> &Exchange {
        &self.exchange
    }

    /// Something has moved.
    pub(crate) fn note_movement(&self) {
        self.exchange.note_movement(self.alarm.now());
    }

    /// Whether nothing has moved for too long; if not, the task is woken to look again.
    pub(crate) fn poll(&mut self, context: &Context<'_>) -> Poll<()> {
        poll(&mut self.alarm, self.after, &self.exchange, context)
    }
}

impl StallAlarm for Stall {
    fn set(&mut self, after: Duration) {
        self.alarm.set(after);
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        Stall::poll(self, context)
    }
}

/// Whether an alarm rings with good reason: nothing has moved in this exchange for so long.
pub(crate) fn poll(alarm: &mut Alarm, after: Duration, exchange: &Exchange, context: &Context<'_>) -> Poll<()> {
    ready!(alarm.poll(context));
    alarm.set_from(exchange.moved_at(), after);
    alarm.poll(context)
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    #[test]
    fn what_moves_in_one_direction_keeps_the_other_alive() {
        let (ticks, exchange, context) = (Ticks::new(), Rc::default(), Context::from_waker(Waker::noop()));
        let after = Duration::from_millis(500);
        let (mut request, answer) = (Stall::new(&ticks, &exchange, after), Stall::new(&ticks, &exchange, after));
        for now in 1..100 {
            ticks.advance(now);
            answer.note_movement();
            assert!(request.poll(&context).is_pending(), "{now}");
        }
        // Ten ticks after the last movement, and two more because the clock may have been behind.
        for now in 100..111 {
            ticks.advance(now);
            assert!(request.poll(&context).is_pending(), "{now}");
        }
        ticks.advance(111);
        assert!(request.poll(&context).is_ready());
    }
}
