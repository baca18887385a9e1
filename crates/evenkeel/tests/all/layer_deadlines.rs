//! How long requests wait that say themselves how much time they have (HF-6, HF-7).

use crate::layer;

use std::convert::Infallible;
use std::time::Duration;

use evenkeel::FlowControl;
use evenkeel::digest::{Route, RouteTable};
use evenkeel::identify::Anonymous;
use evenkeel::service::FlowBody;
use http::{Request, Response};
use layer::{Mock, ONE_SEAT, TestBody, get, send};
use tokio::time::Instant;
use tower::{Layer, Service};

/// How long a request waits for a seat that does not come free.
async fn wait<L>(layer: &L, request: Request<()>) -> Duration
where
    L: Layer<Mock>,
    L::Service: Service<Request<()>, Response = Response<FlowBody<TestBody>>, Error = Infallible>,
    <L::Service as Service<Request<()>>>::Future: Send + 'static,
{
    let mut running = send(layer, &Mock::stuck(), get("/queued"));
    assert!(running.poll().is_none());
    let start = Instant::now();
    let response = send(layer, &Mock::empty(), request).0.await.unwrap();
    // Calls of gRPC are told in gRPC: RESOURCE_EXHAUSTED.
    let is_rejected = response.status() == 429 || response.headers().get("grpc-status").is_some_and(|code| code == "8");
    assert!(is_rejected, "{response:?}");
    start.elapsed()
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Tokio's timers round up to the next millisecond.
#[track_caller]
fn assert_waited(waited: Duration, expected: Duration, what: &str) {
    assert!(waited >= expected && waited <= expected + Duration::from_millis(2), "{what}: {waited:?}");
}

fn call(timeout: &str) -> Request<()> {
    let request = Request::post("/queued").header("content-type", "application/grpc").header("grpc-timeout", timeout);
    request.body(()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn hf_7_the_parameter_of_a_kubernetes_request() {
    let layer = layer::layer();
    for (target, expected) in [
        ("/queued", seconds(15)),
        ("/queued?timeout=8s", seconds(2)),
        ("/queued?timeout=400ms", Duration::from_millis(100)),
        ("/queued?timeout=59s", Duration::from_millis(14_750)),
        ("/queued?timeout=60s", seconds(15)),
        ("/queued?timeout=1h", seconds(15)),
        ("/queued?timeout=0", seconds(15)),
        ("/queued?timeout=-8s", seconds(15)),
        ("/queued?timeout=soon", seconds(15)),
    ] {
        assert_waited(wait(&layer, get(target)).await, expected, target);
    }
}

#[tokio::test(start_paused = true)]
async fn hf_7_it_is_held_against_the_timeout_of_the_server() {
    let flow =
        FlowControl::builder().kubernetes().server_concurrency(1).wait_limit(seconds(1)).objects(ONE_SEAT).build();
    let layer = flow.layer(Anonymous);
    assert_waited(wait(&layer, get("/queued?timeout=2s")).await, Duration::from_millis(500), "less than four seconds");
    assert_waited(wait(&layer, get("/queued?timeout=8s")).await, seconds(1), "more");
}

#[tokio::test(start_paused = true)]
async fn hf_7_other_services_may_mean_something_else_by_it() {
    let layer = layer::layer().digest(RouteTable::new([Route::new("/shops/{resource}")]).unwrap());
    assert_waited(wait(&layer, get("/queued?timeout=8s")).await, seconds(15), "no Kubernetes");
}

#[tokio::test(start_paused = true)]
async fn hf_6_the_header_of_a_call_of_grpc() {
    let layer = layer::layer();
    assert_waited(wait(&layer, call("8S")).await, seconds(2), "8S");
    assert_waited(wait(&layer, call("8000m")).await, seconds(2), "8000m");
    assert_waited(wait(&layer, call("1H")).await, seconds(15), "1H");
    assert_waited(wait(&layer, call("never")).await, seconds(15), "never");
    let layer = layer.digest(RouteTable::new([Route::new("/shops/{resource}")]).unwrap());
    assert_waited(wait(&layer, call("8S")).await, seconds(2), "whatever the digest");
}

#[tokio::test(start_paused = true)]
async fn what_the_service_says_comes_first() {
    let layer = layer::layer().deadline(|_| Some(seconds(4)));
    assert_waited(wait(&layer, get("/queued?timeout=8s")).await, seconds(1), "Kubernetes");
    assert_waited(wait(&layer, call("8S")).await, seconds(1), "gRPC");
    let layer = layer.deadline(|_| None);
    assert_waited(wait(&layer, get("/queued?timeout=8s")).await, seconds(15), "no deadline");
}
