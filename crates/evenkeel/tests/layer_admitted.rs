//! What the service behind the layer learns of its requests: who sent them, where they belong, and what the digest found.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod layer;

use std::convert::Infallible;
use std::future::{Future, Ready, ready};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use evenkeel::digest::{Digest, Digested};
use evenkeel::identify::{Anonymous, Unidentified, authenticated};
use evenkeel::service::{AdmittedRequest, Occupancy};
use evenkeel::work::{EstimateWork, WorkInput};
use evenkeel::{Admitted, FlowControl, RequestInfo, User, WorkEstimate};
use evenkeel_counting_allocator::{Counting, allocations};
use http::request::Parts;
use http::{Request, Response, StatusCode};
use http_body_util::Empty;
use tower::{Layer, Service, service_fn};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

type Body = Empty<Bytes>;

/// The number of the route that a request takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Route(u32);

/// Takes the digits of the path for the number of a route.
struct Numbers;

/// As many seats as the number of the route.
struct ByRoute;

impl Digest for Numbers {
    type Extra = Route;

    fn digest<'a>(&'a self, parts: &'a Parts) -> Result<Digested<'a, Route>, evenkeel::digest::DigestError> {
        let number = parts.uri.path().trim_start_matches('/').parse().unwrap_or(1);
        let info = RequestInfo { path: parts.uri.path().into(), verb: "get".into(), ..RequestInfo::default() };
        Ok(Digested::new(info, Route(number)))
    }

    fn occupancy(&self, digested: &Digested<'_, Route>) -> Option<Occupancy> {
        Some(if digested.extra == Route(0) { Occupancy::None } else { Occupancy::ToTheEnd })
    }
}

impl EstimateWork<Route> for ByRoute {
    fn estimate(&self, request: &WorkInput<'_, Route>) -> WorkEstimate {
        WorkEstimate::seats(request.extra.0)
    }
}

fn flow() -> FlowControl {
    FlowControl::builder().server_concurrency(100).drive_by_hand().build()
}

fn get(path: &str) -> Request<()> {
    Request::get(path).body(()).unwrap()
}

fn now<F: Future>(future: F) -> F::Output {
    let Poll::Ready(value) = pin!(future).poll(&mut Context::from_waker(Waker::noop())) else { panic!("it waits") };
    value
}

fn alice(_: &Parts) -> Arc<User> {
    authenticated("alice", ["staff"])
}

#[test]
fn the_service_gets_the_user_the_class_and_what_the_digest_found() {
    let flow = flow();
    let seen = Mutex::new(Vec::new());
    let service = service_fn(|AdmittedRequest { request, admitted }: AdmittedRequest<(), Route>| {
        let seats: i64 = flow.status().iter().map(|level| level.seats_in_use).sum();
        seen.lock().unwrap().push((request.uri().path().to_owned(), admitted, seats));
        ready(Ok::<_, Infallible>(Response::new(Body::new())))
    });
    let mut service = flow.layer(alice).digest(Numbers).work(ByRoute).pass_admitted().layer(service);
    drop(now(service.call(get("/7"))).unwrap());
    // A request that is not limited has no class, but is identified: the service is told who it is.
    drop(now(service.call(get("/0"))).unwrap());
    drop(service);
    let seen = seen.into_inner().unwrap();
    let shown = |(path, admitted, seats): &(String, Admitted<Route>, i64)| {
        let level = admitted.class.as_ref().map(|class| class.priority_level().to_owned());
        (path.clone(), admitted.user.name.to_string(), level, admitted.extra, *seats)
    };
    let limited = ("/7".to_owned(), "alice".to_owned(), Some("everyone".to_owned()), Route(7), 7);
    let unlimited = ("/0".to_owned(), "alice".to_owned(), None, Route(0), 0);
    assert_eq!(seen.iter().map(shown).collect::<Vec<_>>(), [limited, unlimited]);
    assert_eq!(seen[1].1.queue, None);
    let class = seen[0].1.class.as_ref().unwrap();
    assert_eq!((class.flow_schema(), class.flow_schema_uid(), class.priority_level_uid()), ("everyone", "", ""));
}

#[test]
fn a_request_that_has_waited_gets_the_same() {
    let flow = layer::flow();
    let service = service_fn(|request: AdmittedRequest<()>| {
        let class = request.admitted.class.unwrap();
        let mut response = Response::new(Body::new());
        response.extensions_mut().insert((class, request.admitted.user));
        ready(Ok::<_, Infallible>(response))
    });
    let mut service = flow.layer(Anonymous).pass_admitted().layer(service);
    let (user, request) = (
        User::new("x", ["system:unauthenticated"]),
        evenkeel::RequestInfo { path: "/queued".into(), verb: "get".into(), ..evenkeel::RequestInfo::default() },
    );
    let attributes = evenkeel::Attributes { user: &user, request: &request };
    let permit = now(flow.admit(attributes, WorkEstimate::ONE_SEAT)).unwrap();
    let mut waits = pin!(service.call(get("/queued")));
    let mut context = Context::from_waker(Waker::noop());
    assert!(waits.as_mut().poll(&mut context).is_pending());
    // It is known already where it waits.
    let admitted = &waits.waiting_request().unwrap().admitted;
    assert_eq!(admitted.class.as_ref().unwrap().priority_level(), "patient");
    assert_eq!((admitted.seats, admitted.queue, permit.queue()), (1, Some(0), Some(0)));
    drop(permit);
    let Poll::Ready(Ok(mut response)) = waits.as_mut().poll(&mut context) else { panic!("it waits") };
    assert!(waits.waiting_request().is_none());
    let (class, user) = response.extensions_mut().remove::<(evenkeel::request::Class, Arc<User>)>().unwrap();
    assert_eq!((class.flow_schema(), class.priority_level()), ("patient", "patient"));
    assert_eq!((class.flow_schema_uid(), class.priority_level_uid()), ("schema-2", "level-2"));
    assert_eq!(&*user.name, "system:anonymous");
}

#[test]
fn an_extension_has_the_same_for_ordinary_services() {
    let service = service_fn(|request: Request<()>| {
        let admitted = request.extensions().get::<Admitted<Route>>().unwrap();
        assert_eq!((&*admitted.user.name, admitted.extra), ("alice", Route(3)));
        assert_eq!(admitted.class.as_ref().unwrap().flow_schema(), "everyone");
        ready(Ok::<_, Infallible>(Response::new(Body::new())))
    });
    let mut service = flow().layer(alice).digest(Numbers).work(ByRoute).insert_admitted().layer(service);
    assert_eq!(now(service.call(get("/3"))).unwrap().status(), StatusCode::OK);
}

#[test]
fn unlimited_requests_need_no_identity_unless_the_service_is_told() {
    let nobody = |_: &Parts| Err::<Arc<User>, _>(Unidentified::unauthorized());
    let plain = service_fn(|_: Request<()>| ready(Ok::<_, Infallible>(Response::new(Body::new()))));
    let mut plain = flow().layer(nobody).digest(Numbers).work(ByRoute).layer(plain);
    assert_eq!(now(plain.call(get("/0"))).unwrap().status(), StatusCode::OK);
    assert_eq!(now(plain.call(get("/1"))).unwrap().status(), StatusCode::UNAUTHORIZED);
    let told = service_fn(|_: AdmittedRequest<(), Route>| ready(Ok::<_, Infallible>(Response::new(Body::new()))));
    let mut told = flow().layer(nobody).digest(Numbers).work(ByRoute).pass_admitted().layer(told);
    assert_eq!(now(told.call(get("/0"))).unwrap().status(), StatusCode::UNAUTHORIZED);
}

#[test]
fn one_service_serves_many_identities() {
    let service = service_fn(|request: AdmittedRequest<()>| {
        let mut response = Response::new(Body::new());
        response.extensions_mut().insert(request.admitted.user);
        ready(Ok::<_, Infallible>(response))
    });
    let service = flow().layer_without_identity().pass_admitted().layer(service);
    for name in ["alice", "bob"] {
        let user = authenticated(name, ["staff"]);
        let mut response = now(service.call_as(&|_: &Parts| Arc::clone(&user), get("/"))).unwrap();
        assert_eq!(&*response.extensions_mut().remove::<Arc<User>>().unwrap().name, name);
    }
    // Names that only parts of Kubernetes have are refused whoever identifies.
    let admin = authenticated("system:admin", ["system:masters"]);
    let response = now(service.call_as(&|_: &Parts| Arc::clone(&admin), get("/"))).unwrap();
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
}

#[test]
fn passing_it_on_allocates_nothing() {
    fn respond(request: AdmittedRequest<(), Route>) -> Ready<Result<Response<Body>, Infallible>> {
        drop(request);
        ready(Ok(Response::new(Body::new())))
    }
    let user = authenticated("alice", ["staff"]);
    let identify = move |_: &Parts| Arc::clone(&user);
    let service = flow().layer_without_identity().digest(Numbers).work(ByRoute).pass_admitted();
    let service = service.layer(service_fn(respond));
    let target = http::Uri::from_static("/2");
    let request = || {
        let mut request = Request::new(());
        *request.uri_mut() = target.clone();
        request
    };
    for _ in 0..100 {
        drop(now(service.call_as(&identify, request())).unwrap());
    }
    let count = allocations(|| drop(now(service.call_as(&identify, request())).unwrap()));
    assert_eq!(count, 0);
}
