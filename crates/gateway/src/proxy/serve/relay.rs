//! A response's body on its way to a client over HTTP/1.1, as fast as the client reads and no faster.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame};

use super::buffered_body::BufferedBody;
use super::disconnect;
use crate::http1::Encoder;
use crate::proxy::buffers::EvictableBuffer;
use crate::proxy::connection::Connection;
use crate::proxy::exchange::Exchange;
use crate::proxy::record::TIMEOUT;
use crate::proxy::request_body::ClientWire;
use crate::timeouts::{IdleTimeout, MinimumRate, Timeout};

/// The response did not get to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RelayError {
    /// The client has gone, or does not read.
    Client,
    /// The response was cut off by the upstream.
    Response,
    /// The time for the whole request is over.
    Time,
}

/// The parts that sending a response to its client takes.
pub(super) struct Relay<'a> {
    pub(super) client: &'a Rc<RefCell<ClientWire>>,
    pub(super) exchange: &'a Rc<Exchange>,
    pub(super) connection: &'a Connection,
    /// Counts the bytes that the client has not taken.
    pub(super) buffer: Option<EvictableBuffer>,
    /// Whether the client reads fast enough, as long as the request has its seats.
    pub(super) minimum_rate: MinimumRate,
    /// The end of the time for the whole request.
    pub(super) total: &'a mut Timeout,
    pub(super) sends_trailers: bool,
}

// === impl Relay ===

impl Relay<'_> {
    /// Sends the body, or only what is on the wire already if there is none.
    pub(super) async fn run(&mut self, body: &mut BufferedBody, encoder: Option<Encoder>) -> Result<(), RelayError> {
        let worker = &self.connection.worker;
        let mut stall = IdleTimeout::new(&worker.timer, self.exchange, self.exchange.timeouts.stall);
        let result = self.send(body, encoder, &mut stall).await;
        if result == Err(RelayError::Time) {
            self.exchange.note(|record| record.note_cut_off(TIMEOUT));
        }
        if result == Err(RelayError::Response) {
            // The client gets the bytes that there are. It must be able to see that they are not all.
            let _ = poll_fn(|context| self.poll_flush(context, &mut stall)).await;
            if encoder == Some(Encoder::ToTheClose) {
                self.client.borrow().wire.stream.reset_on_close();
            }
        }
        result
    }

    async fn send(
        &mut self,
        body: &mut BufferedBody,
        encoder: Option<Encoder>,
        stall: &mut IdleTimeout<Exchange>,
    ) -> Result<(), RelayError> {
        if let Some(mut encoder) = encoder {
            while !body.is_end_stream() {
                let next = poll_fn(|context| self.poll_next(body, context, stall)).await?;
                let Some(frame) = next else { break };
                let is_last = !frame.is_data();
                self.encode(&mut encoder, frame)?;
                if is_last {
                    return poll_fn(|context| self.poll_flush(context, stall)).await;
                }
                stall.note_activity();
            }
            if self.client.borrow().wire.is_full() {
                poll_fn(|context| self.poll_flush(context, stall)).await?;
            }
            encoder.finish(None, &mut self.client.borrow_mut().wire).map_err(|_| RelayError::Response)?;
        }
        poll_fn(|context| self.poll_flush(context, stall)).await
    }

    fn encode(&self, encoder: &mut Encoder, frame: Frame<Bytes>) -> Result<(), RelayError> {
        let wire = &mut self.client.borrow_mut().wire;
        let result = match frame.into_data() {
            Ok(data) => encoder.push(data, wire),
            Err(frame) => encoder.finish(frame.trailers_ref().filter(|_| self.sends_trailers), wire),
        };
        result.map_err(|_| RelayError::Response)
    }

    /// The next part, when there is room for it.
    fn poll_next(
        &mut self,
        body: &mut BufferedBody,
        context: &mut Context<'_>,
        stall: &mut IdleTimeout<Exchange>,
    ) -> Poll<Result<Option<Frame<Bytes>>, RelayError>> {
        if self.client.borrow().wire.is_full() {
            ready!(self.poll_room(body, context, stall))?;
        }
        if let Poll::Ready(frame) = Pin::new(body).poll_frame(context) {
            return Poll::Ready(frame.transpose().map_err(|_| RelayError::Response));
        }
        // No further bytes are there for now, so the present ones are sent.
        ready!(self.poll_flush(context, stall))?;
        if disconnect::has_left(&mut self.client.borrow_mut(), &self.connection.worker.timer, context) {
            return Poll::Ready(Err(RelayError::Client));
        }
        self.total.poll(context).map(|()| Err(RelayError::Time))
    }

    /// Waits until the client has taken all bytes. The request does not keep its seats for that: the rest of the response is read
    /// meanwhile, as far as there is room for it. Beyond that the client has to keep a least rate.
    fn poll_room(
        &mut self,
        body: &mut BufferedBody,
        context: &mut Context<'_>,
        stall: &mut IdleTimeout<Exchange>,
    ) -> Poll<Result<(), RelayError>> {
        let before = self.client.borrow().wire.unsent();
        let flushed = self.poll_flush(context, stall);
        let taken = before.saturating_sub(self.client.borrow().wire.unsent());
        self.minimum_rate.note(taken);
        if flushed.is_ready() {
            return flushed;
        }
        body.poll_ahead(context);
        if body.is_held_up() && self.minimum_rate.poll_slow(context).is_ready() {
            self.connection.worker.metrics.client_too_slow();
            return Poll::Ready(Err(RelayError::Client));
        }
        Poll::Pending
    }

    fn poll_flush(
        &mut self,
        context: &mut Context<'_>,
        stall: &mut IdleTimeout<Exchange>,
    ) -> Poll<Result<(), RelayError>> {
        let mut client = self.client.borrow_mut();
        let unsent = client.wire.unsent();
        match client.wire.poll_flush(context) {
            Poll::Ready(result) => {
                self.buffer = None;
                Poll::Ready(result.map_err(|_| RelayError::Client))
            }
            Poll::Pending => {
                let connection = self.connection;
                let new = || connection.worker.buffers.evictable(&connection.client);
                let buffer = self.buffer.get_or_insert_with(new);
                if client.wire.unsent() < unsent {
                    stall.note_activity();
                }
                buffer.set(client.wire.unsent());
                if buffer.poll_evicted(context).is_ready() {
                    connection.worker.metrics.client_too_slow();
                    return Poll::Ready(Err(RelayError::Client));
                }
                if self.total.poll(context).is_ready() {
                    return Poll::Ready(Err(RelayError::Time));
                }
                ready!(stall.poll(context));
                // A slow reader may have taken some of the bytes in the system's buffer.
                if client.wire.write_now() {
                    stall.note_activity();
                    return stall.poll(context).map(|()| Err(RelayError::Client));
                }
                Poll::Ready(Err(RelayError::Client))
            }
        }
    }
}
