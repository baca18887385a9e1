//! Paths that are spelt in unusual ways: what they cost, which schema they match, and what the upstream gets.

use crate::support;

use std::convert::Infallible;

use bytes::Bytes;
use evenkeel::FlowControl;
use evenkeel::digest::Digest;
use evenkeel_api::Preset;
use evenkeel_gateway::Config;
use evenkeel_gateway::RequestRules;
use evenkeel_gateway::config::{PathParametersConfig, Paths, RouteConfig, UpstreamConfig};
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::{TokioExecutor, TokioIo};
use proptest::prelude::*;
use support::client::{Client, get};
use support::upstream::Upstream;
use support::{Running, config, start};
use tokio::net::TcpStream;
use tower::{Layer, ServiceExt};

const ROUTES: &str = "
requests:
  routes:
  - {path: /expensive, seats: 7}
  - {path: '/a/expensive', seats: 5}
  - {path: '/projects/{name}', resource: projects, seats: 2}
  - {path: '/static/{*}', seats: 1, longRunning: true}
";

/// Spellings of `/expensive` that one service or another takes for it.
const EXPENSIVE: [&str; 12] = [
    "/expensive",
    "/x/../expensive",
    "/./expensive",
    "/static/%2e%2e/expensive",
    "/static/%2E./expensive",
    "/static/../expensive",
    "/static//../expensive",
    "//expensive",
    "/%65xpensive",
    "/expensive/.",
    "/../../expensive",
    "/x/y/..//%2e%2E/expensive?a=/../b",
];

fn requests(text: &str) -> RequestRules {
    let config = Config::parse("evenkeel.yaml", text).unwrap();
    RequestRules::new(&config.requests, config.preset).unwrap()
}

/// How many seats a request for this target takes and the path that schemas see, or why it is refused.
fn decided(requests: &RequestRules, target: &str) -> Result<(u32, String), String> {
    let request = http::Request::get(target).body(()).unwrap();
    let (parts, ()) = request.clone().into_parts();
    let path = requests.digest(&parts).map_err(|error| error.to_string())?.info.path.into_owned();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let seats = runtime.block_on(async {
        let flow = FlowControl::builder().server_concurrency(600).build();
        let counted = flow.clone();
        let service = tower::service_fn(move |_: http::Request<()>| {
            let seats: i64 = counted.status().iter().map(|level| level.seats_in_use).sum();
            let response = http::Response::builder().header("x-seats", seats).body(Empty::<Bytes>::new());
            std::future::ready(Ok::<_, Infallible>(response.unwrap()))
        });
        let layer = flow.layer(evenkeel::identify::Anonymous).digest(requests.clone()).work(requests.clone());
        let response = layer.layer(service).oneshot(request).await.unwrap();
        response.headers()["x-seats"].to_str().unwrap().parse().unwrap()
    });
    Ok((seats, path))
}

#[test]
fn every_spelling_costs_what_the_path_costs() {
    let requests = requests(ROUTES);
    for target in EXPENSIVE {
        let (seats, path) = decided(&requests, target).unwrap();
        assert_eq!((seats, path.trim_end_matches('/')), (7, "/expensive"), "{target}");
    }
}

#[test]
fn an_encoded_slash_is_a_part_of_a_name_and_costs_what_either_reading_costs() {
    let requests = requests(ROUTES);
    for (target, seats, path) in [
        ("/projects/group%2Fname", 2, "/projects/group%2Fname"),
        ("/a%2Fexpensive", 5, "/a%2Fexpensive"),
        ("/a%2f%2fexpensive", 5, "/a%2F%2Fexpensive"),
        ("/%2Fexpensive", 7, "/%2Fexpensive"),
        // A schema for /static/* does not match it, and it does not run for long either.
        ("/static%2Fx", 1, "/static%2Fx"),
    ] {
        assert_eq!(decided(&requests, target), Ok((seats, path.to_owned())), "{target}");
    }
    let (parts, ()) = http::Request::get("/static%2Fx").body(()).unwrap().into_parts();
    let digested = requests.digest(&parts).unwrap();
    assert_eq!(requests.occupancy(&digested), Some(evenkeel::service::Occupancy::ToTheEnd));
}

#[test]
fn dots_that_only_some_services_see_are_refused() {
    for paths in ["normalise", "reject", "asIs"] {
        let requests = requests(&format!("{ROUTES}\n  paths: {paths}"));
        for target in
            ["/static%2F..%2Fexpensive", "/static/..%2fexpensive", "/static/..;/expensive", "/static/..%5Cexpensive"]
        {
            let error = decided(&requests, target).unwrap_err();
            assert!(error.contains("a dot segment beside an encoded slash"), "{target}: {error}");
        }
    }
}

/// Spellings of `/expensive` for servlet containers.
const WITH_PARAMETERS: [&str; 7] = [
    "/expensive;x",
    "/expensive;",
    "/;/expensive",
    "/;x=1/expensive;y=2;z",
    "/x/..//;/%65xpensive;a=%2F?b=;c",
    "/expensive;/;",
    "/;a;b//expensive/;c",
];

#[test]
fn path_parameters_are_rejected_unless_somebody_wants_them() {
    let rejecting = requests(ROUTES);
    for target in WITH_PARAMETERS {
        let error = decided(&rejecting, target).unwrap_err();
        assert!(error.contains("has a path parameter (`;`)") && error.ends_with("send `%3B`"), "{target}: {error}");
    }
    assert_eq!(decided(&rejecting, "/expensive?a;b=;").unwrap().0, 7, "a query may have them");
    assert_eq!(decided(&rejecting, "/projects/a%3bb"), Ok((2, "/projects/a;b".to_owned())), "so may a name");
}

#[test]
fn stripped_of_its_parameters_a_path_costs_what_it_costs_without_them() {
    for paths in ["normalise", "asIs"] {
        let stripping = requests(&format!("{ROUTES}\n  paths: {paths}\n  pathParameters: strip"));
        for target in WITH_PARAMETERS.into_iter().filter(|target| paths == "normalise" || !target.contains("..")) {
            let (seats, path) = decided(&stripping, target).unwrap();
            assert_eq!((seats, path.trim_end_matches('/')), (7, "/expensive"), "{target}");
        }
    }
}

#[test]
fn kept_parameters_are_a_part_of_the_name_and_cost_what_either_reading_costs() {
    let keeping = requests(&format!("{ROUTES}\n  pathParameters: keep"));
    for (target, seats, path) in [
        ("/expensive;x", 7, "/expensive;x"),
        ("/;/expensive", 7, "/;/expensive"),
        ("/projects/a;b", 2, "/projects/a;b"),
        ("/a;1/expensive", 5, "/a;1/expensive"),
    ] {
        assert_eq!(decided(&keeping, target), Ok((seats, path.to_owned())), "{target}");
    }
    let kubernetes = requests("preset: kubernetes");
    assert_eq!(decided(&kubernetes, "/api/v1/pods;x").unwrap().1, "/api/v1/pods;x", "as a kube-apiserver takes it");
}

#[test]
fn with_kubernetes_paths_are_normalised_before_they_are_understood() {
    let requests = requests("preset: kubernetes");
    for target in ["/api/v1/pods", "/healthz/../api/v1/pods", "//api/v1//pods", "/api%2Fv1/%70ods"] {
        let (parts, ()) = http::Request::get(target).body(()).unwrap().into_parts();
        let request = requests.digest(&parts).unwrap().info;
        assert_eq!((&*request.verb, &*request.resource, &*request.path), ("list", "pods", "/api/v1/pods"), "{target}");
    }
}

fn settings(upstream: &str, paths: Paths) -> Config {
    let mut settings = config(&[]);
    settings.upstreams = vec![UpstreamConfig::new(upstream).unwrap()];
    settings.requests.paths = paths;
    settings
}

/// The target that the upstream got, or the status of the response.
async fn seen(running: &Running, target: &str) -> String {
    let mut client = Client::connect(running.address).await;
    client.send(&format!("GET {target} HTTP/1.1\r\nHost: shop.example\r\n\r\n")).await;
    let answer = client.answer().await;
    if answer.status != 200 {
        return answer.status.to_string();
    }
    answer.text().split(' ').nth(1).unwrap().to_owned()
}

#[tokio::test]
async fn the_upstream_gets_the_normal_form() {
    let upstream = Upstream::echo().await;
    let running = start(settings(&format!("http://{}/base", upstream.address), Paths::Normalise)).await;
    for (target, expected) in [
        ("/a?b=/../c", "/base/a?b=/../c"),
        ("/../x", "/base/x"),
        ("/../../base2/x?y", "/base/base2/x?y"),
        ("/%2e%2e/x", "/base/x"),
        ("/a//b/./c/", "/base/a/b/c/"),
        ("/%7euser/a%2fb", "/base/~user/a%2Fb"),
        ("http://shop.example/a/../x?y", "/base/x?y"),
        ("http://shop.example?y", "/base/?y"),
        ("/..%2Fx", "400"),
        ("/..;/x", "400"),
        ("/%zz", "400"),
    ] {
        assert_eq!(seen(&running, target).await, expected, "{target}");
    }
    running.done().await;
}

#[tokio::test]
async fn over_http2_too() {
    let upstream = Upstream::echo().await;
    let running = start(settings(&format!("http://{}/base", upstream.address), Paths::Normalise)).await;
    let stream = TokioIo::new(TcpStream::connect(running.address).await.unwrap());
    let (mut client, connection) =
        hyper::client::conn::http2::handshake::<_, _, Empty<Bytes>>(TokioExecutor::new(), stream).await.unwrap();
    let connection = tokio::spawn(connection);
    for (target, expected) in [("/../x?y", Some("/base/x?y")), ("/a/%2e%2e//x", Some("/base/x")), ("/..%2Fx", None)] {
        let uri = format!("http://shop.example{target}");
        let request = http::Request::get(uri).body(Empty::<Bytes>::new()).unwrap();
        let response = client.send_request(request).await.unwrap();
        let status = response.status();
        let text = response.into_body().collect().await.unwrap().to_bytes();
        let text = String::from_utf8(text.to_vec()).unwrap();
        match expected {
            Some(expected) => assert_eq!(text.split(' ').nth(1), Some(expected), "{target}"),
            None => assert_eq!(status, 400, "{target}: {text}"),
        }
    }
    drop(client);
    let _: Result<Result<(), hyper::Error>, _> = connection.await;
    running.done().await;
}

#[tokio::test]
async fn paths_can_be_refused_or_passed_on_as_they_are() {
    let upstream = Upstream::echo().await;
    let url = format!("http://{}/base", upstream.address);
    let (reject, as_is) = (start(settings(&url, Paths::Reject)).await, start(settings(&url, Paths::AsIs)).await);
    for (target, rejecting, passing) in [
        ("/a%20b/c?d=/../e", "/base/a%20b/c?d=/../e", "/base/a%20b/c?d=/../e"),
        ("/a//b", "400", "/base/a//b"),
        ("/%61", "400", "/base/%61"),
        ("/a%2fb", "400", "/base/a%2fb"),
        ("/a%2Fb", "400", "/base/a%2Fb"),
        ("/a/../b", "400", "400"),
        ("/../x", "400", "400"),
        ("/%2e%2E/x", "400", "400"),
    ] {
        assert_eq!(seen(&reject, target).await, rejecting, "{target}");
        assert_eq!(seen(&as_is, target).await, passing, "{target}");
    }
    let answer = get(reject.address, "/a//b", "").await;
    assert!(answer.text().contains("send it in its normal form"), "{}", answer.text());
    reject.done().await;
    as_is.done().await;
}

#[tokio::test]
async fn the_upstream_gets_paths_with_parameters_or_without() {
    use PathParametersConfig::{Keep, Reject, Strip};
    let upstream = Upstream::echo().await;
    let url = format!("http://{}/base", upstream.address);
    for (parameters, paths, expected) in [
        (Reject, Paths::Normalise, ["400", "400", "/base/a%3Bb?x;y"]),
        (Strip, Paths::Normalise, ["/base/admin/x?y;z", "/base/admin", "/base/a%3Bb?x;y"]),
        (Strip, Paths::AsIs, ["/base/admin;a=1/x?y;z", "/base/;/admin", "/base/a%3bb?x;y"]),
        (Strip, Paths::Reject, ["400", "400", "400"]),
        (Keep, Paths::Normalise, ["/base/admin;a=1/x?y;z", "/base/;/admin", "/base/a%3Bb?x;y"]),
    ] {
        let mut settings = settings(&url, paths);
        settings.requests.path_parameters = Some(parameters);
        let running = start(settings).await;
        for (target, expected) in ["/admin;a=1/x?y;z", "/;/admin", "/a%3bb?x;y"].into_iter().zip(expected) {
            assert_eq!(seen(&running, target).await, expected, "{target} {parameters:?} {paths:?}");
        }
        running.done().await;
    }
}

/// Nobody gets to `/admin` and what is below it.
const CLOSED: &str = "
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: closed}
spec:
  type: Limited
  limited: {nominalConcurrencyShares: 0, lendablePercent: 0, borrowingLimitPercent: 0, limitResponse: {type: Reject}}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: closed}
spec:
  matchingPrecedence: 2
  priorityLevelConfiguration: {name: closed}
  rules:
  - subjects: [{kind: Group, group: {name: '*'}}]
    nonResourceRules: [{verbs: ['*'], nonResourceURLs: [/admin, /admin/*]}]
";

/// A service may take an encoded slash for a slash. A block holds in front of both kinds, and names with such slashes still work where no
/// schema tells the readings apart, or where a route says what is meant.
#[tokio::test]
async fn an_encoded_slash_does_not_get_past_a_block() {
    let upstream = Upstream::echo().await;
    let mut settings = settings(&format!("http://{}", upstream.address), Paths::Normalise);
    settings.requests.routes = Config::parse("evenkeel.yaml", ROUTES).unwrap().requests.routes;
    let running = support::start_with(settings, CLOSED).await;
    for (target, expected) in [
        ("/admin/x", "429"),
        ("/admin%2fx", "400"),
        ("/admin%2F", "400"),
        ("/%61dmin%2Fx", "400"),
        ("/files/a%2Fb", "/files/a%2Fb"),
        ("/projects/group%2Fname", "/projects/group%2Fname"),
        ("/administrator%2Fx", "/administrator%2Fx"),
    ] {
        assert_eq!(seen(&running, target).await, expected, "{target}");
    }
    running.done().await;
}

#[test]
fn passed_on_as_it_is_a_path_costs_what_either_spelling_costs() {
    let mut settings = Config::parse("evenkeel.yaml", ROUTES).unwrap().requests;
    settings.paths = Paths::AsIs;
    let below = RouteConfig { path: "/a/{*}".to_owned(), seats: 9, ..settings.routes[0].clone() };
    settings.routes.push(below);
    let requests = RequestRules::new(&settings, Preset::Plain).unwrap();
    for (target, seats) in [
        ("//expensive", 7),
        ("/%65xpensive", 7),
        ("/a/expensive", 5),
        // As it was sent it fits another route, which is dearer.
        ("/a//expensive", 9),
    ] {
        assert_eq!(decided(&requests, target).unwrap().0, seats, "{target}");
    }
}

/// A piece of a path that does not change what it leads to, or a part of a name spelt in another way.
fn respelt(name: &'static str) -> impl Strategy<Value = String> {
    let letters: Vec<_> = name
        .bytes()
        .map(|letter| {
            let plain = char::from(letter).to_string();
            prop_oneof![4 => Just(plain), 1 => Just(format!("%{letter:02x}")), 1 => Just(format!("%{letter:02X}"))]
        })
        .collect();
    letters.prop_map(|letters| letters.concat())
}

fn detour() -> impl Strategy<Value = String> {
    let pieces = ["/", "/.", "/%2e", "/static/..", "/x/%2E%2e", "/a//.."];
    proptest::collection::vec(proptest::sample::select(pieces.to_vec()), 0..4).prop_map(|pieces| pieces.concat())
}

proptest! {
    /// However a path is spelt, the seats are those of the path, and so is what schemas see.
    #[test]
    fn no_spelling_is_cheaper(up in "(/\\.\\.|/%2e\\.){0,2}", one in detour(), a in respelt("a"), two in detour(), last in respelt("expensive")) {
        let requests = requests(ROUTES);
        let target = format!("{up}{one}/{a}{two}/{last}");
        prop_assert_eq!(decided(&requests, &target), Ok((5, "/a/expensive".to_owned())), "{}", target);
    }
}
