//! A server of external processing that lets every request through at once: what asking costs whoever is asked.

use std::convert::Infallible;
use std::io::{self, Error};
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use evenkeel_process::Process;
use http::{HeaderMap, HeaderValue, Request, Response};
use hyper::body::{Body, Frame, Incoming};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;

use crate::role::Role;

/// A frame of gRPC with `ProcessingResponse { request_headers: HeadersResponse {} }`.
const GO_ON: &[u8] = &[0, 0, 0, 0, 2, 0x0a, 0];

/// The messages to one stream: one, when the first has come from Envoy. It lasts as long as the stream.
struct Messages {
    from_envoy: Incoming,
    has_replied: bool,
    has_ended: bool,
}

pub(super) fn start(address: SocketAddr, folder: &Path) -> io::Result<Process> {
    Process::start(Role::ExtProcStub.command()?.arg(address.to_string()), address, folder)
}

/// What the process does.
pub(crate) fn run() -> io::Result<()> {
    let address = std::env::args().nth(1).ok_or_else(|| Error::other("the server needs an address"))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(address).await?;
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            drop(tokio::spawn(async move {
                let service = service_fn(|request: Request<Incoming>| async move {
                    let body = Messages { from_envoy: request.into_body(), has_replied: false, has_ended: false };
                    let mut response = Response::new(body);
                    response.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc"));
                    Ok::<_, Infallible>(response)
                });
                // A connection that breaks is Envoy's concern.
                let _ = http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
            }));
        }
    })
}

// === impl Messages ===

impl Body for Messages {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.has_ended {
            return Poll::Ready(None);
        }
        while let Some(Ok(_)) = ready!(Pin::new(&mut self.from_envoy).poll_frame(context)) {
            if !self.has_replied {
                self.has_replied = true;
                return Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(GO_ON)))));
            }
        }
        self.has_ended = true;
        let trailers = HeaderMap::from_iter([("grpc-status".parse().expect("a name"), HeaderValue::from_static("0"))]);
        Poll::Ready(Some(Ok(Frame::trailers(trailers))))
    }
}
