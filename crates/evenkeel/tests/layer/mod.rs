//! What the tests of the layer share: a flow control with one seat, a service that does as it is told, and a body that
//! goes on until it is told otherwise.
#![allow(dead_code, reason = "every test file uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use evenkeel::identify::Anonymous;
use evenkeel::service::FlowBody;
use evenkeel::{FlowControl, FlowLayer};
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use tokio::sync::mpsc;
use tower::{Layer, Service};

/// A level with one seat and no queues, and one with one seat and a queue, for all who ask for `/queued`.
pub(crate) const ONE_SEAT: &str = "
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: strict, uid: level-1}
spec: {type: Limited, limited: {nominalConcurrencyShares: 1, limitResponse: {type: Reject}}}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: patient, uid: level-2}
spec:
  type: Limited
  limited:
    nominalConcurrencyShares: 1
    limitResponse: {type: Queue, queuing: {queues: 1, handSize: 1, queueLengthLimit: 1}}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: patient, uid: schema-2}
spec:
  matchingPrecedence: 100
  priorityLevelConfiguration: {name: patient}
  rules:
  - subjects: [{kind: Group, group: {name: system:unauthenticated}}]
    nonResourceRules: [{verbs: ['*'], nonResourceURLs: [/queued]}]
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: strict, uid: schema-1}
spec:
  matchingPrecedence: 200
  priorityLevelConfiguration: {name: strict}
  rules:
  - subjects: [{kind: Group, group: {name: system:unauthenticated}}]
    nonResourceRules: [{verbs: ['*'], nonResourceURLs: ['*']}]
    resourceRules: [{verbs: ['*'], apiGroups: ['*'], resources: ['*'], namespaces: ['*'], clusterScope: true}]
";

/// A service whose answers are whatever the test makes of the request.
#[derive(Clone)]
pub(crate) struct Mock {
    answer: Arc<Answering>,
    pub(crate) control: Arc<Control>,
}

type Answering = dyn Fn(&Request<()>) -> Reply + Send + Sync;

/// What a test sees and decides of a mock.
#[derive(Default)]
pub(crate) struct Control {
    pub(crate) calls: AtomicUsize,
    pub(crate) readiness_asked: AtomicUsize,
    is_busy: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

/// What the mock does with a request.
pub(crate) enum Reply {
    Now(Response<TestBody>),
    Never,
    Panic,
}

/// A body of frames that the test sends; it ends when the sender is gone.
#[derive(Debug)]
pub(crate) struct TestBody {
    frames: Option<mpsc::UnboundedReceiver<Result<Frame<Bytes>, &'static str>>>,
    hint: SizeHint,
}

pub(crate) type Frames = mpsc::UnboundedSender<Result<Frame<Bytes>, &'static str>>;

pub(crate) struct MockFuture(Option<Reply>);

pub(crate) fn flow() -> FlowControl {
    // So few that every level gets one seat.
    FlowControl::builder().kubernetes().server_concurrency(1).objects(ONE_SEAT).build()
}

pub(crate) fn layer() -> FlowLayer<Anonymous> {
    flow().layer(Anonymous)
}

pub(crate) fn get(target: &str) -> Request<()> {
    Request::get(target).body(()).unwrap()
}

/// Sends a request through a layer; the future is polled by the test.
pub(crate) fn send<L>(layer: &L, mock: &Mock, request: Request<()>) -> Answer
where
    L: Layer<Mock>,
    L::Service: Service<Request<()>, Response = Response<FlowBody<TestBody>>, Error = Infallible>,
    <L::Service as Service<Request<()>>>::Future: Send + 'static,
{
    let mut service = layer.layer(mock.clone());
    let mut context = Context::from_waker(Waker::noop());
    assert!(service.poll_ready(&mut context).is_ready(), "the layer is always ready");
    Answer(Box::pin(service.call(request)))
}

/// A request on its way.
#[allow(clippy::type_complexity)]
pub(crate) struct Answer(
    pub(crate) Pin<Box<dyn Future<Output = Result<Response<FlowBody<TestBody>>, Infallible>> + Send>>,
);

// === impl Answer ===

impl Answer {
    /// Polls once.
    pub(crate) fn poll(&mut self) -> Option<Response<FlowBody<TestBody>>> {
        match self.0.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(response)) => Some(response),
            Poll::Pending => None,
        }
    }

    /// Polls once, and expects the answer.
    pub(crate) fn now(&mut self) -> Response<FlowBody<TestBody>> {
        self.poll().expect("an answer at once")
    }
}

/// Sends one request and expects its answer at once.
pub(crate) fn ask<L>(layer: &L, mock: &Mock, request: Request<()>) -> Response<FlowBody<TestBody>>
where
    L: Layer<Mock>,
    L::Service: Service<Request<()>, Response = Response<FlowBody<TestBody>>, Error = Infallible>,
    <L::Service as Service<Request<()>>>::Future: Send + 'static,
{
    send(layer, mock, request).now()
}

/// A service that answers everything with so many bytes.
pub(crate) fn bytes_of(length: usize) -> Mock {
    Mock::new(move |_| {
        let (frames, body) = TestBody::streamed();
        frames.send(Ok(Frame::data(Bytes::from(vec![b'x'; length])))).unwrap();
        Reply::Now(Response::new(body))
    })
}

/// The whole of a short body.
pub(crate) async fn text(response: Response<FlowBody<TestBody>>) -> String {
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

// === impl Mock ===

impl Mock {
    pub(crate) fn new(answer: impl Fn(&Request<()>) -> Reply + Send + Sync + 'static) -> Self {
        Self { answer: Arc::new(answer), control: Arc::default() }
    }

    /// Answers everything with an empty body.
    pub(crate) fn empty() -> Self {
        Self::new(|_| Reply::Now(Response::new(TestBody::empty())))
    }

    /// Answers `/streamed`, and watches, with this body, and all others with an empty one.
    pub(crate) fn streaming() -> (Self, Frames) {
        let (frames, body) = TestBody::streamed();
        let body = Mutex::new(Some(body));
        let mock = Self::new(move |_| {
            let body = body.lock().unwrap().take().unwrap_or_else(TestBody::empty);
            Reply::Now(Response::new(body))
        });
        (mock, frames)
    }

    /// Never answers.
    pub(crate) fn stuck() -> Self {
        Self::new(|_| Reply::Never)
    }

    pub(crate) fn calls(&self) -> usize {
        self.control.calls.load(Ordering::SeqCst)
    }
}

impl Control {
    pub(crate) fn set_busy(&self, is_busy: bool) {
        self.is_busy.store(is_busy, Ordering::SeqCst);
        if let Some(waker) = self.waker.lock().unwrap().take() {
            waker.wake();
        }
    }
}

impl Service<Request<()>> for Mock {
    type Response = Response<TestBody>;
    type Error = Infallible;
    type Future = MockFuture;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.control.readiness_asked.fetch_add(1, Ordering::SeqCst);
        if self.control.is_busy.load(Ordering::SeqCst) {
            *self.control.waker.lock().unwrap() = Some(context.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<()>) -> MockFuture {
        self.control.calls.fetch_add(1, Ordering::SeqCst);
        MockFuture(Some((self.answer)(&request)))
    }
}

// === impl MockFuture ===

impl Future for MockFuture {
    type Output = Result<Response<TestBody>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.0.take() {
            Some(Reply::Now(response)) => Poll::Ready(Ok(response)),
            Some(Reply::Panic) => panic!("the handler panics"),
            Some(Reply::Never) | None => Poll::Pending,
        }
    }
}

// === impl TestBody ===

impl TestBody {
    pub(crate) fn empty() -> Self {
        Self { frames: None, hint: SizeHint::with_exact(0) }
    }

    pub(crate) fn streamed() -> (Frames, Self) {
        let (sender, frames) = mpsc::unbounded_channel();
        (sender, Self { frames: Some(frames), hint: SizeHint::default() })
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: SizeHint) -> Self {
        self.hint = hint;
        self
    }
}

impl Body for TestBody {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
        self.frames.as_mut().map_or(Poll::Ready(None), |frames| frames.poll_recv(context))
    }

    fn is_end_stream(&self) -> bool {
        self.frames.as_ref().is_none_or(|frames| frames.is_closed() && frames.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        self.hint
    }
}
