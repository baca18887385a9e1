//! What the layer adds to a service that does nothing.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::hint::black_box;
use std::sync::Arc;

use bytes::Bytes;
use evenkeel::FlowControl;
use evenkeel::clock::ManualClock;
use evenkeel_bars::{Bar, Bars, nanos_per_operation};
use evenkeel_counting_allocator::counted;
use evenkeel_engine::User;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderValue, Request, Response};
use http_body_util::Empty;
use tower::{Layer, Service, service_fn};

use crate::instructions::PACE;
use crate::service::user;
use crate::{ROUND, now, roomy};

type Body = Empty<Bytes>;
type Responded = Ready<Result<Response<Body>, Infallible>>;

pub(crate) fn bars(bars: &mut Bars) {
    bars.measure("the layer around a bare service, uncontended", "ns", || {
        (overhead(plain, respond), Bar::AtMost(300.0, "ns"))
    });
    bars.measure("allocations that the layer adds to a request", "each", || {
        (allocations(plain, respond), Bar::AtMost(0.0, "each"))
    });
    bars.measure("the layer around a service that sets no header", "ns", || {
        (overhead(plain, respond_without_header), Bar::AtMost(300.0, "ns"))
    });
    bars.measure("allocations that the layer adds there", "each", || {
        (allocations(plain, respond_without_header), Bar::AtMost(0.0, "each"))
    });
    // For a Kubernetes API, with two more headers in the response.
    bars.measure("the layer of a Kubernetes API around a bare service", "ns", || {
        (overhead(roomy, respond), Bar::AtMost(600.0, "ns"))
    });
    bars.measure("allocations that the layer of a Kubernetes API adds", "each", || {
        (allocations(roomy, respond), Bar::AtMost(1.0, "each"))
    });
}

/// An ordinary service with more seats than anybody asks for.
fn plain() -> FlowControl {
    FlowControl::builder().server_concurrency(600).drive_by_hand().build()
}

/// The response of a service. It has a header, as those of real services have.
fn respond(request: Request<Body>) -> Responded {
    black_box(request);
    let mut response = Response::new(Body::new());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    ready(Ok(response))
}

fn respond_without_header(request: Request<Body>) -> Responded {
    black_box(request);
    ready(Ok(Response::new(Body::new())))
}

/// Calls a service once and drops its response.
fn call<S: Service<Request<Body>, Error = Infallible>>(service: &mut S) {
    let mut request = Request::new(Body::new());
    *request.uri_mut() = http::Uri::from_static("/orders");
    drop(black_box(now(service.call(request))).unwrap_or_else(|never| match never {}));
}

/// A service with the layer, whose user is known already.
fn layered(
    flow: &FlowControl,
    respond: fn(Request<Body>) -> Responded,
) -> impl Service<Request<Body>, Error = Infallible> + use<> {
    let user = Arc::new(user("one", "tenants"));
    flow.layer(move |_: &Parts| Arc::clone(&user) as Arc<User>).layer(service_fn(respond))
}

/// Requests through the layer, for `cargo xtask bench instructions`.
pub(crate) fn call_layered(calls: u32) {
    let clock = ManualClock::new();
    let flow = FlowControl::builder().server_concurrency(600).manual_clock(clock.clone()).build();
    let mut service = layered(&flow, respond);
    for _ in 0..calls {
        clock.advance(PACE);
        call(&mut service);
    }
}

/// The same without the layer.
pub(crate) fn call_bare(calls: u32) {
    let mut service = service_fn(respond);
    (0..calls).for_each(|_| call(&mut service));
}

fn nanos(mut service: impl Service<Request<Body>, Error = Infallible>) -> f64 {
    nanos_per_operation(ROUND, || (0..ROUND).for_each(|_| call(&mut service)))
}

fn overhead(flow: fn() -> FlowControl, respond: fn(Request<Body>) -> Responded) -> f64 {
    nanos(layered(&flow(), respond)) - nanos(service_fn(respond))
}

fn allocations(flow: fn() -> FlowControl, respond: fn(Request<Body>) -> Responded) -> f64 {
    let (mut bare, mut layered) = (service_fn(respond), layered(&flow(), respond));
    call(&mut layered);
    let ((), without, _) = counted(|| (0..1_000).for_each(|_| call(&mut bare)));
    let ((), with, _) = counted(|| (0..1_000).for_each(|_| call(&mut layered)));
    with.saturating_sub(without) as f64 / 1e3
}
