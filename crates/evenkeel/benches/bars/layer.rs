//! What the layer adds to a service that does nothing.

use std::convert::Infallible;
use std::hint::black_box;
use std::sync::Arc;

use bytes::Bytes;
use evenkeel_engine::User;
use http::request::Parts;
use http::{Request, Response};
use http_body_util::Empty;
use tower::{Layer, Service, service_fn};

use crate::service::user;
use crate::{Measured, best_of, memory, now, roomy};

type Body = Empty<Bytes>;

async fn handle(request: Request<Body>) -> Result<Response<Body>, Infallible> {
    black_box(request);
    Ok(Response::new(Body::new()))
}

/// Calls a service once and drops what it answers.
fn call<S: Service<Request<Body>, Error = Infallible>>(service: &mut S) {
    let mut request = Request::new(Body::new());
    *request.uri_mut() = http::Uri::from_static("/orders");
    drop(black_box(now(service.call(request))).unwrap_or_else(|never| match never {}));
}

/// The same service without and with the layer, whose user is known already.
fn services() -> (impl Service<Request<Body>, Error = Infallible>, impl Service<Request<Body>, Error = Infallible>) {
    let user = Arc::new(user("one", "tenants"));
    let layer = roomy().layer(move |_: &Parts| Arc::clone(&user) as Arc<User>);
    (service_fn(handle), layer.layer(service_fn(handle)))
}

pub(crate) fn overhead() -> Measured {
    let (mut bare, mut layered) = services();
    let without = best_of(9, 300_000, |calls| (0..calls).for_each(|_| call(&mut bare)));
    let with = best_of(9, 300_000, |calls| (0..calls).for_each(|_| call(&mut layered)));
    let overhead = with.saturating_sub(without).as_nanos();
    Measured {
        measure: "the layer around a bare service, uncontended",
        figure: format!("{overhead} ns"),
        bar: "at most 400 ns".to_owned(),
        is_met: overhead <= 400,
    }
}

pub(crate) fn allocations() -> Measured {
    let (mut bare, mut layered) = services();
    call(&mut layered);
    let ((), without, _) = memory::counted(|| (0..1_000).for_each(|_| call(&mut bare)));
    let ((), with, _) = memory::counted(|| (0..1_000).for_each(|_| call(&mut layered)));
    let each = with.saturating_sub(without) as f64 / 1e3;
    Measured {
        measure: "allocations that the layer adds to a request",
        figure: each.to_string(),
        bar: "at most 1".to_owned(),
        is_met: each <= 1.0,
    }
}
