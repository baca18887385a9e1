//! A request to an upstream over HTTP/1.1.
//!
//! The future that waits for the response drives it: a connection has no task of its own, and dropping the request closes it.

use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http::{HeaderMap, Method};
use http_body::{Body, Frame};
use tokio::io::AsyncWrite;

use super::Upstream;
use crate::http1::{Decoded, Decoder, Encoder, Overrun, ResponseHead, Wire};
use crate::proxy::exchange::Exchange;
use crate::proxy::request_body::{BodyError, RequestBody};
use crate::proxy::response_body::ResponseBodyError;
use crate::timeouts::IdleTimeout;

/// A request whose head is to be sent, or has been, and whose response has not begun.
#[derive(Debug)]
pub(crate) struct Http1Call {
    sending: Sending,
    method: Method,
    has_input: bool,
}

/// The body of the response to a request.
#[derive(Debug)]
pub(crate) enum Http1Body {
    /// All of it. Others may use the connection already.
    Whole(Bytes),
    /// Some of it is still to come.
    Open(Box<Http1Response>),
}

/// The response to a request, from the end of its head on.
#[derive(Debug)]
pub(crate) struct Http1Response {
    /// `None` when the connection has been given back or closed.
    sending: Option<Sending>,
    decoder: Decoder,
    is_kept_alive: bool,
    upstream: Rc<Upstream>,
    stall: IdleTimeout<Exchange>,
}

/// A connection with the request that is being sent on it.
#[derive(Debug)]
struct Sending {
    wire: Box<Wire>,
    body: RequestBody,
    encoder: Encoder,
    is_complete: bool,
    /// How the sending half of the connection ends.
    end: SendingEnd,
    /// How many bytes the upstream has taken.
    taken: u64,
}

/// How the sending half of a connection to an upstream ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SendingEnd {
    /// The connection stays open for the next request.
    Open,
    /// The connection is to be closed: the client has left.
    Closing,
    Closed,
}

/// The body of the request does not end, or has another length than was announced.
struct Unsendable;

/// Why a call has no response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallError {
    /// The upstream has closed the connection.
    Closed,
    /// What the upstream has sent is not a valid HTTP response.
    Malformed,
}

/// Bodies up to this length are taken whole if they have come with their heads.
const WHOLE_MAX: usize = 4 * 1024;

// === impl Http1Call ===

impl Http1Call {
    /// A request whose head is on the wire already.
    pub(crate) fn new(wire: Box<Wire>, method: Method, body: RequestBody, encoder: Encoder) -> Self {
        let is_complete = body.is_none();
        let sending = Sending { wire, body, encoder, is_complete, end: SendingEnd::Open, taken: 0 };
        Self { sending, method, has_input: false }
    }

    /// Tells the upstream that its client has disconnected, by closing the sending half of the connection.
    pub(crate) fn half_close(&mut self) {
        self.sending.half_close();
    }

    /// Sends, and waits for the head of a response, be it an interim one.
    pub(crate) fn poll_head(&mut self, context: &mut Context<'_>) -> Poll<Result<ResponseHead, CallError>> {
        if let Poll::Ready(Err(_)) = self.sending.poll(context) {
            // An upstream that does not want to read on may have said why.
            self.sending.is_complete = true;
        }
        let wire = &mut self.sending.wire;
        loop {
            if !wire.input.is_empty() {
                self.has_input = true;
                let (input, heads) = wire.input_and_heads();
                match ResponseHead::take(input, heads, &self.method) {
                    Ok(Some(head)) => return Poll::Ready(Ok(head)),
                    Ok(None) => {}
                    Err(_) => return Poll::Ready(Err(CallError::Malformed)),
                }
            }
            match ready!(wire.poll_fill(context)) {
                Ok(0) | Err(_) => return Poll::Ready(Err(CallError::Closed)),
                Ok(_) => {}
            }
        }
    }

    /// The request's body, to be sent to another upstream, if nothing of it has been read and there is no response.
    pub(crate) fn into_unsent_body(self) -> Option<RequestBody> {
        let is_untouched = self.sending.end == SendingEnd::Open && self.sending.body.is_untouched();
        (!self.has_input && is_untouched).then_some(self.sending.body)
    }

    /// Whether the request has no body.
    pub(crate) fn has_no_body(&self) -> bool {
        self.sending.body.is_none()
    }

    /// How much of the request has been taken so far, to see whether it moves.
    pub(crate) fn sent(&self) -> u64 {
        self.sending.taken
    }

    /// Sends as much as there is room for, although the system has not said that there is any. Returns whether anything has
    /// moved.
    pub(crate) fn send_now(&mut self) -> bool {
        self.sending.wire.write_now()
    }

    /// Takes the headers of the request, which have been sent.
    pub(crate) fn give_back(&mut self, headers: HeaderMap) {
        self.sending.wire.heads().give_back(headers);
    }

    /// The connection, for another protocol than HTTP.
    pub(crate) fn into_wire(self) -> Wire {
        *self.sending.wire
    }

    /// The body of the response that begins with this head.
    pub(crate) fn into_body(
        mut self,
        head: &ResponseHead,
        upstream: &Rc<Upstream>,
        stall: impl FnOnce() -> IdleTimeout<Exchange>,
    ) -> Http1Body {
        if let Some(whole) = self.whole(head) {
            if head.is_kept_alive {
                self.sending.give_back(upstream);
            }
            return Http1Body::Whole(whole);
        }
        Http1Body::Open(Box::new(Http1Response {
            sending: Some(self.sending),
            decoder: head.body,
            is_kept_alive: head.is_kept_alive,
            upstream: Rc::clone(upstream),
            stall: stall(),
        }))
    }

    /// The whole body, if it is short and there already, as most are.
    fn whole(&mut self, head: &ResponseHead) -> Option<Bytes> {
        if head.body.is_done() {
            return Some(Bytes::new());
        }
        let length = usize::try_from(head.body.left()?).ok().filter(|length| *length <= WHOLE_MAX)?;
        let input = &mut self.sending.wire.input;
        if !self.sending.is_complete || input.len() < length {
            return None;
        }
        // A copy, so that the buffer stays with the connection.
        let body = Bytes::copy_from_slice(&input[..length]);
        input.advance(length);
        Some(body)
    }
}

// === impl Http1Response ===

impl Http1Response {
    /// The next part of the body, while the rest of the request is sent.
    pub(crate) fn poll_frame(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ResponseBodyError>>> {
        let Poll::Ready(frame) = self.poll_decoded(context) else {
            ready!(self.stall.poll(context));
            self.sending = None;
            return Poll::Ready(Some(Err(ResponseBodyError::Stalled)));
        };
        self.stall.note_activity();
        match frame {
            Ok(Decoded::Data(data)) => {
                if self.decoder.is_done() {
                    self.end();
                }
                Poll::Ready(Some(Ok(Frame::data(data))))
            }
            Ok(Decoded::Trailers(trailers)) => {
                self.end();
                Poll::Ready(Some(Ok(Frame::trailers(trailers))))
            }
            Ok(Decoded::End) => {
                self.end();
                Poll::Ready(None)
            }
            Err(error) => {
                self.sending = None;
                Poll::Ready(Some(Err(error)))
            }
        }
    }

    fn poll_decoded(&mut self, context: &mut Context<'_>) -> Poll<Result<Decoded, ResponseBodyError>> {
        let Some(sending) = &mut self.sending else { return Poll::Ready(Ok(Decoded::End)) };
        if self.stall.subject().has_client_left() {
            sending.half_close();
        }
        if let Poll::Ready(Err(_)) = sending.poll(context) {
            sending.is_complete = true;
            self.is_kept_alive = false;
        }
        loop {
            match self.decoder.decode(&mut sending.wire.input) {
                Ok(Some(decoded)) => return Poll::Ready(Ok(decoded)),
                Ok(None) => {}
                Err(_) => return Poll::Ready(Err(ResponseBodyError::Malformed)),
            }
            match ready!(sending.wire.poll_fill(context)) {
                // A reset connection, or TLS without a closing message, does not count as the end of a response.
                Ok(0) if self.decoder.close() => return Poll::Ready(Ok(Decoded::End)),
                Ok(0) | Err(_) => return Poll::Ready(Err(ResponseBodyError::Cut)),
                Ok(_) => {}
            }
        }
    }

    /// Whether the whole body has been taken.
    pub(crate) fn is_ended(&self) -> bool {
        self.sending.is_none()
    }

    /// How much is left, if that is known.
    pub(crate) fn left(&self) -> Option<u64> {
        self.decoder.left()
    }

    /// The response is complete: others may use the connection, if the request is complete too.
    fn end(&mut self) {
        if let Some(sending) = self.sending.take()
            && self.is_kept_alive
        {
            sending.give_back(&self.upstream);
        }
    }
}

// === impl Sending ===

impl Sending {
    /// Lets others use the connection, if nothing of this request and its response is left on it.
    fn give_back(self, upstream: &Upstream) {
        let is_reusable = self.is_complete && self.end == SendingEnd::Open;
        if is_reusable && !self.wire.has_output() && self.wire.input.is_empty() {
            upstream.pool.put(self.wire);
        }
    }

    /// Sends until the request is complete. A body that does not end is cut off: the client is told at once
    /// (`Exchange::failure`), and the upstream, which may be working on what it has got, by a half-close.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.is_complete {
            if self.wire.is_full() {
                ready!(self.poll_flush(context))?;
            }
            let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) else {
                ready!(self.poll_flush(context))?;
                return Poll::Pending;
            };
            if self.encode(frame).is_err() {
                self.half_close();
            }
        }
        ready!(self.poll_flush(context))?;
        if self.end == SendingEnd::Closing {
            ready!(Pin::new(&mut self.wire.stream).poll_shutdown(context))?;
            self.end = SendingEnd::Closed;
        }
        Poll::Ready(Ok(()))
    }

    /// Sends what is on the wire, and counts what the upstream takes of it.
    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let unsent = self.wire.unsent();
        let flushed = self.wire.poll_flush(context);
        self.taken += (unsent - self.wire.unsent()) as u64;
        flushed
    }

    /// Sends the bytes that are there, and nothing more of the body; then closes the sending half.
    fn half_close(&mut self) {
        if self.end == SendingEnd::Open {
            self.end = SendingEnd::Closing;
            self.is_complete = true;
            // The body would keep the client's connection open.
            self.body = RequestBody::none();
        }
    }

    fn encode(&mut self, frame: Option<Result<Frame<Bytes>, BodyError>>) -> Result<(), Unsendable> {
        let Some(frame) = frame.transpose()? else {
            self.is_complete = true;
            return Ok(self.encoder.finish(None, &mut self.wire)?);
        };
        match frame.into_data() {
            Ok(data) => Ok(self.encoder.push(data, &mut self.wire)?),
            Err(frame) => {
                self.is_complete = true;
                Ok(self.encoder.finish(frame.trailers_ref(), &mut self.wire)?)
            }
        }
    }
}

// === impl Unsendable ===

impl From<BodyError> for Unsendable {
    fn from(_error: BodyError) -> Self {
        Self
    }
}

impl From<Overrun> for Unsendable {
    fn from(_error: Overrun) -> Self {
        Self
    }
}
