//! The times that a request is decided with, for those who log them.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use bytes::Bytes;
use evenkeel::FlowControl;
use evenkeel::clock::ManualClock;
use evenkeel::identify::authenticated;
use evenkeel::request::{FlowRequest, SeatTimes};
use http_body_util::Empty;
use tower::{Layer, Service, service_fn};

use crate::service::{attributes, objects, queuing_up_to, user};

/// Arrival, start and end in seconds.
fn seconds(times: &SeatTimes) -> [Option<u64>; 3] {
    [times.arrived(), times.started(), times.ended()].map(|time| time.map(|time| time.as_secs()))
}

/// One seat, a queue for one request, and a clock that stands at 3 s.
fn one_seat() -> (FlowControl, ManualClock) {
    let clock = ManualClock::new();
    let builder = FlowControl::builder().server_concurrency(1).manual_clock(clock.clone());
    let flow = builder.objects(objects([queuing_up_to("tenants", 10_000, 1)])).build();
    clock.advance(Duration::from_secs(3));
    (flow, clock)
}

#[test]
fn the_times_are_those_that_the_level_decided_with() {
    let (flow, clock) = one_seat();
    let (user, mut context) = (user("a", "tenants"), Context::from_waker(Waker::noop()));
    let arrive = |times: &Arc<SeatTimes>| flow.arrive_request(FlowRequest::new(attributes(&user)).seat_times(times));
    let [first, second, third, fourth] = [(); 4].map(|()| Arc::<SeatTimes>::default());
    let running = arrive(&first);
    assert_eq!(seconds(&first), [Some(3), None, None]);

    clock.advance(Duration::from_secs(2));
    let mut waiting = pin!(arrive(&second));
    clock.advance(Duration::from_secs(1));
    assert!(matches!(pin!(arrive(&third)).poll(&mut context), std::task::Poll::Ready(Err(_))), "the queue is full");
    assert_eq!(seconds(&third), [Some(6), None, Some(6)]);

    clock.advance(Duration::from_secs(4));
    drop(running);
    assert_eq!(seconds(&first), [Some(3), Some(3), Some(10)]);
    // It has its seat from now on, whenever its task looks.
    clock.advance(Duration::from_secs(5));
    let std::task::Poll::Ready(Ok(permit)) = waiting.as_mut().poll(&mut context) else { panic!("it has no seat") };
    let leaving = arrive(&fourth);
    clock.advance(Duration::from_secs(1));
    drop(leaving);
    drop(permit);
    assert_eq!(seconds(&second), [Some(5), Some(10), Some(16)]);
    assert_eq!(seconds(&fourth), [Some(15), None, Some(16)], "it left its queue");
}

#[tokio::test]
async fn a_request_through_the_layer_brings_them_among_its_extensions() {
    let (flow, clock) = one_seat();
    let inner = clock.clone();
    let service = service_fn(move |_: http::Request<()>| {
        inner.advance(Duration::from_secs(7));
        std::future::ready(Ok::<_, std::convert::Infallible>(http::Response::new(Empty::<Bytes>::new())))
    });
    let mut service = flow.layer(|_: &_| authenticated("a", ["tenants"])).layer(service);
    let times = Arc::<SeatTimes>::default();
    let mut request = http::Request::get("/").body(()).unwrap();
    request.extensions_mut().insert(Arc::clone(&times));
    drop(service.call(request).await.unwrap());
    assert_eq!(seconds(&times), [Some(3), Some(3), Some(10)]);
    assert_eq!(flow.clock_start(), None, "nobody knows when a clock began that is set by hand");
    assert!(FlowControl::builder().build().clock_start().is_some_and(|start| start <= std::time::Instant::now()));
}
