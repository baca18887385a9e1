//! Runs the streams of one HTTP/2 connection to a hosted service.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
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

use crate::timeouts::{StreamProgress, StreamTimeout, TrackedBody};

/// Runs streams, and ends those whose client does not read.
#[derive(Debug, Clone, Copy)]
pub(super) struct StreamExecutor {
    pub(super) unread_after: Duration,
}

/// The service for these streams: it tells a stream's task how far its response has been read.
#[derive(Debug)]
pub(super) struct StreamService<S>(TowerToHyperService<S>);

tokio::task_local! {
    /// The progress of the stream that this task runs.
    static PROGRESS: Arc<StreamProgress>;
}

// === impl StreamExecutor ===

impl<F> hyper::rt::Executor<F> for StreamExecutor
where
    F: Future + Send + 'static,
{
    fn execute(&self, stream: F) {
        let progress = Arc::<StreamProgress>::default();
        let timeout = Box::pin(sleep(self.unread_after));
        let mut unread = StreamTimeout::new(Arc::clone(&progress), timeout, self.unread_after);
        let run = async move {
            let mut stream = pin!(stream);
            poll_fn(|context| match stream.as_mut().poll(context) {
                Poll::Ready(_) => Poll::Ready(()),
                Poll::Pending => unread.poll(context),
            })
            .await;
        };
        tokio::spawn(PROGRESS.scope(progress, run));
    }
}

// === impl StreamService ===

impl<S> StreamService<S> {
    pub(super) fn new(service: S) -> Self {
        Self(TowerToHyperService::new(service))
    }
}

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
        let method = request.method().clone();
        let response = self.0.call(request);
        Box::pin(async move {
            let mut response = response.await?;
            if method == Method::HEAD {
                say_length(&mut response);
            }
            // This runs inside of the stream, in the stream's task.
            let progress = PROGRESS.try_with(Arc::clone).unwrap_or_default();
            Ok(response.map(|body| {
                // A client that asks for the head alone takes a body for an error, and hyper does not leave it out in HTTP/2.
                let body = if method == Method::HEAD { Either::Right(Empty::new()) } else { Either::Left(body) };
                TrackedBody::new(body, progress)
            }))
        })
    }
}

/// Sets the length of the body that is not sent.
fn say_length<B: Body>(response: &mut Response<B>) {
    if let Some(length) = response.body().size_hint().exact() {
        response.headers_mut().entry(CONTENT_LENGTH).or_insert(length.into());
    }
}
