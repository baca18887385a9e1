//! A server of language models that does nothing but send: streams whose events say when they were sent, and whole responses at once.

use std::convert::Infallible;
use std::io::{self, Error};
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use evenkeel_process::{Process, free_address};
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustix::time::{ClockId, clock_gettime};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep_until};

use crate::role::Role;
use crate::server::folder;

/// Of each stream.
pub(crate) const EVENTS: u32 = 250;
const EVERY: Duration = Duration::from_millis(20);
/// What a whole response says.
const WHOLE: &str = r#"{"id":"x","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":1,"total_tokens":6}}"#;

/// The process, and its folder.
#[derive(Debug)]
pub(crate) struct EventSource {
    pub(crate) process: Process,
    _folder: TempDir,
}

// === impl EventSource ===

impl EventSource {
    pub(crate) fn start(with_streams: bool) -> io::Result<Self> {
        let (folder, address) = (folder()?, free_address()?);
        let mut command = Role::EventSource.command()?;
        command.arg(address.to_string()).args(with_streams.then_some("streams"));
        let process = Process::start(&mut command, address, folder.path())?;
        Ok(Self { process, _folder: folder })
    }
}

/// A time that all processes of the machine agree on, in nanoseconds.
pub(crate) fn now_ns() -> i64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// What the process does.
pub(crate) fn run() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().ok_or_else(|| Error::other("the source of events needs an address"))?;
    let address: SocketAddr = address.parse().map_err(Error::other)?;
    let with_streams = arguments.next().is_some();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(address).await?;
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            if with_streams {
                // A client that leaves has what it wants.
                drop(tokio::spawn(send_events(stream)));
            } else {
                let answer = service_fn(whole);
                drop(tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), answer)));
            }
        }
    })
}

async fn whole(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    // It is read, so that the connection can be used again.
    let _ = request.into_body().collect().await;
    let mut response = Response::new(Full::new(Bytes::from_static(WHOLE.as_bytes())));
    response.headers_mut().insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    Ok(response)
}

/// Sends a stream to whoever connects, as soon as something of a request is there.
async fn send_events(mut stream: TcpStream) -> io::Result<()> {
    stream.readable().await?;
    stream
        .write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n")
        .await?;
    let mut due = Instant::now();
    for _ in 0..EVENTS {
        due += EVERY;
        sleep_until(due).await;
        let event = format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{}\"}}}}]}}\n\n", now_ns());
        stream.write_all(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes()).await?;
    }
    stream.write_all(b"0\r\n\r\n").await?;
    // What has come of the request is read, so that closing is no reset.
    let mut rest = [0; 4096];
    while stream.try_read(&mut rest).is_ok_and(|read| read > 0) {}
    stream.shutdown().await
}
