//! The streams of one HTTP/2 connection to a hosted service.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{Method, Request, Response};
use http_body::Body;
use http_body_util::{Either, Empty};
use hyper::body::Incoming;
use hyper_util::service::TowerToHyperService;
use tokio::time::sleep;
use tower_service::Service;

use crate::timeouts::stream_timeout::{self, StreamProgress, TrackedBody};

/// Runs streams, and cuts those that nobody reads.
#[derive(Debug, Clone)]
pub(super) struct StreamExecutor {
    stall: Duration,
    /// The watch of the stream that is about to be run. It is called and then run, one after the other.
    next: Arc<Mutex<Option<Arc<StreamProgress>>>>,
}

/// The service for these streams.
#[derive(Debug)]
pub(super) struct StreamService<S> {
    service: TowerToHyperService<S>,
    streams: StreamExecutor,
}

// === impl StreamExecutor ===

impl StreamExecutor {
    pub(super) fn new(stall: Duration) -> Self {
        Self { stall, next: Arc::default() }
    }

    /// The service, whose streams are to be run by this.
    pub(super) fn of<S>(&self, service: S) -> StreamService<S> {
        StreamService { service: TowerToHyperService::new(service), streams: self.clone() }
    }

    fn exchange(&self, next: Option<Arc<StreamProgress>>) -> Option<Arc<StreamProgress>> {
        std::mem::replace(&mut *self.next.lock().unwrap_or_else(PoisonError::into_inner), next)
    }
}

impl<F> hyper::rt::Executor<F> for StreamExecutor
where
    F: Future + Send + 'static,
{
    fn execute(&self, stream: F) {
        let watch = self.exchange(None).unwrap_or_default();
        tokio::spawn(stream_timeout::run(stream, watch, Box::pin(sleep(self.stall)), self.stall));
    }
}

// === impl StreamService ===

impl<S, B> hyper::service::Service<Request<Incoming>> for StreamService<S>
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
    B: Body<Data = Bytes> + Send + 'static,
{
    type Response = Response<TrackedBody<Either<B, Empty<Bytes>>>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let watch = Arc::<StreamProgress>::default();
        self.streams.exchange(Some(Arc::clone(&watch)));
        let method = request.method().clone();
        let answer = self.service.call(request);
        Box::pin(async move {
            let mut response = answer.await?;
            if method == Method::HEAD {
                say_length(&mut response);
            }
            Ok(response.map(|body| {
                // Who asks for the head alone takes a body for an error, and in HTTP/2 nobody else leaves it out.
                let body = if method == Method::HEAD { Either::Right(Empty::new()) } else { Either::Left(body) };
                TrackedBody::new(body, watch)
            }))
        })
    }
}

/// Says how long the body is that is not sent.
fn say_length<B: Body>(response: &mut Response<B>) {
    if let Some(length) = response.body().size_hint().exact() {
        response.headers_mut().entry(CONTENT_LENGTH).or_insert(length.into());
    }
}
