//! An answer's body on its way to a client over HTTP/1.1, as fast as the client reads and no faster.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame};

use crate::client_body::ClientWire;
use crate::exchange::Exchange;
use crate::h1::Encoder;
use crate::stall;
use crate::ticks::{Alarm, Ticks};

/// How far a client may run ahead with its next requests.
const AHEAD_MAX: usize = 16 * 1024;

/// The answer did not get to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RelayError {
    /// The client has gone, or does not read.
    Client,
    /// The answer itself has no end.
    Answer,
    /// The time for the whole request is over.
    Time,
}

/// What an answer's way to the client needs.
pub(super) struct Relay<'a> {
    pub(super) client: &'a Rc<RefCell<ClientWire>>,
    pub(super) exchange: &'a Exchange,
    pub(super) ticks: &'a Rc<Ticks>,
    pub(super) stall_after: Duration,
    /// The end of the time for the whole request.
    pub(super) total: &'a mut Alarm,
    pub(super) sends_trailers: bool,
}

// === impl Relay ===

impl Relay<'_> {
    /// Sends the body, or only what is on the wire already if there is none.
    pub(super) async fn run<B>(&mut self, body: Pin<&mut B>, encoder: Option<Encoder>) -> Result<(), RelayError>
    where
        B: Body<Data = Bytes>,
    {
        let mut stall = self.ticks.alarm(self.stall_after);
        let result = self.send(body, encoder, &mut stall).await;
        if result == Err(RelayError::Answer) {
            // The client gets what there is. That it is not all must be seen.
            let _ = poll_fn(|context| self.poll_flush(context, &mut stall)).await;
            if encoder == Some(Encoder::ToTheClose) {
                self.client.borrow().wire.stream.reset_on_close();
            }
        }
        result
    }

    async fn send<B>(
        &mut self,
        mut body: Pin<&mut B>,
        encoder: Option<Encoder>,
        stall: &mut Alarm,
    ) -> Result<(), RelayError>
    where
        B: Body<Data = Bytes>,
    {
        if let Some(mut encoder) = encoder {
            while !body.is_end_stream() {
                let next = poll_fn(|context| self.poll_next(body.as_mut(), context, stall)).await?;
                let Some(frame) = next else { break };
                let is_last = !frame.is_data();
                self.encode(&mut encoder, frame)?;
                if is_last {
                    return poll_fn(|context| self.poll_flush(context, stall)).await;
                }
                stall.set(self.stall_after);
            }
            if self.client.borrow().wire.is_full() {
                poll_fn(|context| self.poll_flush(context, stall)).await?;
            }
            encoder.finish(None, &mut self.client.borrow_mut().wire).map_err(|_| RelayError::Answer)?;
        }
        poll_fn(|context| self.poll_flush(context, stall)).await
    }

    fn encode(&self, encoder: &mut Encoder, frame: Frame<Bytes>) -> Result<(), RelayError> {
        let wire = &mut self.client.borrow_mut().wire;
        let result = match frame.into_data() {
            Ok(data) => encoder.push(data, wire),
            Err(frame) => encoder.finish(frame.trailers_ref().filter(|_| self.sends_trailers), wire),
        };
        result.map_err(|_| RelayError::Answer)
    }

    /// The next part, when there is room for it.
    fn poll_next<B>(
        &mut self,
        body: Pin<&mut B>,
        context: &mut Context<'_>,
        stall: &mut Alarm,
    ) -> Poll<Result<Option<Frame<Bytes>>, RelayError>>
    where
        B: Body<Data = Bytes>,
    {
        if self.client.borrow().wire.is_full() {
            ready!(self.poll_flush(context, stall))?;
        }
        if let Poll::Ready(frame) = body.poll_frame(context) {
            return Poll::Ready(frame.transpose().map_err(|_| RelayError::Answer));
        }
        // Nothing comes for now: what is there should not wait.
        ready!(self.poll_flush(context, stall))?;
        if is_gone(&mut self.client.borrow_mut(), context) {
            return Poll::Ready(Err(RelayError::Client));
        }
        self.total.poll(context).map(|()| Err(RelayError::Time))
    }

    fn poll_flush(&mut self, context: &mut Context<'_>, stall: &mut Alarm) -> Poll<Result<(), RelayError>> {
        match self.client.borrow_mut().wire.poll_flush(context) {
            Poll::Ready(result) => Poll::Ready(result.map_err(|_| RelayError::Client)),
            Poll::Pending => {
                if self.total.poll(context).is_ready() {
                    return Poll::Ready(Err(RelayError::Time));
                }
                stall::poll(stall, self.stall_after, self.exchange, context).map(|()| Err(RelayError::Client))
            }
        }
    }
}

/// Whether the client has closed its connection. What it sends meanwhile is kept, up to a limit.
pub(super) fn is_gone(client: &mut ClientWire, context: &mut Context<'_>) -> bool {
    while client.wire.input.len() < AHEAD_MAX {
        match client.wire.poll_fill(context) {
            Poll::Ready(Ok(0) | Err(_)) => return true,
            // Whoever reads the body has to look again.
            Poll::Ready(Ok(_)) if !client.decoder.is_done() => context.waker().wake_by_ref(),
            Poll::Ready(Ok(_)) => {}
            Poll::Pending => return false,
        }
    }
    false
}
