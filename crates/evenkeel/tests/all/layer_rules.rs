//! What a layer can be told: who is calling, what is asked, and how much work it is.

use crate::layer;

use std::sync::{Arc, Mutex};

use evenkeel::FlowControl;
use evenkeel::identify::{Anonymous, FromExtension, Identify, TrustedHeaders, Unidentified, anonymous, authenticated};
use evenkeel::service::Occupancy;
use evenkeel::work::KubernetesWork;
use evenkeel_engine::digest::DigestError;
use evenkeel_engine::digest::routes::{Route, RouteTable};
use evenkeel_engine::{Attributes, LevelInfo, RequestInfo, User, WorkEstimate};
use http::request::Parts;
use http::{HeaderName, Request, StatusCode};
use layer::{Mock, ask, flow, get, send};

fn parts(request: http::request::Builder) -> Parts {
    request.body(()).unwrap().into_parts().0
}

type Seen = Arc<Mutex<Vec<String>>>;

/// A layer's work that writes down what it sees.
fn spy() -> (Seen, impl Fn(Attributes<'_>, &LevelInfo) -> WorkEstimate) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&seen);
    let work = move |attributes: Attributes<'_>, level: &LevelInfo| {
        let Attributes { user, request } = attributes;
        notes.lock().unwrap().push(format!("{} {} {} in {}", user.name, request.verb, request.resource, level.name));
        WorkEstimate::ONE_SEAT
    };
    (seen, work)
}

#[test]
fn dg_2_trusted_headers() {
    let headers = TrustedHeaders::default();
    assert_eq!(headers.identify(&parts(Request::get("/"))).unwrap(), anonymous());
    let alice = || Request::get("/").header("x-remote-user", "alice");
    let plain = headers.identify(&parts(alice())).unwrap();
    assert_eq!(*plain, User::new("alice", ["system:authenticated"]));
    let again = headers.identify(&parts(alice())).unwrap();
    assert!(Arc::ptr_eq(&plain, &again), "the same user is not put together twice");

    let staff = headers.identify(&parts(alice().header("x-remote-group", "staff"))).unwrap();
    assert_eq!(*staff, User::new("alice", ["staff", "system:authenticated"]));
    let plain = headers.identify(&parts(alice())).unwrap();
    assert_eq!(*plain, User::new("alice", ["system:authenticated"]), "groups are believed anew every time");
    let said = headers.identify(&parts(alice().header("x-remote-group", "system:authenticated"))).unwrap();
    assert_eq!(*said, User::new("alice", ["system:authenticated"]));
    assert_eq!(headers.identify(&parts(Request::get("/").header("x-remote-user", ""))).unwrap(), anonymous());

    let bad = Request::get("/").header("x-remote-user", &b"\xff"[..]);
    assert_eq!(headers.identify(&parts(bad)).unwrap_err().status, StatusCode::BAD_REQUEST);

    let tenants = TrustedHeaders::new(HeaderName::from_static("x-tenant"), HeaderName::from_static("x-plan"));
    let acme = parts(alice().header("x-tenant", "acme").header("x-plan", "free"));
    assert_eq!(*tenants.identify(&acme).unwrap(), User::new("acme", ["free", "system:authenticated"]));
}

#[test]
fn extensions() {
    let alice = authenticated("alice", ["staff"]);
    let known = parts(Request::get("/").extension(Arc::clone(&alice)));
    assert!(Arc::ptr_eq(&FromExtension::<Arc<User>>::new().identify(&known).unwrap(), &alice));
    let unknown = parts(Request::get("/"));
    assert_eq!(FromExtension::<Arc<User>>::new().or_anonymous().identify(&unknown).unwrap(), anonymous());
}

#[tokio::test(start_paused = true)]
async fn the_layer_goes_by_what_it_is_told() {
    let (seen, work) = spy();
    let routes = RouteTable::new([Route::new("/shops/{namespace}/{resource}")]).unwrap();
    let layer = flow().layer(|_: &Parts| authenticated("alice", ["staff"])).digest(routes).work(work);
    assert_eq!(ask(&layer, &Mock::empty(), get("http://host/shops/17/orders?x=1")).status(), StatusCode::OK);
    assert_eq!(*seen.lock().unwrap(), ["alice list orders in catch-all"]);

    let (seen, work) = spy();
    let layer = flow().layer(Anonymous).work(work).digest_with(|parts| {
        Ok(RequestInfo { path: parts.uri.path().into(), verb: "do".into(), ..RequestInfo::default() })
    });
    assert_eq!(ask(&layer, &Mock::empty(), get("/orders")).status(), StatusCode::OK);
    assert_eq!(*seen.lock().unwrap(), ["system:anonymous do  in strict"]);
}

#[tokio::test(start_paused = true)]
async fn a_digest_may_be_a_function() {
    fn digest(parts: &Parts) -> Result<RequestInfo<'_>, DigestError> {
        match parts.uri.path() {
            "/bad" => Err(DigestError::Escape { position: 3 }),
            path => Ok(RequestInfo { path: path.into(), verb: "get".into(), ..RequestInfo::default() }),
        }
    }
    let layer = flow().layer(Anonymous).digest(digest);
    assert_eq!(ask(&layer, &Mock::empty(), get("/orders")).status(), StatusCode::OK);
    assert_eq!(ask(&layer, &Mock::empty(), get("/bad")).status(), StatusCode::BAD_REQUEST);
}

#[tokio::test(start_paused = true)]
async fn with_plain_paths_no_request_goes_past_the_limits() {
    // What Kubernetes does not limit, or not for long.
    let requests = || {
        let special = ["/api/v1/pods?watch=1", "/api/v1/pods/a/log", "/api/v1/proxy/nodes/a", "/debug/pprof/heap"];
        let methods = ["WATCH", "PROXY"].map(|method| Request::builder().method(method).uri("/x").body(()).unwrap());
        special.map(get).into_iter().chain(methods)
    };
    let seats = |flow: &FlowControl| flow.status().iter().map(|level| level.seats_in_use).sum::<i64>();
    for request in requests() {
        let flow = flow();
        let (mock, _frames) = Mock::streaming();
        let answer = ask(&flow.layer(Anonymous), &mock, request.clone());
        assert_eq!(seats(&flow), 0, "{request:?}");
        drop(answer);
        let (mock, _frames) = Mock::streaming();
        let answer = ask(&flow.layer(Anonymous).plain_paths(), &mock, request.clone());
        assert_eq!(seats(&flow), 1, "{request:?}");
        drop(answer);
    }

    let (seen, work) = spy();
    let layer = flow().layer(Anonymous).plain_paths().work(work);
    for request in requests() {
        assert_eq!(ask(&layer, &Mock::empty(), request).status(), StatusCode::OK);
    }
    assert!(seen.lock().unwrap().iter().all(|line| line.ends_with("  in strict")), "no resources: {seen:?}");
    assert_eq!(ask(&layer, &Mock::empty(), get("/%zz")).status(), StatusCode::BAD_REQUEST);
}

#[tokio::test(start_paused = true)]
async fn with_plain_paths_the_service_says_what_runs_for_long() {
    let flow = flow();
    let layer = flow.layer(Anonymous).long_running(|_, _| Occupancy::None).plain_paths();
    let _answer = send(&layer, &Mock::stuck(), get("/events"));
    assert!(flow.status().iter().all(evenkeel::status::LevelStatus::is_idle));
}

#[tokio::test(start_paused = true)]
async fn an_identification_may_give_a_user_or_none() {
    let name = |layer: &dyn Identify| layer.identify(&parts(Request::get("/"))).map(|user| user.name.to_string());
    assert_eq!(name(&|_: &Parts| User::new("alice", ["staff"])).unwrap(), "alice");
    assert_eq!(name(&|_: &Parts| Some(authenticated("bob", ["staff"]))).unwrap(), "bob");
    assert_eq!(name(&|_: &Parts| None::<User>).unwrap(), "system:anonymous");
    assert_eq!(name(&|_: &Parts| Ok::<_, Unidentified>(User::new("carol", ["staff"]))).unwrap(), "carol");
    let refuses = |_: &Parts| Err::<Option<User>, _>(Unidentified::unauthorized());
    assert_eq!(name(&refuses).unwrap_err().status, StatusCode::UNAUTHORIZED);
}

#[tokio::test(start_paused = true)]
async fn clones_and_routes_share_the_seats() {
    let layer = layer::layer();
    let mut first = send(&layer, &Mock::stuck(), get("/orders"));
    assert!(first.poll().is_none());
    assert_eq!(ask(&layer.clone(), &Mock::empty(), get("/orders")).status(), StatusCode::TOO_MANY_REQUESTS);
}

#[tokio::test(start_paused = true)]
async fn a_list_takes_the_seats_that_it_costs() {
    let work = KubernetesWork::default();
    work.set_objects("pods", 399, 10_000);
    // A seventh of the seats are those of the level: 43.
    let flow = FlowControl::builder().kubernetes().server_concurrency(300).objects(layer::ONE_SEAT).build();
    let layer = flow.layer(Anonymous).work(work);
    let stuck = Mock::stuck();
    let mut list = send(&layer, &stuck, get("/api/v1/pods"));
    assert!(list.poll().is_none());
    let mut others: Vec<_> = (0..3).map(|_| send(&layer, &stuck, get("/api/v1/pods/one"))).collect();
    assert!(others.iter_mut().all(|answer| answer.poll().is_none()));
    assert_eq!(stuck.calls(), 4);
    assert_eq!(ask(&layer, &stuck, get("/api/v1/pods/one")).status(), StatusCode::TOO_MANY_REQUESTS);
    drop(list);
    assert_eq!(ask(&layer, &Mock::empty(), get("/api/v1/pods/one")).status(), StatusCode::OK);
}
