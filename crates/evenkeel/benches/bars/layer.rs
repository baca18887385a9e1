//! What the layer adds to a service that does nothing.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::hint::black_box;
use std::sync::Arc;

use bytes::Bytes;
use evenkeel_bars::{Bar, Bars, nanos_per_operation};
use evenkeel_counting_allocator::counted;
use evenkeel_engine::User;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderValue, Request, Response};
use http_body_util::Empty;
use tower::{Layer, Service, service_fn};

use crate::service::user;
use crate::{ROUND, now, roomy};

type Body = Empty<Bytes>;
type Answer = Ready<Result<Response<Body>, Infallible>>;

pub(crate) fn bars(bars: &mut Bars) {
    bars.measure("the layer around a bare service, uncontended", "ns", || (overhead(answer), Bar::AtMost(400.0, "ns")));
    bars.measure("allocations that the layer adds to a request", "each", || {
        (allocations(answer), Bar::AtMost(1.0, "each"))
    });
    bars.measure("the layer around a service that sets no header", "ns", || {
        (overhead(plain_answer), Bar::AtMost(400.0, "ns"))
    });
    // Two, which are those of the map of headers: it allocates with its first one, whoever sets it.
    bars.measure("allocations that the layer adds there", "each", || {
        (allocations(plain_answer), Bar::AtMost(1.0, "each"))
    });
}

/// The answer of a service. It has a header, as those of real services have.
fn answer(request: Request<Body>) -> Answer {
    black_box(request);
    let mut response = Response::new(Body::new());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    ready(Ok(response))
}

fn plain_answer(request: Request<Body>) -> Answer {
    black_box(request);
    ready(Ok(Response::new(Body::new())))
}

/// Calls a service once and drops what it answers.
fn call<S: Service<Request<Body>, Error = Infallible>>(service: &mut S) {
    let mut request = Request::new(Body::new());
    *request.uri_mut() = http::Uri::from_static("/orders");
    drop(black_box(now(service.call(request))).unwrap_or_else(|never| match never {}));
}

/// A service with the layer, whose user is known already.
fn layered(answer: fn(Request<Body>) -> Answer) -> impl Service<Request<Body>, Error = Infallible> {
    let user = Arc::new(user("one", "tenants"));
    roomy().layer(move |_: &Parts| Arc::clone(&user) as Arc<User>).layer(service_fn(answer))
}

fn nanos(mut service: impl Service<Request<Body>, Error = Infallible>) -> f64 {
    nanos_per_operation(ROUND, || (0..ROUND).for_each(|_| call(&mut service)))
}

fn overhead(answer: fn(Request<Body>) -> Answer) -> f64 {
    nanos(layered(answer)) - nanos(service_fn(answer))
}

fn allocations(answer: fn(Request<Body>) -> Answer) -> f64 {
    let (mut bare, mut layered) = (service_fn(answer), layered(answer));
    call(&mut layered);
    let ((), without, _) = counted(|| (0..1_000).for_each(|_| call(&mut bare)));
    let ((), with, _) = counted(|| (0..1_000).for_each(|_| call(&mut layered)));
    with.saturating_sub(without) as f64 / 1e3
}
