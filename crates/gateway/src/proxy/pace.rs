//! `Pace`: how fast a client has to send the body of its request, while the request has a seat or is about to ask for one.

use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::grpc_messages::GrpcMessages;
use crate::timeouts::{CoarseTimer, MinimumRate, Timeout};

/// How fast a body has to arrive.
#[derive(Debug)]
pub(crate) enum Pace {
    /// At any speed: the request has no seat any more, or its body is complete.
    Any,
    /// At the least rate over a long time, until the response begins. So a client gains no time by sending a byte now and then.
    UntilResponse(MinimumRate),
    /// At the least rate, whenever we wait for the client.
    Steady(MinimumRate),
    /// At the least rate while a message of gRPC has come in part. Between messages the client may pause.
    Messages {
        messages: GrpcMessages,
        minimum_rate: MinimumRate,
        /// Until when the first message has to begin, once the request has its seat.
        first_due: Timeout,
    },
}

// === impl Pace ===

impl Pace {
    pub(crate) fn messages(timer: &Rc<CoarseTimer>, minimum_rate: MinimumRate) -> Self {
        Self::Messages { messages: GrpcMessages::new(), minimum_rate, first_due: timer.timeout(Duration::ZERO) }
    }

    /// Notes that more of the body has arrived.
    pub(crate) fn note(&mut self, data: &[u8]) {
        match self {
            Self::Any => {}
            Self::UntilResponse(minimum_rate) | Self::Steady(minimum_rate) => minimum_rate.note(data.len()),
            Self::Messages { messages, minimum_rate, .. } => {
                if messages.advance(data) {
                    // Each message has time of its own: many short ones that come in two parts are not slow together.
                    minimum_rate.restart();
                } else {
                    minimum_rate.note(data.len());
                }
            }
        }
    }

    /// Whether a whole message of gRPC has come.
    pub(crate) fn has_message(&self) -> bool {
        matches!(self, Self::Messages { messages, .. } if messages.has_whole())
    }

    /// The request has its seat. If it is a call without a message, it has so much time for one.
    pub(crate) fn start(&mut self, first_message_after: Duration) {
        if let Self::Messages { first_due, messages, .. } = self
            && !messages.has_whole()
        {
            first_due.set(first_message_after);
        }
    }

    /// The body goes to an upstream that has no streams: the client may not pause, even between messages.
    pub(crate) fn steady(self) -> Self {
        match self {
            Self::Messages { mut minimum_rate, .. } => {
                minimum_rate.restart();
                Self::Steady(minimum_rate)
            }
            Self::Any | Self::UntilResponse(_) | Self::Steady(_) => self,
        }
    }

    /// The response has begun.
    pub(crate) fn note_response(&mut self) {
        if let Self::UntilResponse(_) = self {
            *self = Self::Any;
        }
    }

    /// We wait for the client. Ready when it is too slow.
    pub(crate) fn poll_slow(&mut self, context: &Context<'_>) -> Poll<()> {
        match self {
            Self::Any => Poll::Pending,
            Self::UntilResponse(minimum_rate) | Self::Steady(minimum_rate) => minimum_rate.poll_slow(context),
            Self::Messages { messages, minimum_rate, .. } if messages.has_part() => minimum_rate.poll_slow(context),
            Self::Messages { messages, .. } if messages.has_whole() => Poll::Pending,
            Self::Messages { first_due, .. } => first_due.poll(context),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    /// Ticks of the timer in a second, and in a minute.
    const SECOND: u64 = 20;
    const MINUTE: u64 = 60 * SECOND;
    const FIRST_MESSAGE: Duration = Duration::from_secs(5);

    fn pace() -> (Rc<CoarseTimer>, Pace) {
        let timer = CoarseTimer::new();
        let pace = Pace::messages(&timer, MinimumRate::new(&timer, 1024));
        (timer, pace)
    }

    /// Waits for the client; whether it is too slow at some time.
    fn is_slow(timer: &CoarseTimer, pace: &mut Pace, ticks: u64) -> bool {
        (0..ticks).any(|_| {
            timer.advance(timer.now() + 1);
            pace.poll_slow(&Context::from_waker(Waker::noop())).is_ready()
        })
    }

    #[test]
    fn a_client_may_pause_between_messages_but_not_within_one() {
        let (timer, mut pace) = pace();
        pace.note(b"\0\0\0\0\x02ab");
        pace.start(FIRST_MESSAGE);
        assert!(!is_slow(&timer, &mut pace, MINUTE));
        pace.note(b"\0\0\0\0\x02a");
        assert!(!is_slow(&timer, &mut pace, 9 * SECOND));
        pace.note(b"b");
        assert!(!is_slow(&timer, &mut pace, MINUTE));
        pace.note(b"\0");
        assert!(is_slow(&timer, &mut pace, 11 * SECOND));
    }

    #[test]
    fn messages_that_come_in_two_parts_are_not_slow_together() {
        let (timer, mut pace) = pace();
        for number in 0..100 {
            pace.note(b"\0\0\0\0\x02a");
            assert!(!is_slow(&timer, &mut pace, SECOND), "{number}");
            pace.note(b"b");
        }
    }

    #[test]
    fn a_stream_may_drip_once_its_response_has_begun() {
        let timer = CoarseTimer::new();
        let drips = |pace: &mut Pace| {
            (0..10).any(|_| {
                pace.note(b"x");
                is_slow(&timer, pace, 10 * SECOND)
            })
        };
        let mut pace = Pace::UntilResponse(MinimumRate::over(&timer, 1024, Duration::from_secs(60)));
        assert!(drips(&mut pace));
        let mut pace = Pace::UntilResponse(MinimumRate::over(&timer, 1024, Duration::from_secs(60)));
        pace.note_response();
        assert!(!drips(&mut pace));
    }

    #[test]
    fn the_first_message_is_due_with_a_seat() {
        let (timer, mut pace) = pace();
        assert!(!is_slow(&timer, &mut pace, MINUTE));
        pace.start(FIRST_MESSAGE);
        assert!(!is_slow(&timer, &mut pace, 4 * SECOND));
        assert!(is_slow(&timer, &mut pace, 2 * SECOND));
    }

    #[test]
    fn a_body_for_an_upstream_without_streams_may_not_pause() {
        let (timer, mut pace) = pace();
        pace.note(b"\0\0\0\0\x02ab");
        pace.start(FIRST_MESSAGE);
        assert!(!is_slow(&timer, &mut pace, MINUTE));
        let mut steady = pace.steady();
        assert!(is_slow(&timer, &mut steady, 11 * SECOND));
    }
}
