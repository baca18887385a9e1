//! The layer allocates nothing for a request that is let in at once.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::convert::Infallible;
use std::future::{Future, Ready, ready};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use evenkeel::FlowControl;
use evenkeel::identify::TrustedHeaders;
use evenkeel_counting_allocator::{Counting, allocations};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response, Uri};
use http_body_util::Full;
use tower::{Layer, Service, service_fn};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

type Answer = Ready<Result<Response<Full<Bytes>>, Infallible>>;

fn request() -> Request<()> {
    let mut request = Request::new(());
    *request.uri_mut() = Uri::from_static("/orders");
    request.headers_mut().insert("x-remote-user", HeaderValue::from_static("alice"));
    request
}

/// A service that answers at once. Its answer has a header, as those of real services have.
fn answer(_request: Request<()>) -> Answer {
    let mut response = Response::new(Full::new(Bytes::from_static(b"none")));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    ready(Ok(response))
}

/// How much is allocated from the call to the end of the answer.
fn cost<S>(service: &mut S, request: Request<()>) -> u64
where
    S: Service<Request<()>, Error = Infallible>,
{
    allocations(|| {
        let mut context = Context::from_waker(Waker::noop());
        assert!(service.poll_ready(&mut context).is_ready());
        let Poll::Ready(Ok(response)) = pin!(service.call(request)).poll(&mut context) else { panic!("it waits") };
        drop(response);
    })
}

#[tokio::test]
async fn an_uncontended_request_allocates_nothing_in_the_layer() {
    let mut bare = service_fn(answer);
    let mut limited =
        FlowControl::builder().kubernetes().build().layer(TrustedHeaders::default()).layer(service_fn(answer));
    // The first one makes what is kept: the user, and room in the level.
    for _ in 0..100 {
        cost(&mut limited, request());
    }
    let (bare, limited) = (cost(&mut bare, request()), cost(&mut limited, request()));
    assert_eq!(limited - bare, 0, "{limited} with the layer, {bare} without");
}
