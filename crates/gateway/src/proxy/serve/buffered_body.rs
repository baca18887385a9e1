//! `BufferedBody`: the body of a response on its way to a client, with a buffer for clients that read slowly.
//!
//! A request has its seat until the upstream has sent the last byte. A client that reads slowly must not hold the seat: bytes
//! that the client has not taken are kept here, within a bound.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use evenkeel::request::LongRunning;
use evenkeel::service::FlowBody;
use http_body::{Body, Frame, SizeHint};

use super::revoked_end::RevokedEnd;
use crate::config::Limits;
use crate::http1::Wire;
use crate::proxy::buffers::HeldBuffer;
use crate::proxy::connection::Connection;
use crate::proxy::exchange::Exchange;
use crate::proxy::response_body::{ResponseBody, ResponseBodyError};

/// The body of a response.
#[derive(Debug)]
pub(super) struct BufferedBody {
    source: BufferedSource,
    ahead: Ahead,
}

/// A body that hyper takes piece by piece, while the task that runs the stream reads ahead.
#[derive(Debug)]
pub(super) struct SharedBody {
    body: Rc<RefCell<BufferedBody>>,
    piece_max: usize,
}

/// The body of the response that a stream is about to get, or has got.
pub(super) type BodyOfStream = Rc<RefCell<Weak<RefCell<BufferedBody>>>>;

#[derive(Debug)]
enum BufferedSource {
    /// The body of an upstream's response.
    Passed(Passed),
    /// The body of a response of the gateway's own.
    Own(ResponseBody),
}

/// The body of a response that came through the flow control. When it is dropped before its end, the rest is left to the
/// worker.
#[derive(Debug)]
struct Passed {
    body: FlowBody<ResponseBody>,
    exchange: Rc<Exchange>,
    connection: Rc<Connection>,
    /// How it ends if its request is told to end; `None` if the request is not revocable.
    revoked_end: Option<Box<RevokedEnd>>,
}

/// Frames that have been read and not been sent.
#[derive(Debug, Default)]
struct Ahead {
    frames: VecDeque<Frame<Bytes>>,
    /// Small pieces that have come after those frames, put together.
    tail: BytesMut,
    bytes: usize,
    /// How many bytes have been taken since the last call of `take_sent`.
    sent: usize,
    end: Option<Result<(), ResponseBodyError>>,
    buffer: Option<HeldBuffer>,
}

/// Pieces up to this length are put together: each would keep the memory that it was read into.
const SMALL: usize = 4 * 1024;
/// The pieces that hyper gets: small enough to see that a slow client takes them, large enough to fill a frame.
const PIECES: RangeInclusive<usize> = 1024..=16 * 1024;
/// The assumed rate of a slow client where the settings have no least rate, in bytes a second.
const SLOW: u64 = 1024;

// === impl BufferedBody ===

impl BufferedBody {
    pub(super) fn passed(
        body: FlowBody<ResponseBody>,
        exchange: &Rc<Exchange>,
        connection: &Rc<Connection>,
        revoked_end: Option<Box<RevokedEnd>>,
    ) -> Self {
        let (exchange, connection) = (Rc::clone(exchange), Rc::clone(connection));
        let passed = Passed { body, exchange, connection, revoked_end };
        Self { source: BufferedSource::Passed(passed), ahead: Ahead::default() }
    }

    pub(super) fn own(body: ResponseBody) -> Self {
        Self { source: BufferedSource::Own(body), ahead: Ahead::default() }
    }

    /// The length of a response of the gateway's own.
    pub(super) fn own_length(&self) -> Option<u64> {
        match &self.source {
            BufferedSource::Passed(_) => None,
            BufferedSource::Own(body) => body.size_hint().exact(),
        }
    }

    /// The place of an upgraded connection among the long-running requests, if it has one.
    pub(super) fn take_long_running(&mut self) -> Option<LongRunning> {
        match &mut self.source {
            BufferedSource::Passed(passed) => Pin::new(&mut passed.body).take_long_running(),
            BufferedSource::Own(_) => None,
        }
    }

    /// The upstream's connection, if it is to be used for another protocol.
    pub(super) fn take_upgraded(&mut self) -> Option<Box<Wire>> {
        match &mut self.source {
            BufferedSource::Passed(passed) => passed.body.service_body_mut()?.take_upgraded(),
            BufferedSource::Own(_) => None,
        }
    }

    /// Whether there is no room for more, so that a client that is slow to read makes the request keep its seats.
    pub(super) fn is_held_up(&self) -> bool {
        match &self.source {
            BufferedSource::Passed(passed) => passed.body.has_permit() && !self.ahead.has_room(&passed.connection),
            BufferedSource::Own(_) => false,
        }
    }

    /// How many bytes have been taken, since the last time.
    pub(super) fn take_sent(&mut self) -> usize {
        std::mem::take(&mut self.ahead.sent)
    }

    /// Reads ahead for a client that reads slowly, as long as there is room.
    pub(super) fn poll_ahead(&mut self, context: &mut Context<'_>) {
        let Self { source: BufferedSource::Passed(passed), ahead } = self else { return };
        // A response without seats is as long as it likes; nobody waits for its end.
        while passed.body.has_permit()
            && ahead.end.is_none()
            && (ahead.has_room(&passed.connection) || passed.poll_revoked(context).is_ready())
        {
            let Poll::Ready(frame) = passed.poll_frame(context) else { return };
            match frame {
                Some(Ok(frame)) => ahead.push(frame, &passed.connection),
                Some(Err(error)) => ahead.end = Some(Err(error)),
                None => ahead.end = Some(Ok(())),
            }
        }
    }

    /// The next frame, or the next piece of it with so many bytes.
    fn poll_piece(
        &mut self,
        bytes_max: usize,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ResponseBodyError>>> {
        if let Some(frame) = self.ahead.pop(bytes_max) {
            return Poll::Ready(Some(Ok(frame)));
        }
        if let Some(end) = self.ahead.end {
            return Poll::Ready(end.err().map(Err));
        }
        let frame = ready!(match &mut self.source {
            BufferedSource::Passed(passed) => passed.poll_frame(context),
            BufferedSource::Own(body) => Pin::new(body).poll_frame(context),
        });
        match frame {
            Some(Ok(frame)) if frame.data_ref().is_some_and(|data| data.len() > bytes_max) => {
                self.ahead.bytes += frame.data_ref().map_or(0, Bytes::len);
                self.ahead.frames.push_back(frame);
                Poll::Ready(self.ahead.pop(bytes_max).map(Ok))
            }
            frame => {
                if let Some(Ok(frame)) = &frame {
                    self.ahead.sent += frame.data_ref().map_or(0, Bytes::len);
                }
                Poll::Ready(frame)
            }
        }
    }
}

impl Body for BufferedBody {
    type Data = Bytes;
    type Error = ResponseBodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ResponseBodyError>>> {
        self.poll_piece(usize::MAX, context)
    }

    fn is_end_stream(&self) -> bool {
        if !self.ahead.is_empty() {
            return false;
        }
        match (&self.ahead.end, &self.source) {
            (Some(end), _) => end.is_ok(),
            (None, BufferedSource::Passed(passed)) => passed.body.is_end_stream(),
            (None, BufferedSource::Own(body)) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        let rest = match &self.source {
            BufferedSource::Passed(passed) => passed.body.size_hint(),
            BufferedSource::Own(body) => body.size_hint(),
        };
        match rest.exact() {
            Some(rest) => SizeHint::with_exact(rest + self.ahead.bytes as u64),
            None => SizeHint::default(),
        }
    }
}

// === impl Passed ===

impl Passed {
    /// The next frame. A response whose request has failed does not end for its client; the upstream's remaining work is left to
    /// the worker.
    fn poll_frame(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, ResponseBodyError>>> {
        if self.poll_revoked(context).is_ready() { self.poll_last(context) } else { self.poll_next(context) }
    }

    /// Ready if the request is told to end.
    #[inline]
    fn poll_revoked(&self, context: &Context<'_>) -> Poll<()> {
        if self.revoked_end.is_some() { self.body.poll_revoked(context) } else { Poll::Pending }
    }

    /// The request is told to end: an event that has begun is passed on as far as it is there, and then the response ends with an error, or
    /// is cut off. The upstream's work ends, and the seats are given back.
    #[cold]
    fn poll_last(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, ResponseBodyError>>> {
        if self.revoked_end.as_ref().is_some_and(|end| end.is_within_event())
            && let Poll::Ready(frame) = self.poll_next(context)
        {
            return Poll::Ready(frame);
        }
        let event = self.revoked_end.take().and_then(|end| end.last_event());
        drop(std::mem::take(&mut self.body));
        self.exchange.note(|record| {
            record.note_revoked();
            record.add_bytes_out(event.as_ref().map_or(0, Bytes::len));
        });
        Poll::Ready(Some(event.map(Frame::data).ok_or(ResponseBodyError::Revoked)))
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, ResponseBodyError>>> {
        match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Pending if self.exchange.failure().is_some() => Poll::Ready(Some(Err(ResponseBodyError::Request))),
            Poll::Ready(Some(Err(error))) => {
                self.exchange.note_cut_off(error);
                Poll::Ready(Some(Err(error)))
            }
            Poll::Ready(frame) => {
                if let (Some(end), Some(Ok(frame))) = (&mut self.revoked_end, &frame)
                    && let Some(data) = frame.data_ref()
                {
                    end.note(data);
                }
                self.exchange.note(|record| {
                    record.add_bytes_out(frame.as_ref().map_or(0, data_length));
                    if frame.is_none() || self.body.is_end_stream() {
                        record.note_ended();
                    }
                });
                Poll::Ready(frame)
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

impl Drop for Passed {
    fn drop(&mut self) {
        self.connection.worker.abandoned.response(std::mem::take(&mut self.body), &self.exchange);
    }
}

fn data_length(frame: &Result<Frame<Bytes>, ResponseBodyError>) -> usize {
    frame.as_ref().ok().and_then(Frame::data_ref).map_or(0, Bytes::len)
}

// === impl Ahead ===

impl Ahead {
    fn is_empty(&self) -> bool {
        self.frames.is_empty() && self.tail.is_empty()
    }

    fn has_room(&self, connection: &Connection) -> bool {
        let Connection { worker, client, .. } = connection;
        self.bytes < worker.config.limits.response_buffer && worker.buffers.has_room(client)
    }

    fn push(&mut self, frame: Frame<Bytes>, connection: &Connection) {
        match frame.into_data() {
            Ok(data) => {
                self.bytes += data.len();
                if data.len() <= SMALL {
                    self.tail.extend_from_slice(&data);
                } else {
                    self.end_tail();
                    self.frames.push_back(Frame::data(data));
                }
            }
            Err(frame) => {
                self.end_tail();
                self.frames.push_back(frame);
            }
        }
        let Connection { worker, client, .. } = connection;
        self.buffer.get_or_insert_with(|| worker.buffers.held(client)).set(self.bytes);
    }

    fn end_tail(&mut self) {
        if !self.tail.is_empty() {
            self.frames.push_back(Frame::data(self.tail.split().freeze()));
        }
    }

    /// The next frame, or its first bytes if it has more than so many.
    fn pop(&mut self, bytes_max: usize) -> Option<Frame<Bytes>> {
        if self.frames.is_empty() {
            self.end_tail();
        }
        let frame = match self.frames.pop_front()?.into_data() {
            Ok(mut data) => {
                if data.len() > bytes_max {
                    let rest = data.split_off(bytes_max);
                    self.frames.push_front(Frame::data(rest));
                }
                self.bytes -= data.len();
                self.sent += data.len();
                Frame::data(data)
            }
            Err(frame) => frame,
        };
        if let Some(buffer) = &mut self.buffer {
            buffer.set(self.bytes);
        }
        Some(frame)
    }
}

/// How large pieces may be for a client of that rate to take one in half of the time after which it would be called stalled.
fn piece_max(bytes_per_second_min: u64, stall: Duration) -> usize {
    let rate = if bytes_per_second_min == 0 { SLOW } else { bytes_per_second_min };
    let bytes = u128::from(rate) * stall.as_millis() / 2000;
    usize::try_from(bytes).unwrap_or(usize::MAX).clamp(*PIECES.start(), *PIECES.end())
}

// === impl SharedBody ===

impl SharedBody {
    /// The body, which the one who runs the stream finds in `of_stream`. Its pieces are so small that the slowest client which is
    /// allowed takes one within `stall`.
    pub(super) fn new(body: BufferedBody, of_stream: &BodyOfStream, limits: &Limits, stall: Duration) -> Self {
        let body = Rc::new(RefCell::new(body));
        *of_stream.borrow_mut() = Rc::downgrade(&body);
        Self { body, piece_max: piece_max(limits.body_bytes_per_second_min, stall) }
    }
}

impl Body for SharedBody {
    type Data = Bytes;
    type Error = ResponseBodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ResponseBodyError>>> {
        self.body.borrow_mut().poll_piece(self.piece_max, context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.borrow().is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.borrow().size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_client_takes_a_piece_before_it_counts_as_stalled() {
        for (rate, stall_ms, expected) in [
            (1024, 60_000, 16 * 1024),
            (1024, 5_000, 2560),
            (1024, 100, 1024),
            (0, 5_000, 2560),
            (u64::MAX, u64::MAX, 16 * 1024),
        ] {
            assert_eq!(piece_max(rate, Duration::from_millis(stall_ms)), expected, "{rate} {stall_ms}");
        }
    }
}
