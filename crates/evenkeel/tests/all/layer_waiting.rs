//! Requests that wait: for a seat, for the service to be ready, for their patience to end; and those that go away.

use crate::layer;

use std::convert::Infallible;
use std::future::{Future, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use evenkeel::Admitted;
use evenkeel::identify::Anonymous;
use evenkeel::service::AdmittedRequest;
use http::{Request, Response, StatusCode};
use http_body_util::Empty;
use layer::{Mock, Reply, ask, get, send, text};
use tokio::time::{Instant, advance, timeout};
use tower::{Layer, Service, service_fn};

const QUEUED: &str = "/queued";

#[tokio::test(start_paused = true)]
async fn a_request_waits_for_the_seat() {
    let layer = layer::layer();
    let mut first = send(&layer, &Mock::stuck(), get(QUEUED));
    assert!(first.poll().is_none());

    let mock = Mock::empty();
    let mut second = send(&layer, &mock, get(QUEUED));
    assert!(second.poll().is_none());
    assert_eq!(mock.calls(), 0);
    assert_eq!(mock.control.readiness_asked.load(Ordering::SeqCst), 0, "the service is not kept ready meanwhile");

    drop(first);
    assert_eq!(second.now().status(), StatusCode::OK);
    assert_eq!(mock.control.readiness_asked.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_seat_that_is_free_wakes_who_waits() {
    let layer = layer::layer();
    let mut first = send(&layer, &Mock::stuck(), get(QUEUED));
    assert!(first.poll().is_none());
    let second = tokio::spawn(send(&layer, &Mock::empty(), get(QUEUED)).0);
    tokio::task::yield_now().await;
    drop(first);
    let response = timeout(Duration::from_secs(1), second).await.expect("it is woken").unwrap().unwrap();
    assert_eq!(response.status(), StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn the_service_learns_how_long_the_request_waited_for_its_seat() {
    let flow = layer::flow();
    let respond = |waited: Duration| {
        let mut response = Response::new(Empty::<Bytes>::new());
        response.extensions_mut().insert(waited);
        ready(Ok::<_, Infallible>(response))
    };
    let passed = service_fn(move |request: AdmittedRequest<()>| respond(request.admitted.waited));
    let inserted = service_fn(move |request: Request<()>| {
        respond(request.extensions().get::<Admitted>().map(|admitted| admitted.waited).unwrap())
    });
    let mut passed = flow.layer(Anonymous).pass_admitted().layer(passed);
    let mut inserted = flow.layer(Anonymous).insert_admitted().layer(inserted);
    let request = || Request::get(QUEUED).body(()).unwrap();
    let mut context = Context::from_waker(Waker::noop());

    let now = |waited: &Duration, poll: Poll<Result<Response<_>, Infallible>>| {
        let Poll::Ready(Ok(response)) = poll else { panic!("it waits") };
        assert_eq!(response.extensions().get(), Some(waited));
    };
    now(&Duration::ZERO, pin!(passed.call(request())).poll(&mut context));

    let hold = || {
        let mut holder = send(&flow.layer(Anonymous), &Mock::stuck(), get(QUEUED));
        assert!(holder.poll().is_none());
        holder
    };
    let (holder, mut waits) = (hold(), pin!(passed.call(request())));
    assert!(waits.as_mut().poll(&mut context).is_pending());
    advance(Duration::from_millis(300)).await;
    drop(holder);
    // It has its seat now, but its task does not run yet.
    advance(Duration::from_millis(200)).await;
    now(&Duration::from_millis(300), waits.poll(&mut context));

    let (holder, mut waits) = (hold(), pin!(inserted.call(request())));
    assert!(waits.as_mut().poll(&mut context).is_pending());
    advance(Duration::from_millis(70)).await;
    drop(holder);
    now(&Duration::from_millis(70), waits.poll(&mut context));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_goes_away_leaves_its_queue_at_once() {
    let layer = layer::layer();
    let mut first = send(&layer, &Mock::stuck(), get(QUEUED));
    assert!(first.poll().is_none());
    let mut second = send(&layer, &Mock::empty(), get(QUEUED));
    assert!(second.poll().is_none());
    let full = ask(&layer, &Mock::empty(), get(QUEUED));
    assert_eq!(full.status(), StatusCode::TOO_MANY_REQUESTS, "one waits, and there is no room for more");

    drop(second);
    let mut third = send(&layer, &Mock::empty(), get(QUEUED));
    assert!(third.poll().is_none(), "it has the place of the one that went away");
    drop(first);
    assert_eq!(third.now().status(), StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn patience_ends_by_default_after_a_quarter_of_a_minute() {
    let layer = layer::layer();
    let mut first = send(&layer, &Mock::stuck(), get(QUEUED));
    assert!(first.poll().is_none());
    let start = Instant::now();
    let mock = Mock::empty();
    let response = send(&layer, &mock, get(QUEUED)).0.await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 15);
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(text(response).await.contains("too many requests (time-out), try again in 1 s"));
    assert_eq!(mock.calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_gives_a_quarter_of_it_to_waiting() {
    let layer = layer::layer().deadline(|parts| {
        let seconds = parts.headers.get("x-seconds")?.to_str().ok()?.parse().ok()?;
        Some(Duration::from_secs(seconds))
    });
    let mut first = send(&layer, &Mock::stuck(), get(QUEUED));
    assert!(first.poll().is_none());
    let start = Instant::now();
    let mut request = get(QUEUED);
    request.headers_mut().insert("x-seconds", "8".parse().unwrap());
    let response = send(&layer, &Mock::empty(), request).0.await.unwrap();
    assert_eq!((response.status(), start.elapsed().as_secs()), (StatusCode::TOO_MANY_REQUESTS, 2));
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_not_ready_is_waited_for_with_the_seat() {
    let layer = layer::layer();
    let mock = Mock::empty();
    mock.control.set_busy(true);
    let mut first = send(&layer, &mock, get("/orders"));
    assert!(first.poll().is_none());
    assert_eq!(mock.calls(), 0);
    assert_eq!(ask(&layer, &Mock::empty(), get("/orders")).status(), StatusCode::TOO_MANY_REQUESTS);

    let first = tokio::spawn(first.0);
    tokio::task::yield_now().await;
    mock.control.set_busy(false);
    let response = timeout(Duration::from_secs(1), first).await.expect("it is woken").unwrap().unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(mock.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn hf_16_a_panic_frees_the_seat_before_it_goes_on() {
    let layer = layer::layer();
    let mut first = send(&layer, &Mock::new(|_| Reply::Panic), get("/orders"));
    catch_unwind(AssertUnwindSafe(|| first.poll())).expect_err("the handler panics");
    // The future is still there: it was the panic that freed the seat.
    assert_eq!(ask(&layer, &Mock::empty(), get("/orders")).status(), StatusCode::OK);
    drop(first);

    // A service that is ready gets the request at once, and so panics at once.
    let panics = Mock::new(|_| panic!("in the call"));
    catch_unwind(AssertUnwindSafe(|| send(&layer, &panics, get("/orders")))).err().expect("the service panics");
    assert_eq!(ask(&layer, &Mock::empty(), get("/orders")).status(), StatusCode::OK);

    // One that has had to wait panics when it is polled.
    let mut running = send(&layer, &Mock::stuck(), get(QUEUED));
    assert!(running.poll().is_none());
    let mut waits = send(&layer, &panics, get(QUEUED));
    assert!(waits.poll().is_none());
    drop(running);
    catch_unwind(AssertUnwindSafe(|| waits.poll())).expect_err("the service panics");
    assert_eq!(ask(&layer, &Mock::empty(), get(QUEUED)).status(), StatusCode::OK);
    drop(waits);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_future_frees_the_seat_of_a_running_request() {
    let layer = layer::layer();
    let stuck = Mock::stuck();
    let mut first = send(&layer, &stuck, get("/orders"));
    assert!(first.poll().is_none());
    assert_eq!(stuck.calls(), 1);
    drop(first);
    assert_eq!(ask(&layer, &Mock::empty(), get("/orders")).status(), StatusCode::OK);
}
