//! What requests ask for, what they cost, and how long they take their seats.
use std::sync::{Arc, Mutex};

use evenkeel::FlowControl;
use evenkeel::digest::Digest;
use evenkeel::service::Occupancy;
use evenkeel_engine::RequestInfo;
use evenkeel_gateway::Config;
use evenkeel_gateway::RequestRules;
use http::request::Parts;
use tower::{Layer, Service, ServiceExt};

fn requests(text: &str) -> RequestRules {
    let config = Config::parse("evenkeel.yaml", text).unwrap();
    RequestRules::new(&config.requests, config.preset).unwrap()
}

fn parts(method: &str, target: &str) -> Parts {
    http::Request::builder().method(method).uri(target).body(()).unwrap().into_parts().0
}

fn digested(requests: &RequestRules, method: &str, target: &str) -> (RequestInfo<'static>, Occupancy) {
    let parts = parts(method, target);
    let digested = requests.digest(&parts).unwrap();
    let occupancy = requests.occupancy(&digested).unwrap();
    (digested.info.into_owned(), occupancy)
}

/// How many seats a request takes in a flow control that follows these rules.
async fn seats(requests: &RequestRules, method: &str, target: &str) -> usize {
    let flow = FlowControl::builder().server_concurrency(600).build();
    let (rules, counted, seen) = (requests.clone(), flow.clone(), Arc::new(Mutex::new(0)));
    let note = Arc::clone(&seen);
    let service = tower::service_fn(move |_: http::Request<()>| {
        *note.lock().unwrap() = counted.status().iter().map(|level| usize::try_from(level.seats_in_use).unwrap()).sum();
        std::future::ready(Ok::<_, std::convert::Infallible>(http::Response::new(http_body_util::Empty::new())))
    });
    let layer = flow.layer(evenkeel::identify::Anonymous).digest(rules.clone()).work(rules);
    let mut service = layer.layer(service);
    let request = http::Request::from_parts(parts(method, target), ());
    service.ready().await.unwrap().call(request).await.unwrap();
    *seen.lock().unwrap()
}

#[test]
fn without_settings_everything_is_a_path_and_nothing_is_a_watch() {
    let requests = requests("");
    for target in ["/api/v1/pods?watch=true", "/api/v1/watch/pods", "/apis/apps/v1/deployments", "/", "/debug/pprof/x"]
    {
        let (info, occupancy) = digested(&requests, "GET", target);
        assert!(!info.is_resource_request, "{target}");
        assert_eq!((&*info.verb, occupancy), ("get", Occupancy::ToTheEnd), "{target}");
    }
}

#[test]
fn kubernetes_is_understood_when_that_is_asked_for() {
    let requests = requests("preset: kubernetes");
    let (info, occupancy) = digested(&requests, "GET", "/api/v1/pods?watch=true");
    assert_eq!((&*info.verb, &*info.resource, occupancy), ("watch", "pods", Occupancy::ToTheHeaders));
    assert_eq!(digested(&requests, "POST", "/api/v1/namespaces/a/pods/b/exec").1, Occupancy::None);
    assert!(requests.kubernetes_work().is_some());
}

const ROUTES: &str = "
preset: kubernetes
requests:
  routes:
  - path: /v2/{namespace}/{resource}/{name}
  - path: /v2/{namespace}/reports/{name...}
    resource: reports
    verb: render
    methods: [POST]
    seats: 7
  - path: /export/{_}
    seats: 4
  - path: /events
    longRunning: true
  - path: /api/v1/nodes
    resource: nodes
    seats: 2
";

#[test]
fn the_most_specific_route_says_what_is_asked() {
    let requests = requests(ROUTES);
    for (method, target, verb, resource, name, occupancy) in [
        ("GET", "/v2/a/orders/7", "get", "orders", "7", Occupancy::ToTheEnd),
        ("POST", "/v2/a/reports/x/y", "render", "reports", "x/y", Occupancy::ToTheEnd),
        ("GET", "/v2/a/reports/x", "get", "reports", "x", Occupancy::ToTheEnd),
        ("PUT", "/export/all", "put", "", "", Occupancy::ToTheEnd),
        ("QUERY", "/export/all", "query", "", "", Occupancy::ToTheEnd),
        ("GET", "/events?a=b", "get", "", "", Occupancy::ToTheHeaders),
        ("GET", "/api/v1/nodes?watch=true", "list", "nodes", "", Occupancy::ToTheEnd),
        ("GET", "/api/v1/pods?watch=true", "watch", "pods", "", Occupancy::ToTheHeaders),
        ("GET", "/other", "get", "", "", Occupancy::ToTheEnd),
    ] {
        let (info, found) = digested(&requests, method, target);
        assert_eq!((&*info.verb, &*info.resource, &*info.name, found), (verb, resource, name, occupancy), "{target}");
        assert_eq!(info.is_resource_request, !resource.is_empty(), "{target}");
    }
    let parts = parts("GET", "/v2/%zz");
    assert!(requests.digest(&parts).is_err());
}

#[tokio::test]
async fn a_route_says_what_it_costs() {
    let requests = requests(ROUTES);
    for (method, target, expected) in [
        ("GET", "/v2/a/orders/7", 1),
        ("POST", "/v2/a/reports/x", 7),
        ("GET", "/export/all", 4),
        ("GET", "/api/v1/nodes", 2),
        ("GET", "/api/v1/pods", 1),
        ("GET", "/4", 1),
    ] {
        assert_eq!(seats(&requests, method, target).await, expected, "{target}");
    }
}
