//! `RequestBody`: the body of a request, read from the client's connection when it is asked for.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};

use crate::http1::{Decoded, Decoder, Wire};
use crate::proxy::buffers::{EvictableBuffer, Eviction, HeldBuffer};
use crate::proxy::connection::Connection;
use crate::proxy::exchange::Exchange;
use crate::proxy::forward::TrailerGuard;
use crate::proxy::pace::Pace;
use crate::proxy::worker::{SilentCall, Worker};
use crate::timeouts::MinimumRate;
use crate::timeouts::Timeout;
use crate::timeouts::{IdleTimeout, UploadProgress};

/// The body of a request. Most requests have none, and then it is one empty word.
#[derive(Debug)]
pub(crate) struct RequestBody(Option<Box<Open>>);

/// A body that has not ended yet.
#[derive(Debug)]
struct Open {
    source: RequestBodySource,
    ahead: Ahead,
    /// Fires when nothing has moved for too long.
    stall: IdleTimeout<Exchange>,
    /// How fast the client has to send.
    pace: Pace,
    /// Set for a gRPC call that has a seat, or asks for one, and has no message.
    silent_call: Option<SilentCall>,
    /// Whether the client has sent the length of the body. Then the upstream gets the length too.
    has_length: bool,
    bytes_left: u64,
    is_begun: bool,
    trailers: Option<TrailerGuard>,
    /// The timeout of the response, which another task waits for: it starts again while the body is being sent.
    upload: Option<Rc<UploadProgress<BodyError>>>,
}

/// The part of a body that was read before it is forwarded.
#[derive(Debug, Default)]
struct Ahead {
    data: BytesMut,
    /// How the body has ended, if it has: with trailers or without, or with an error.
    end: Option<Result<Option<HeaderMap>, BodyError>>,
    buffer: Option<HeldBuffer>,
}

/// How much of a body is received before its request asks for a seat, so that a client that is slow to send it holds none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reception {
    /// Nothing: the request is a stream that gives its seat back when the response begins.
    Nothing,
    /// The whole body, as far as it is buffered.
    Whole,
    /// The first message of gRPC, or as much of it as is buffered. The rest may take as long as the call.
    FirstMessage,
}

/// Why a body is received no further before its request asks for a seat.
enum Received {
    /// Everything that has to be received first has arrived.
    Enough,
    /// The uploads of its client have more than their share of the buffers. The rest goes to the upstream as it comes.
    OverShare,
}

#[derive(Debug)]
enum RequestBodySource {
    Http1(Rc<RefCell<ClientWire>>),
    Http2(hyper::body::Incoming),
}

/// A client's connection, which is shared by the task that serves it and the body of its request.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "any of them may be so, whatever the others are")]
pub(crate) struct ClientWire {
    pub(crate) wire: Wire,
    /// How far the body of the current request has been read.
    pub(crate) decoder: Decoder,
    /// The client waits for permission to send its body.
    pub(crate) owes_continue: bool,
    /// Whether the client has closed its sending half, and still reads.
    pub(crate) is_half_closed: bool,
    /// Whether the client may close its sending half and still wait for the response to the current request.
    pub(crate) may_half_close: bool,
    /// When the current request was complete, by the worker's clock.
    pub(crate) asked_at: u64,
    /// Fires when it is time to see whether a client that has sent far ahead is still there.
    pub(crate) hangup_check: Option<Box<Timeout>>,
    /// The task that waits for more of the body, which need not be the one that serves the connection.
    body_reader: Option<Waker>,
    /// The connection is about to be closed: further bytes of the client are discarded.
    is_over: bool,
}

/// Why a request's body did not end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BodyError {
    #[error("the client disconnected")]
    Gone,
    #[error("the body of the request has stalled")]
    Stalled,
    #[error("the body of the request arrives too slowly")]
    TooSlow,
    #[error("no buffer is left for the request body")]
    NoBuffer,
    #[error("the body of the request is too large")]
    TooLarge,
    #[error("malformed request body")]
    Malformed,
}

/// A gRPC call that has sent nothing for so long may not be going to before its response begins.
const SILENCE: Duration = Duration::from_millis(100);
/// How often a call that was refused a seat without a message asks again. One client may have thousands of them.
const SILENCE_RETRY: Duration = Duration::from_secs(1);

// === impl RequestBody ===

impl RequestBody {
    pub(crate) fn none() -> Self {
        Self(None)
    }

    /// The body of the request whose head has just been read from this connection.
    pub(crate) fn http1(wire: &Rc<RefCell<ClientWire>>, exchange: &Rc<Exchange>, worker: &Worker) -> Self {
        if wire.borrow().decoder.is_done() {
            return Self::none();
        }
        Self::new(RequestBodySource::Http1(Rc::clone(wire)), exchange, worker)
    }

    pub(crate) fn http2(body: hyper::body::Incoming, exchange: &Rc<Exchange>, worker: &Worker) -> Self {
        if body.is_end_stream() {
            return Self::none();
        }
        Self::new(RequestBodySource::Http2(body), exchange, worker)
    }

    fn new(source: RequestBodySource, exchange: &Rc<Exchange>, worker: &Worker) -> Self {
        let bytes_max = worker.config.limits.body_bytes;
        let has_length = source.left().is_some();
        Self(Some(Box::new(Open {
            source,
            has_length,
            ahead: Ahead::default(),
            stall: IdleTimeout::new(&worker.timer, exchange, exchange.timeouts.stall),
            pace: Pace::Any,
            silent_call: None,
            bytes_left: if bytes_max == 0 { u64::MAX } else { bytes_max },
            is_begun: false,
            trailers: None,
            upload: None,
        })))
    }

    /// Whether some of the body is still to come, and will be read: the body is not known to be too large.
    pub(crate) fn is_to_come(&self) -> bool {
        let is_there = match self.0.as_ref().map(|open| &open.source) {
            None => true,
            Some(RequestBodySource::Http1(wire)) => {
                let wire = wire.borrow();
                wire.decoder.left().is_some_and(|left| left <= wire.wire.input.len() as u64)
            }
            Some(RequestBodySource::Http2(body)) => body.is_end_stream(),
        };
        !is_there && !self.is_too_large()
    }

    /// Waits until so much of the body has arrived, or as much as is buffered. The client has to send at the minimum rate from then on.
    pub(crate) async fn receive(&mut self, reception: Reception, connection: &Connection) -> Result<(), BodyError> {
        let worker = &connection.worker;
        let Some(open) = &mut self.0 else { return Ok(()) };
        let (timer, rate) = (&worker.timer, worker.config.limits.body_bytes_per_second_min);
        open.pace = match reception {
            Reception::Whole => Pace::Steady(MinimumRate::new(timer, rate)),
            Reception::FirstMessage => Pace::messages(timer, MinimumRate::new(timer, rate)),
            Reception::Nothing => Pace::UntilResponse(MinimumRate::over(timer, rate, open.stall.after())),
        };
        if reception == Reception::Nothing {
            return Ok(());
        }
        let bytes_max = worker.config.limits.request_buffer;
        let mut buffer = worker.buffers.upload(&connection.client);
        let mut silent = timer.timeout(if reception == Reception::FirstMessage { SILENCE } else { Duration::ZERO });
        let received = poll_fn(|context| match open.poll_ahead(bytes_max, &mut buffer, context) {
            Poll::Pending => open.poll_silent(&mut silent, connection, context).map(|()| Ok(Received::Enough)),
            received @ Poll::Ready(_) => received,
        });
        let received = received.await;
        match received {
            Ok(Received::OverShare) => open.warn(
                connection,
                "an upload takes its seat before it is buffered: \
                the uploads of its client exceed the client's share of limits.bufferBytes",
            ),
            Err(BodyError::NoBuffer) => open.warn(
                connection,
                "an upload is rejected: limits.bufferBytes, or its client's share of it, is used up; \
                raise it if there is memory for more",
            ),
            Err(BodyError::Stalled | BodyError::TooSlow) => worker.metrics.client_too_slow(),
            Ok(Received::Enough) | Err(_) => {}
        }
        received?;
        open.ahead.buffer = Some(buffer.arrived());
        Ok(())
    }

    /// The body goes to an upstream over HTTP/1.1, which has no streams: the client has to keep the least rate, whatever it sends.
    pub(crate) fn keep_steady(&mut self) {
        if let Some(open) = &mut self.0 {
            open.pace = std::mem::replace(&mut open.pace, Pace::Any).steady();
        }
    }

    /// The bytes that have been received before the request asks for a seat.
    pub(crate) fn received(&self) -> &[u8] {
        self.0.as_ref().map_or(&[], |open| &open.ahead.data)
    }

    /// Whether the whole body has been received.
    pub(crate) fn is_received(&self) -> bool {
        self.0.as_ref().is_none_or(|open| matches!(open.ahead.end, Some(Ok(_))))
    }

    /// Inserts bytes into the received part of the body.
    pub(crate) fn insert(&mut self, at: usize, more: &[u8]) {
        let Some(open) = &mut self.0 else { return };
        let rest = open.ahead.data.split_off(at);
        open.ahead.data.reserve(more.len() + rest.len());
        open.ahead.data.extend_from_slice(more);
        open.ahead.data.extend_from_slice(&rest);
    }

    /// Whether nothing of the body has been read, so that it can be sent to another upstream.
    pub(crate) fn is_untouched(&self) -> bool {
        self.0.as_ref().is_none_or(|open| !open.is_begun)
    }

    /// Whether there is nothing to read.
    pub(crate) fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// How much is left to read, if that is known.
    pub(crate) fn left(&self) -> Option<u64> {
        let Some(open) = &self.0 else { return Some(0) };
        let rest = if open.ahead.end.is_some() { Some(0) } else { open.source.left() };
        rest.filter(|_| open.has_length).map(|rest| rest + open.ahead.data.len() as u64)
    }

    /// Whether the body is known to be larger than it may be.
    pub(crate) fn is_too_large(&self) -> bool {
        let Some(open) = &self.0 else { return false };
        // Bytes that were read ahead have been counted.
        open.source.left().is_some_and(|left| left > open.bytes_left)
    }

    /// The request may be sent now. The time that it has waited for a seat is not the client's.
    /// A gRPC call that has no message has so much time for one.
    pub(crate) fn start(&mut self, first_message_after: Duration, guard: impl FnOnce() -> TrailerGuard) {
        if let Some(open) = &mut self.0 {
            open.stall.note_activity();
            open.pace.start(first_message_after);
            open.trailers = Some(guard());
        }
    }

    /// Reports progress to the task that waits for the response.
    pub(crate) fn tell(&mut self, upload: &Rc<UploadProgress<BodyError>>) {
        if let Some(open) = &mut self.0 {
            open.upload = Some(Rc::clone(upload));
        }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut self.0 {
            None => Poll::Ready(None),
            Some(open) => {
                let frame = ready!(open.poll_frame(context));
                if let Some(upload) = &open.upload {
                    upload.note(frame.as_ref().and_then(|frame| frame.as_ref().err().copied()));
                }
                Poll::Ready(frame)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        let Some(open) = &self.0 else { return true };
        open.ahead.data.is_empty()
            && match (&open.ahead.end, &open.source) {
                (Some(end), _) => matches!(end, Ok(None)),
                (None, RequestBodySource::Http1(wire)) => wire.borrow().decoder.is_done(),
                (None, RequestBodySource::Http2(body)) => body.is_end_stream(),
            }
    }

    fn size_hint(&self) -> SizeHint {
        self.left().map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

// === impl RequestBodySource ===

impl RequestBodySource {
    fn left(&self) -> Option<u64> {
        match self {
            Self::Http1(wire) => wire.borrow().decoder.left(),
            Self::Http2(body) => body.size_hint().exact(),
        }
    }
}

// === impl Open ===

impl Open {
    fn poll_frame(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        self.is_begun = true;
        if !self.ahead.data.is_empty() {
            self.ahead.buffer = None;
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut self.ahead.data).freeze()))));
        }
        let frame = match self.ahead.end.take() {
            Some(Ok(trailers)) => {
                self.ahead.end = Some(Ok(None));
                trailers.map(|trailers| Ok(Frame::trailers(trailers)))
            }
            Some(Err(error)) => Some(Err(error)),
            None => ready!(self.poll_moving(context)),
        };
        let frame = frame.and_then(|frame| frame.map(|frame| self.guard(frame)).transpose());
        if let Some(Err(error)) = &frame {
            self.stall.subject().fail((*error).into());
        }
        Poll::Ready(frame)
    }

    /// Reads until as much is there as is received first, or so many bytes, or as many as there is room for.
    fn poll_ahead(
        &mut self,
        bytes_max: usize,
        buffer: &mut EvictableBuffer,
        context: &mut Context<'_>,
    ) -> Poll<Result<Received, BodyError>> {
        while self.ahead.end.is_none() && self.ahead.data.len() < bytes_max && !self.pace.has_message() {
            match buffer.poll_evicted(context) {
                Poll::Ready(Eviction::OverShare) => return Poll::Ready(Ok(Received::OverShare)),
                Poll::Ready(Eviction::NoRoom) => return Poll::Ready(Err(BodyError::NoBuffer)),
                Poll::Pending => {}
            }
            let Some(frame) = ready!(self.poll_moving(context)).transpose()? else {
                self.ahead.end = Some(Ok(None));
                break;
            };
            match frame.into_data() {
                Ok(data) => {
                    self.ahead.push(&data, bytes_max);
                    buffer.set(self.ahead.data.capacity());
                }
                Err(frame) => self.ahead.end = Some(Ok(frame.into_trailers().ok())),
            }
        }
        Poll::Ready(Ok(Received::Enough))
    }

    /// Ready if a client of gRPC has sent nothing for a while and need not send a message before its call has a seat: it may
    /// wait for the response to begin. Few calls may do so at a time.
    fn poll_silent(&mut self, silent: &mut Timeout, connection: &Connection, context: &Context<'_>) -> Poll<()> {
        if !self.ahead.data.is_empty() {
            return Poll::Pending;
        }
        ready!(silent.poll(context));
        self.silent_call = connection.client.begin_silent_call(connection.worker.config.concurrency_of_all() as usize);
        if self.silent_call.is_some() {
            return Poll::Ready(());
        }
        silent.set(SILENCE_RETRY);
        // The timeout has just been set: this only has the task woken.
        silent.poll(context)
    }

    /// Logs how the upload is treated, unless there was such a line a moment ago.
    fn warn(&self, connection: &Connection, what: &str) {
        if connection.worker.may_warn() {
            let request_id = self.stall.subject().id.to_str().unwrap_or_default();
            tracing::warn!(client = %connection.peer().address.ip(), request_id, "{what}");
        }
    }

    /// The next part that the client sends, if that does not take too long.
    fn poll_moving(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let Poll::Ready(frame) = self.poll_source(context) else {
            if self.stall.poll(context).is_ready() {
                return Poll::Ready(Some(Err(BodyError::Stalled)));
            }
            if self.stall.subject().is_responding() {
                self.pace.note_response();
            }
            return self.pace.poll_slow(context).map(|()| Some(Err(BodyError::TooSlow)));
        };
        self.stall.note_activity();
        Poll::Ready(frame.map(|frame| frame.and_then(|frame| self.count(frame))))
    }

    fn poll_source(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut self.source {
            RequestBodySource::Http1(wire) => wire.borrow_mut().poll_frame(context),
            RequestBodySource::Http2(body) => {
                Pin::new(body).poll_frame(context).map(|frame| frame.map(|frame| frame.map_err(|_| BodyError::Gone)))
            }
        }
    }

    /// Counts the bytes of a frame. Fails if the body is too large.
    fn count(&mut self, frame: Frame<Bytes>) -> Result<Frame<Bytes>, BodyError> {
        if let Some(data) = frame.data_ref() {
            self.bytes_left = self.bytes_left.checked_sub(data.len() as u64).ok_or(BodyError::TooLarge)?;
            self.pace.note(data);
            if self.pace.has_message() {
                self.silent_call = None;
            }
            self.stall.subject().note(|record| record.add_bytes_in(data.len()));
        }
        Ok(frame)
    }

    /// A frame without trailers that must not be forwarded; `None` if nothing is left.
    fn guard(&self, frame: Frame<Bytes>) -> Option<Frame<Bytes>> {
        match frame.into_trailers() {
            Err(data) => Some(data),
            Ok(trailers) => self.trailers.as_ref().map(|guard| Frame::trailers(guard.clean(trailers))),
        }
    }
}

// === impl Ahead ===

impl Ahead {
    /// Adds data. Its memory is doubled when it is full, but never to more than is kept of a body.
    fn push(&mut self, data: &[u8], bytes_max: usize) {
        let needed = self.data.len() + data.len();
        if needed > self.data.capacity() {
            let mut larger = BytesMut::with_capacity(needed.max(bytes_max.min(2 * self.data.capacity())));
            larger.extend_from_slice(&self.data);
            self.data = larger;
        }
        self.data.extend_from_slice(data);
    }
}

// === impl ClientWire ===

impl ClientWire {
    pub(crate) fn new(wire: Wire) -> Self {
        Self {
            wire,
            decoder: Decoder::EMPTY,
            owes_continue: false,
            is_half_closed: false,
            may_half_close: true,
            asked_at: 0,
            hangup_check: None,
            body_reader: None,
            is_over: false,
        }
    }

    /// Wakes the task that waits for the body: another task has read bytes that belong to it.
    pub(crate) fn wake_body_reader(&mut self) {
        if let Some(reader) = self.body_reader.take() {
            reader.wake();
        }
    }

    /// Nothing more of the body is read.
    pub(crate) fn end(&mut self) {
        self.is_over = true;
        self.wake_body_reader();
    }

    fn poll_frame(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if self.is_over {
            return Poll::Ready(Some(Err(BodyError::Gone)));
        }
        if std::mem::take(&mut self.owes_continue) && self.wire.input.is_empty() {
            self.wire.output().extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
        if self.wire.has_output()
            && let Poll::Ready(Err(_)) = self.wire.poll_flush(context)
        {
            return Poll::Ready(Some(Err(BodyError::Gone)));
        }
        loop {
            match self.decoder.decode(&mut self.wire.input) {
                Ok(Some(Decoded::Data(data))) => return Poll::Ready(Some(Ok(Frame::data(data)))),
                Ok(Some(Decoded::Trailers(trailers))) => return Poll::Ready(Some(Ok(Frame::trailers(trailers)))),
                Ok(Some(Decoded::End)) => return Poll::Ready(None),
                Ok(None) => match self.wire.poll_fill(context) {
                    Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Some(Err(BodyError::Gone))),
                    Poll::Ready(Ok(_)) => {}
                    Poll::Pending => {
                        self.body_reader = Some(context.waker().clone());
                        return Poll::Pending;
                    }
                },
                Err(_) => return Poll::Ready(Some(Err(BodyError::Malformed))),
            }
        }
    }
}
