//! A service that fails when it is asked whether it is ready: its error is the answer, and no seat is kept.

use crate::layer;

use std::future::{Future, Pending, pending};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use evenkeel::identify::Anonymous;
use http::{Request, Response, StatusCode};
use layer::{Mock, TestBody, ask, flow, get, send};
use tower::{Layer, Service};

/// Is not ready as often as it was told, and then fails. It must not be asked again after that.
#[derive(Clone, Default)]
struct Failing {
    pending: usize,
    asked: Arc<AtomicUsize>,
}

#[derive(Debug, PartialEq)]
struct Broken;

impl Service<Request<()>> for Failing {
    type Response = Response<TestBody>;
    type Error = Broken;
    type Future = Pending<Result<Response<TestBody>, Broken>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        match self.asked.fetch_add(1, Ordering::SeqCst) {
            before if before < self.pending => Poll::Pending,
            before if before == self.pending => Poll::Ready(Err(Broken)),
            _ => panic!("it was asked again"),
        }
    }

    fn call(&mut self, _request: Request<()>) -> Self::Future {
        pending()
    }
}

/// Asks the layer around a service that fails, and expects the error after that many polls.
fn fails_at_poll(failing: Failing, polls: usize, path: &str) {
    let flow = flow();
    let layer = flow.layer(Anonymous);
    let mut service = layer.layer(failing);
    let mut context = Context::from_waker(Waker::noop());
    assert_eq!(service.poll_ready(&mut context), Poll::Ready(Ok(())), "the layer itself is always ready");
    let mut future = pin!(service.call(get(path)));
    for _ in 1..polls {
        assert!(future.as_mut().poll(&mut context).is_pending());
    }
    let Poll::Ready(Err(error)) = future.as_mut().poll(&mut context) else { panic!("no error") };
    assert_eq!(error, Broken);
    // The future is still there: its seat is not.
    assert_eq!(ask(&layer, &Mock::empty(), get(path)).status(), StatusCode::OK);
    assert!(future.as_mut().poll(&mut context).is_pending(), "nothing is left to say");
    assert!(flow.status().iter().all(evenkeel::status::LevelStatus::is_idle));
}

#[tokio::test(start_paused = true)]
async fn a_service_that_fails_at_once() {
    fails_at_poll(Failing::default(), 1, "/orders");
    fails_at_poll(Failing::default(), 1, "/queued");
}

#[tokio::test(start_paused = true)]
async fn a_service_that_fails_later() {
    // Asked once by the call, and then by every poll.
    fails_at_poll(Failing { pending: 1, ..Failing::default() }, 1, "/orders");
    fails_at_poll(Failing { pending: 3, ..Failing::default() }, 3, "/orders");
}

#[tokio::test(start_paused = true)]
async fn a_service_that_fails_when_a_request_has_waited() {
    let flow = flow();
    let layer = flow.layer(Anonymous);
    let mut running = send(&layer, &Mock::stuck(), get("/queued"));
    assert!(running.poll().is_none());
    let failing = Failing::default();
    let mut future = pin!(layer.layer(failing.clone()).call(get("/queued")));
    let mut context = Context::from_waker(Waker::noop());
    assert!(future.as_mut().poll(&mut context).is_pending());
    assert_eq!(failing.asked.load(Ordering::SeqCst), 0, "it has not been let in");
    drop(running);
    assert!(matches!(future.as_mut().poll(&mut context), Poll::Ready(Err(Broken))));
    assert_eq!(ask(&layer, &Mock::empty(), get("/queued")).status(), StatusCode::OK);
}
