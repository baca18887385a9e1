//! How long a request keeps its seat: until the body of its answer has ended, failed or been dropped; watches and
//! upgrades until their headers are there.

use crate::layer;

use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use evenkeel::explain::WaitOutcome;
use evenkeel::identify::{Anonymous, anonymous};
use evenkeel::request::{Rejection, SharedPermit};
use evenkeel::service::{FlowBody, Occupancy};
use evenkeel::work::KubernetesWork;
use evenkeel::{FlowControl, FlowLayer, Rejected};
use evenkeel_engine::digest::Kubernetes;
use evenkeel_engine::{Attributes, LevelInfo, RequestInfo, WorkEstimate};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use layer::{Frames, Mock, Reply, TestBody, ask, flow, get};

type FrameResult = Option<Result<Frame<Bytes>, &'static str>>;

/// Polls a body once.
fn frame(body: &mut FlowBody<TestBody>) -> Poll<FrameResult> {
    pin!(body).as_mut().poll_frame(&mut Context::from_waker(Waker::noop()))
}

/// Whether the one seat is free.
fn is_free<W: evenkeel::work::EstimateWork + Send + Sync + 'static>(
    layer: &evenkeel::FlowLayer<Anonymous, evenkeel::digest::PresetDigest, W>,
) -> bool {
    ask(layer, &Mock::empty(), get("/other")).status() == StatusCode::OK
}

fn data(frames: &Frames, text: &'static str) {
    frames.send(Ok(Frame::data(Bytes::from_static(text.as_bytes())))).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_slow_body_keeps_the_seat_until_it_ends() {
    let layer = layer::layer();
    let (mock, frames) = Mock::streaming();
    let mut body = ask(&layer, &mock, get("/orders")).into_body();
    assert!(frame(&mut body).is_pending());
    assert!(!is_free(&layer));
    data(&frames, "some");
    assert!(matches!(frame(&mut body), Poll::Ready(Some(Ok(_)))));
    assert!(!is_free(&layer));
    drop(frames);
    assert!(matches!(frame(&mut body), Poll::Ready(None)));
    assert!(is_free(&layer), "the body is still there, but it has ended");
}

#[tokio::test(start_paused = true)]
async fn the_last_frame_frees_the_seat() {
    let layer = layer::layer();
    let (mock, frames) = Mock::streaming();
    let mut body = ask(&layer, &mock, get("/orders")).into_body();
    data(&frames, "all");
    drop(frames);
    assert!(!body.is_end_stream());
    assert!(!is_free(&layer));
    assert!(matches!(frame(&mut body), Poll::Ready(Some(Ok(_)))));
    assert!(body.is_end_stream());
    assert!(is_free(&layer), "nobody has to ask for a frame after the last one");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_fails_or_is_dropped_frees_the_seat() {
    let layer = layer::layer();
    let (mock, frames) = Mock::streaming();
    let mut body = ask(&layer, &mock, get("/orders")).into_body();
    frames.send(Err("lost")).unwrap();
    assert!(matches!(frame(&mut body), Poll::Ready(Some(Err("lost")))));
    assert!(is_free(&layer));

    let (mock, _frames) = Mock::streaming();
    let body = ask(&layer, &mock, get("/orders")).into_body();
    assert!(!is_free(&layer));
    drop(body);
    assert!(is_free(&layer));
}

#[tokio::test(start_paused = true)]
async fn a_body_that_has_ended_already_keeps_nothing() {
    let layer = layer::layer();
    let _response = ask(&layer, &Mock::empty(), get("/orders"));
    assert!(is_free(&layer));
}

#[tokio::test(start_paused = true)]
async fn size_hints_and_trailers_pass_through() {
    let layer = layer::layer();
    let hints = Mock::new(|_| {
        let (frames, body) = TestBody::streamed();
        let mut trailers = HeaderMap::new();
        trailers.insert("x-sum", "7".parse().unwrap());
        frames.send(Ok(Frame::trailers(trailers))).unwrap();
        Reply::Now(Response::new(body.hint(SizeHint::with_exact(17))))
    });
    let mut body = ask(&layer, &hints, get("/orders")).into_body();
    assert_eq!(body.size_hint().exact(), Some(17));
    let Poll::Ready(Some(Ok(frame))) = frame(&mut body) else { panic!("there are trailers") };
    assert_eq!(frame.into_trailers().unwrap()["x-sum"], "7");
    assert!(is_free(&layer));
}

#[tokio::test(start_paused = true)]
async fn hf_10_a_watch_frees_its_seat_at_the_headers() {
    let layer = layer::layer();
    let (mock, frames) = Mock::streaming();
    let response = ask(&layer, &mock, get("/api/v1/pods?watch=1"));
    assert_eq!(response.headers()["x-kubernetes-pf-flowschema-uid"], "schema-1");
    assert!(is_free(&layer));
    data(&frames, "event");
    assert!(matches!(frame(&mut response.into_body()), Poll::Ready(Some(Ok(_)))));
}

#[tokio::test(start_paused = true)]
async fn a_stream_frees_its_seat_at_the_headers_if_told_so() {
    let layer = layer::layer().long_running(|parts, _| match parts.uri.path() {
        "/events" => Occupancy::ToTheHeaders,
        _ => Occupancy::ToTheEnd,
    });
    let (mock, _frames) = Mock::streaming();
    let _response = ask(&layer, &mock, get("/events"));
    assert!(is_free(&layer));
}

#[tokio::test(start_paused = true)]
async fn an_upgrade_frees_its_seat() {
    let layer = layer::layer();
    let upgrade = Mock::new(|_| {
        let (frames, body) = TestBody::streamed();
        std::mem::forget(frames);
        Reply::Now(Response::builder().status(101).body(body).unwrap())
    });
    let response = ask(&layer, &upgrade, get("/socket"));
    assert_eq!(response.headers()["x-kubernetes-pf-prioritylevel-uid"], "level-1");
    assert!(is_free(&layer));
}

#[tokio::test(start_paused = true)]
async fn hf_11_a_watch_is_counted_until_its_body_ends() {
    let work = KubernetesWork::default();
    let layer = flow().layer(Anonymous).work(work.clone());
    let create = Kubernetes::default().digest("POST", "/api/v1/namespaces/a/pods").unwrap();
    assert_eq!(work.interested(&create), 0);

    let (mock, frames) = Mock::streaming();
    let mut body = ask(&layer, &mock, get("/api/v1/pods?watch=1")).into_body();
    assert_eq!(work.interested(&create), 1);
    assert!(is_free(&layer));
    assert_eq!(work.interested(&create), 1);
    drop(frames);
    assert!(matches!(frame(&mut body), Poll::Ready(None)));
    assert_eq!(work.interested(&create), 0);
}

#[tokio::test(start_paused = true)]
async fn hf_11_a_rejected_watch_is_never_counted() {
    let work = KubernetesWork::default();
    let layer = flow().layer(Anonymous).work(work.clone());
    let create = Kubernetes::default().digest("POST", "/api/v1/namespaces/a/pods").unwrap();
    let mut first = layer::send(&layer, &Mock::stuck(), get("/orders"));
    assert!(first.poll().is_none());
    let response = ask(&layer, &Mock::empty(), get("/api/v1/pods?watch=1"));
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(work.interested(&create), 0);
}

/// An ordinary service with a level that may have two long-running requests; those for `/events` are.
struct LongRunning {
    flow: FlowControl,
    layer: FlowLayer<Anonymous>,
}

impl LongRunning {
    fn new() -> Self {
        let flow = FlowControl::builder().server_concurrency(100).drive_by_hand().build();
        let layer = flow.clone().layer(Anonymous).long_running(|parts, _| match parts.uri.path() {
            "/events" => Occupancy::ToTheHeaders,
            _ => Occupancy::ToTheEnd,
        });
        let service = Self { flow, layer };
        service.limit("2");
        service
    }

    /// Changes the limit.
    fn limit(&self, max: &str) {
        let objects = format!(
            "
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {{name: shop, annotations: {{evenkeel.dev/max-long-running: '{max}'}}}}
spec: {{type: Limited, limited: {{nominalConcurrencyShares: 100, limitResponse: {{type: Reject}}}}}}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {{name: shop}}
spec:
  matchingPrecedence: 100
  priorityLevelConfiguration: {{name: shop}}
  rules:
  - subjects: [{{kind: Group, group: {{name: system:unauthenticated}}}}]
    nonResourceRules: [{{verbs: ['*'], nonResourceURLs: ['*']}}]
"
        );
        self.flow.apply(&*objects).unwrap();
    }

    /// Asks for a stream; `None` if that is rejected.
    fn stream(&self) -> Option<(FlowBody<TestBody>, Frames)> {
        let (mock, frames) = Mock::streaming();
        let response = ask(&self.layer, &mock, get("/events"));
        Self::is_let_in(&response).then(|| (response.into_body(), frames))
    }

    /// Asks for another protocol, to which the service agrees; `None` if that is rejected.
    fn upgrade(&self) -> Option<FlowBody<TestBody>> {
        let mock = Mock::new(|_| Reply::Now(Response::builder().status(101).body(TestBody::empty()).unwrap()));
        let response = ask(&self.layer, &mock, asking_for_upgrade());
        Self::is_let_in(&response).then(|| response.into_body())
    }

    fn is_let_in(response: &Response<FlowBody<TestBody>>) -> bool {
        let Some(rejected) = response.extensions().get::<Rejected>() else { return true };
        assert_eq!((response.status().as_u16(), rejected.reason), (429, Rejection::TooManyLongRunning));
        assert_eq!(response.headers()["x-evenkeel-reason"], "too-many-long-running");
        assert_eq!(response.headers()["x-evenkeel-level"], "shop");
        assert_eq!(response.headers().get("x-evenkeel-expected-wait"), None, "nobody knows");
        assert!((11..=15).contains(&rejected.retry_after.as_secs()), "{:?}", rejected.retry_after);
        false
    }

    fn count(&self) -> u32 {
        self.flow.status().iter().map(|level| level.long_running).sum()
    }
}

/// How a `WebSocket` begins over HTTP/2 (RFC 8441).
fn asking_over_http2() -> Request<()> {
    Request::connect("https://shop.example/socket").version(http::Version::HTTP_2).body(()).unwrap()
}

fn asking_for_upgrade() -> Request<()> {
    Request::get("/socket").header("connection", "upgrade").header("upgrade", "websocket").body(()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn one_long_running_request_too_many_is_rejected() {
    let service = LongRunning::new();
    let (mut first, frames) = service.stream().unwrap();
    let second = service.upgrade().unwrap();
    assert_eq!(service.count(), 2);
    assert!(service.stream().is_none() && service.upgrade().is_none());
    assert_eq!(ask(&service.layer, &Mock::empty(), get("/orders")).status(), 200, "ordinary requests go on");
    assert_eq!(service.flow.status().iter().map(|level| level.seats_in_use).sum::<i64>(), 0);

    data(&frames, "some");
    assert!(matches!(frame(&mut first), Poll::Ready(Some(Ok(_)))));
    assert!(service.stream().is_none());
    drop(frames);
    assert!(matches!(frame(&mut first), Poll::Ready(None)));
    assert_eq!(service.count(), 1, "its body has ended");
    let (third, _frames) = service.stream().unwrap();
    drop(second);
    drop(third);
    assert_eq!(service.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_changed_limit_ends_nothing() {
    let service = LongRunning::new();
    service.limit("none");
    let before: Vec<_> = (0..5).map(|_| service.stream().expect("there is no limit")).collect();
    service.limit("3");
    assert_eq!(service.count(), 5, "they count, though there was no limit when they came");
    assert!(service.stream().is_none());
    drop(before);
    let _streams: Vec<_> = (0..3).map(|_| service.stream().unwrap()).collect();
    assert!(service.stream().is_none());
    service.limit("4");
    let _fourth = service.stream().unwrap();
    service.limit("0");
    assert!(service.stream().is_none());
    assert_eq!(service.count(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_level_that_comes_back_counts_what_goes_on() {
    let service = LongRunning::new();
    let streams = [service.stream().unwrap(), service.stream().unwrap()];
    service.flow.apply(evenkeel::objects::Objects::default()).unwrap();
    service.flow.tick();
    assert!(service.flow.status().iter().all(|level| level.name != "shop"), "it has no seats in use, and goes");
    service.limit("2");
    assert_eq!(service.count(), 2);
    assert!(service.stream().is_none());
    drop(streams);
    assert!(service.stream().is_some());
}

#[tokio::test(start_paused = true)]
async fn an_upgrade_that_is_not_agreed_to_counts_until_its_response() {
    let service = LongRunning::new();
    let (mock, _frames) = Mock::streaming();
    let mut waits = layer::send(&service.layer, &Mock::stuck(), asking_for_upgrade());
    assert!(waits.poll().is_none());
    assert_eq!(service.count(), 1, "it may become one");
    let response = ask(&service.layer, &mock, asking_for_upgrade());
    assert_eq!((response.status().as_u16(), service.count()), (200, 1));
    drop(waits);
    assert_eq!(service.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn whoever_serves_the_connection_keeps_the_place_of_an_upgrade() {
    let service = LongRunning::new();
    let mut body = service.upgrade().unwrap();
    let kept = Pin::new(&mut body).take_long_running().unwrap();
    assert!(Pin::new(&mut body).take_long_running().is_none());
    drop(body);
    assert_eq!(service.count(), 1);
    drop(kept);
    assert_eq!(service.count(), 0);

    // A handler does the same by its share of the permit.
    let kept = Arc::<Mutex<Option<evenkeel::request::LongRunning>>>::default();
    let keeps = Arc::clone(&kept);
    let mock = Mock::new(move |request| {
        let permit = request.extensions().get::<SharedPermit>().unwrap();
        *keeps.lock().unwrap() = permit.take_long_running();
        Reply::Now(Response::builder().status(101).body(TestBody::empty()).unwrap())
    });
    drop(ask(&service.layer.clone().share_permits(), &mock, asking_for_upgrade()));
    assert_eq!(service.count(), 1);
    kept.lock().unwrap().take();
    assert_eq!(service.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_websocket_over_http2_counts_like_one_over_http1() {
    let service = LongRunning::new();
    let agree = |status: u16| {
        Mock::new(move |_| Reply::Now(Response::builder().status(status).body(TestBody::empty()).unwrap()))
    };
    let connect = |status| ask(&service.layer, &agree(status), asking_over_http2());
    let first = connect(200);
    let second = service.upgrade().unwrap();
    assert!(LongRunning::is_let_in(&first) && service.count() == 2);
    assert_eq!(service.flow.status().iter().map(|level| level.seats_in_use).sum::<i64>(), 0, "seats are free");
    assert!(!LongRunning::is_let_in(&connect(200)), "one too many");
    drop((first, second));
    assert_eq!(service.count(), 0);

    // One that the service does not agree to is an ordinary request.
    let refused = connect(400);
    assert_eq!((refused.status().as_u16(), service.count()), (400, 0));
    // Whoever serves the connection keeps its place.
    let mut body = connect(204).into_body();
    let kept = Pin::new(&mut body).take_long_running().unwrap();
    drop(body);
    assert_eq!(service.count(), 1);
    drop(kept);
    assert_eq!(service.count(), 0);
}

/// A service that never responds, and keeps the permits that it is given.
fn keeping() -> (Mock, Arc<Mutex<Vec<SharedPermit>>>) {
    let kept = Arc::<Mutex<Vec<SharedPermit>>>::default();
    let keeps = Arc::clone(&kept);
    let mock = Mock::new(move |request| {
        keeps.lock().unwrap().extend(request.extensions().get::<SharedPermit>().cloned());
        Reply::Never
    });
    (mock, kept)
}

#[tokio::test(start_paused = true)]
async fn work_that_outlives_its_request_keeps_the_seat() {
    let layer = layer::layer().share_permits();
    let (mock, kept) = keeping();
    drop(layer::send(&layer, &mock, get("/orders")));
    assert_eq!(kept.lock().unwrap().len(), 1);
    assert_eq!(kept.lock().unwrap()[0].priority_level(), "strict");
    assert!(!is_free(&layer));
    kept.lock().unwrap().clear();
    assert!(is_free(&layer));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_has_waited_gets_its_share_of_the_permit_too() {
    let layer = layer::layer().share_permits();
    let (mock, kept) = keeping();
    let first = layer::send(&layer, &mock, get("/queued"));
    let mut second = layer::send(&layer, &mock, get("/queued"));
    assert!(second.poll().is_none());
    assert_eq!(kept.lock().unwrap().len(), 1);
    drop(first);
    kept.lock().unwrap().clear();
    assert!(second.poll().is_none());
    assert_eq!(kept.lock().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn handlers_get_no_permit_unless_they_are_meant_to() {
    let (mock, kept) = keeping();
    drop(layer::send(&layer::layer(), &mock, get("/orders")));
    assert!(kept.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn seats_can_be_taken_from_a_request_and_from_its_response() {
    use tower::{Layer, Service};

    let layer = layer::layer();
    let mut future = Box::pin(layer.layer(Mock::stuck()).call(get("/orders")));
    assert!(future.has_permit());
    let permit = future.as_mut().take_permit().expect("it has been let in");
    assert!(!future.has_permit() && future.as_mut().take_permit().is_none());
    drop(future);
    assert!(!is_free(&layer));
    drop(permit);
    assert!(is_free(&layer));

    let (mock, _frames) = Mock::streaming();
    let mut body = ask(&layer, &mock, get("/orders")).into_body();
    assert!(body.has_permit());
    let permit = Pin::new(&mut body).take_permit();
    assert!(!body.has_permit());
    drop(body);
    assert!(!is_free(&layer));
    drop(permit);
    assert!(is_free(&layer));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_takes_no_seat_counts_until_its_response_has_ended() {
    let service = LongRunning::new();
    let layer = service.flow.clone().layer(Anonymous).work(|attributes: Attributes<'_>, _: &LevelInfo| {
        if attributes.request.path == "/poll" { WorkEstimate::NO_SEAT } else { WorkEstimate::ONE_SEAT }
    });
    let (polls, _frames) = Mock::streaming();
    let mut body = ask(&layer, &polls, get("/poll")).into_body();
    let mut waits = layer::send(&layer, &Mock::stuck(), get("/poll"));
    assert!(waits.poll().is_none());
    let level = || service.flow.status().into_iter().find(|level| level.name == "shop").unwrap();
    assert_eq!((level().long_running, level().seatless, level().executing, level().seats_in_use), (2, 2, 2, 0));
    assert!(!body.has_permit() && Pin::new(&mut body).take_permit().is_none(), "it has no seats to keep");

    let third = ask(&layer, &polls, get("/poll"));
    assert_eq!(third.extensions().get::<Rejected>().unwrap().reason, Rejection::TooManyLongRunning);
    assert_eq!(third.extensions().get::<Rejected>().unwrap().seats, 0);
    assert_eq!(ask(&layer, &Mock::empty(), get("/orders")).status(), 200, "ordinary requests go on");

    drop(waits);
    assert_eq!(service.count(), 1, "its client has left");
    drop(body);
    assert_eq!((service.count(), level().is_idle()), (0, true));
}

#[tokio::test(start_paused = true)]
async fn what_takes_no_seat_is_explained() {
    let service = LongRunning::new();
    let explain = || {
        let (user, request) = (anonymous(), RequestInfo::for_path("get", "/poll"));
        service.flow.explain(Attributes { user: &user, request: &request }, WorkEstimate::NO_SEAT)
    };
    let wait = explain().live.unwrap().wait;
    assert_eq!((explain().seats.initial, wait.outcome, &*wait.why), (0, WaitOutcome::Starts, "it takes no seat"));
    let _streams = [service.stream().unwrap(), service.stream().unwrap()];
    let wait = explain().live.unwrap().wait;
    assert_eq!(wait.outcome, WaitOutcome::Rejected);
    assert_eq!(wait.why, "the level has 2 long-running requests, and no more than 2 may run");
}
