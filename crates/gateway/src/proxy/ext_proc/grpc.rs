//! A gRPC stream on top of HTTP/2: messages in, messages and a status out.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, Response};
use http_body::{Body, Frame};
use hyper::body::Incoming;
use prost::Message;

/// The messages that the other end sends.
#[derive(Debug)]
pub(super) struct Messages {
    body: Incoming,
    frames: MessageFrames,
}

/// Splits the bytes that arrive into messages.
#[derive(Debug)]
pub(super) struct MessageFrames {
    received: BytesMut,
    bytes_max: usize,
}

/// The queue of responses to be sent, in this order.
#[derive(Debug, Clone, Default)]
pub(super) struct Outgoing(Rc<RefCell<VecDeque<Bytes>>>);

/// Why a stream ends before its time: a status of gRPC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Status {
    code: Code,
    message: String,
}

/// The codes of gRPC that are used here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Code {
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    ResourceExhausted = 8,
    Unimplemented = 12,
}

/// The body of a response: it runs the stream, and sends the stream's messages. Dropping it ends the stream.
pub(super) struct StreamBody {
    outgoing: Outgoing,
    /// `None` once the stream has ended and its status has been sent.
    run: Option<Pin<Box<RunningStream>>>,
}

/// A stream that runs, and how it ends.
type RunningStream = dyn Future<Output = Result<(), Status>>;

/// The flag and the length of a message.
const PREFIX_BYTES: usize = 5;
const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

// === impl Messages ===

impl Messages {
    /// Reads messages of at most so many bytes.
    pub(super) fn new(body: Incoming, bytes_max: usize) -> Self {
        Self { body, frames: MessageFrames::new(bytes_max) }
    }

    /// The next message. Ready with none if the other end has ended the stream, in whichever way.
    pub(super) fn poll_next<M: Message + Default>(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<M, Status>>> {
        loop {
            if let Some(message) = self.frames.next() {
                return Poll::Ready(Some(message));
            }
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.frames.push(&data);
                    }
                }
                Some(Err(_)) | None => return Poll::Ready(None),
            }
        }
    }
}

// === impl MessageFrames ===

impl MessageFrames {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { received: BytesMut::new(), bytes_max }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.received.extend_from_slice(bytes);
    }

    /// The first message, if all of it is there. After a fault, the rest cannot be read.
    pub(super) fn next<M: Message + Default>(&mut self) -> Option<Result<M, Status>> {
        let invalid = |error: prost::DecodeError| Status::new(Code::InvalidArgument, format!("no message: {error}"));
        Some(self.take_whole()?.and_then(|bytes| M::decode(bytes).map_err(invalid)))
    }

    /// The bytes of the first message of what has been received, if all of them are there.
    fn take_whole(&mut self) -> Option<Result<Bytes, Status>> {
        let (flag, mut length) = (*self.received.first()?, self.received.get(1..PREFIX_BYTES)?);
        if flag != 0 {
            return Some(Err(Status::new(Code::Unimplemented, "compressed messages are not supported")));
        }
        let length = length.get_u32() as usize;
        if length > self.bytes_max {
            let text = format!("a message has {length} bytes, and at most {} are allowed", self.bytes_max);
            return Some(Err(Status::new(Code::ResourceExhausted, text)));
        }
        if self.received.len() < PREFIX_BYTES + length {
            return None;
        }
        self.received.advance(PREFIX_BYTES);
        Some(Ok(self.received.split_to(length).freeze()))
    }
}

// === impl Outgoing ===

impl Outgoing {
    pub(super) fn send(&self, message: &impl Message) {
        let length = message.encoded_len();
        let mut bytes = BytesMut::with_capacity(PREFIX_BYTES + length);
        bytes.put_u8(0);
        bytes.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
        // There is room for all of it.
        let _ = message.encode(&mut bytes);
        self.0.borrow_mut().push_back(bytes.freeze());
    }

    fn next(&self) -> Option<Bytes> {
        self.0.borrow_mut().pop_front()
    }
}

// === impl Status ===

impl Status {
    pub(super) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    fn put(&self, headers: &mut HeaderMap) {
        headers.insert(GRPC_STATUS, HeaderValue::from(self.code as u16));
        if let Ok(message) = HeaderValue::try_from(&*self.message) {
            headers.insert(GRPC_MESSAGE, message);
        }
    }

    /// A response that consists of this status.
    pub(super) fn response(&self) -> Response<StreamBody> {
        let mut response = Response::new(StreamBody { outgoing: Outgoing::default(), run: None });
        response.headers_mut().insert(CONTENT_TYPE, GRPC);
        self.put(response.headers_mut());
        response
    }
}

// === impl StreamBody ===

impl StreamBody {
    /// The response to a stream that is run like this.
    pub(super) fn response(
        outgoing: Outgoing,
        run: impl Future<Output = Result<(), Status>> + 'static,
    ) -> Response<Self> {
        let mut response = Response::new(Self { outgoing, run: Some(Box::pin(run)) });
        response.headers_mut().insert(CONTENT_TYPE, GRPC);
        response
    }
}

impl Body for StreamBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(message) = self.outgoing.next() {
            return Poll::Ready(Some(Ok(Frame::data(message))));
        }
        let Some(run) = &mut self.run else { return Poll::Ready(None) };
        let ended = run.as_mut().poll(context);
        if let Some(message) = self.outgoing.next() {
            // The stream is polled again when this message has been taken, but not if it has ended.
            if let Poll::Ready(ended) = ended {
                self.run = Some(Box::pin(std::future::ready(ended)));
            }
            return Poll::Ready(Some(Ok(Frame::data(message))));
        }
        let ended = ready!(ended);
        self.run = None;
        let mut trailers = HeaderMap::new();
        match ended {
            Ok(()) => {
                trailers.insert(GRPC_STATUS, HeaderValue::from_static("0"));
            }
            Err(status) => status.put(&mut trailers),
        }
        Poll::Ready(Some(Ok(Frame::trailers(trailers))))
    }

    fn is_end_stream(&self) -> bool {
        self.run.is_none()
    }
}
