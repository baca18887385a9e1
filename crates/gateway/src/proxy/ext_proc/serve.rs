//! Serves a connection of Envoy: HTTP/2, with a stream for each request.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;

use http::{Method, Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper_util::rt::{TokioIo, TokioTimer};

use super::grpc::{Code, Messages, Outgoing, Status, StreamBody};
use super::process::RequestStream;
use crate::net::{EagerWrites, Stream};
use crate::proxy::serve::{StreamCount, first_bytes};
use crate::proxy::worker::{OnWorker, Worker};

/// The streams of one connection.
struct Streams {
    worker: Rc<Worker>,
    envoy: SocketAddr,
    /// Counts the streams that run.
    running: StreamCount,
}

/// The only method of the service.
const PROCESS: &str = "/envoy.service.ext_proc.v3.ExternalProcessor/Process";
/// Every request that waits or runs has a stream, and Envoy opens further connections beyond these.
const STREAMS_MAX: u32 = 1024;
/// The bytes of a message beside the head of a request: protobuf makes names and values a little longer, and Envoy adds
/// attributes.
const BESIDE_HEAD_BYTES: usize = 16 * 1024;

/// Serves a connection to its end.
pub(crate) async fn serve(worker: Rc<Worker>, stream: Stream, envoy: SocketAddr, _counted: impl Sized) {
    let Some(stream) = first_bytes(&worker, stream).await else { return };
    let running = StreamCount::default();
    let streams = Streams { worker: Rc::clone(&worker), envoy, running: running.clone() };
    let served = pin!(
        http2::Builder::new(OnWorker)
            .timer(TokioTimer::new())
            .max_concurrent_streams(STREAMS_MAX)
            .serve_connection(TokioIo::new(EagerWrites::new(stream, &worker.timer)), streams)
    );
    let _ = running.run_connection(served, http2::Connection::graceful_shutdown, &worker).await;
}

// === impl Streams ===

impl hyper::service::Service<Request<Incoming>> for Streams {
    type Response = Response<StreamBody>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let running = self.running.begin();
        if request.method() != Method::POST || request.uri().path() != PROCESS {
            let text = "there is no such method; this is the external processing service of Envoy";
            return ready(Ok(Status::new(Code::Unimplemented, text).response()));
        }
        let worker = self.worker.latest();
        let message_max = worker.config.limits.head_bytes.saturating_mul(2).saturating_add(BESIDE_HEAD_BYTES);
        let outgoing = Outgoing::default();
        let stream = RequestStream {
            worker,
            envoy: self.envoy,
            messages: Messages::new(request.into_body(), message_max),
            outgoing: outgoing.clone(),
        };
        let run = async move {
            let ended = stream.run().await;
            drop(running);
            ended
        };
        ready(Ok(StreamBody::response(outgoing, run)))
    }
}
