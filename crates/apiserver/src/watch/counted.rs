//! A watch whose events are counted as bytes in flight, and wait for room on the connection.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;

use super::WatchBody;
use crate::in_flight::{ConnectionInFlight, Turn};

/// The body of a watch on its connection.
pub(crate) struct CountedWatch {
    watch: WatchBody,
    in_flight: ConnectionInFlight,
    waiting: WaitingFor,
}

/// The things that the watch waits for, besides the next event.
enum WaitingFor {
    Nothing,
    /// Another watch of the connection has an event for which there is no room.
    Turn(Pin<Box<dyn Future<Output = Option<Turn>> + Send>>),
    /// There is no room for this watch's event.
    Room(Pin<Box<dyn Future<Output = Bytes> + Send>>),
}

// === impl CountedWatch ===

impl CountedWatch {
    pub(crate) fn new(watch: WatchBody, in_flight: ConnectionInFlight) -> Self {
        Self { watch, in_flight, waiting: WaitingFor::Nothing }
    }

    /// The next event, as soon as there is one and room for it. None at the end.
    pub(crate) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            let turn = match &mut self.waiting {
                WaitingFor::Room(event) => {
                    let event = ready!(event.as_mut().poll(context));
                    self.waiting = WaitingFor::Nothing;
                    return Poll::Ready(Some(event));
                }
                WaitingFor::Turn(turn) => {
                    let turn = ready!(turn.as_mut().poll(context));
                    self.waiting = WaitingFor::Nothing;
                    turn
                }
                WaitingFor::Nothing => self.in_flight.try_turn(),
            };
            let Some(turn) = turn else {
                self.waiting = WaitingFor::Turn(Box::pin(self.in_flight.clone().turn()));
                continue;
            };
            // The turn is given back at once, unless there is an event without room.
            let Some(event) = ready!(self.watch.poll_line(context)) else { return Poll::Ready(None) };
            match self.in_flight.try_count(event) {
                Ok(event) => return Poll::Ready(Some(event)),
                Err(event) => {
                    let counted = self.in_flight.clone().count(event);
                    self.waiting = WaitingFor::Room(Box::pin(async move {
                        let event = counted.await;
                        drop(turn);
                        event
                    }));
                }
            }
        }
    }
}

impl fmt::Debug for CountedWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CountedWatch").field("watch", &self.watch).finish_non_exhaustive()
    }
}
