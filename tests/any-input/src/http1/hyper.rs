//! What hyper's HTTP/1.1 server makes of the bytes that a client sends.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use evenkeel_gateway::fuzzing::{Conversation, End, Message};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{join, sink};

/// Reads requests with hyper and its defaults, except that a client may close its side while it waits for a response.
///
/// # Panics
/// If hyper waits, although everything that it could wait for is there.
pub fn requests_by_hyper(input: &[u8]) -> Conversation {
    let seen = Arc::new(Mutex::new(Conversation { messages: Vec::new(), end: End::Complete }));
    let service = service_fn(|request| respond(request, Arc::clone(&seen)));
    let io = TokioIo::new(join(input, sink()));
    let mut connection = pin!(http1::Builder::new().half_close(true).serve_connection(io, service));
    // Input and output are always ready. The connection yields from time to time all the same.
    let mut context = Context::from_waker(Waker::noop());
    let served = (0..10_000).find_map(|_| match connection.as_mut().poll(&mut context) {
        Poll::Ready(served) => Some(served),
        Poll::Pending => None,
    });
    let served = served.expect("hyper reads to the end");
    let mut conversation = seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if let (Err(error), End::Complete) = (served, conversation.end) {
        conversation.end = if error.is_incomplete_message() { End::Incomplete } else { End::Rejected("by hyper") };
    }
    conversation
}

async fn respond(
    request: Request<Incoming>,
    seen: Arc<Mutex<Conversation>>,
) -> Result<Response<Empty<Bytes>>, Infallible> {
    let (head, mut body) = request.into_parts();
    let first_line = format!("{} {} {:?}", head.method, head.uri, head.version);
    let mut message = Message { first_line, headers: head.headers, ..Message::default() };
    let mut end = End::Complete;
    while let Some(frame) = body.frame().await {
        match frame.map(hyper::body::Frame::into_data) {
            Ok(Ok(data)) => message.body.extend_from_slice(&data),
            Ok(Err(frame)) => message.trailers = frame.into_trailers().unwrap_or_default(),
            Err(error) if error.is_incomplete_message() => end = End::Incomplete,
            Err(error) if std::error::Error::source(&error).is_some_and(is_end_of_file) => end = End::Incomplete,
            Err(_) => end = End::Rejected("by hyper"),
        }
    }
    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    seen.messages.push(message);
    seen.end = end;
    // Not a success, which would make a tunnel of a CONNECT.
    let mut response = Response::new(Empty::new());
    *response.status_mut() = StatusCode::NOT_FOUND;
    Ok(response)
}

fn is_end_of_file(error: &(dyn std::error::Error + 'static)) -> bool {
    let error = error.downcast_ref::<std::io::Error>();
    error.is_some_and(|error| error.kind() == std::io::ErrorKind::UnexpectedEof)
}
