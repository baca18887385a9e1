//! Timeouts of routes: they take the place of those that hold for all requests.

use crate::frames;
use crate::support;

use std::time::Duration;

use evenkeel_gateway::Config;
use frames::{Frames, Outcome};
use support::client::{Client, get};
use support::upstream::Upstream;
use support::{ONE_LEVEL, config, eventually, start, start_with};

/// Settings under which everything is soon over, except for what this route says.
fn settings(upstream: &Upstream, route: &str) -> Config {
    let mut settings = config(&[upstream.address]);
    let text = format!("requests: {{routes: [{{path: /slow, timeouts: {route}}}]}}");
    settings.requests = Config::parse("evenkeel.yaml", &text).unwrap().requests;
    settings
}

const SHORT: Duration = Duration::from_millis(150);

/// The status of a request over HTTP/1.1, and whether one over HTTP/2 got a whole response.
async fn outcomes(address: std::net::SocketAddr, path: &str) -> (u16, bool) {
    let mut client = Client::connect(address).await;
    client.send(&format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
    let mut frames = Frames::connect(address).await;
    frames.send_head(1, &frames::request(path, &[]), frames::END_STREAM).await;
    (client.answer().await.status, matches!(frames.outcome(1).await, Outcome::Answered(text) if text == "done"))
}

/// Responds after ten times the short time.
async fn slow_upstream() -> Upstream {
    Upstream::new(|mut client, _| async move {
        while support::upstream::has_more(&mut client).await {
            client.answer().await;
            tokio::time::sleep(10 * SHORT).await;
            client.send(&support::upstream::ok("done")).await;
        }
    })
    .await
}

#[tokio::test]
async fn a_route_may_wait_longer_for_its_response_than_others() {
    let upstream = slow_upstream().await;
    let mut settings = settings(&upstream, "{response: 1m}");
    settings.timeouts.response = SHORT;
    let running = start(settings).await;
    assert_eq!(outcomes(running.address, "/slow").await, (200, true));
    assert_eq!(outcomes(running.address, "/other").await, (504, false));
    running.done().await;
}

#[tokio::test]
async fn a_route_may_take_longer_in_all_than_others_or_less_long() {
    let upstream = slow_upstream().await;
    let mut patient = settings(&upstream, "{total: 0s, response: 0s}");
    (patient.timeouts.total, patient.timeouts.response) = (SHORT, SHORT);
    let running = start(patient).await;
    assert_eq!(outcomes(running.address, "/slow").await, (200, true));
    assert_eq!(outcomes(running.address, "/other").await, (504, false));
    running.done().await;

    let hasty = start(settings(&upstream, "{total: 150ms, response: 150ms}")).await;
    assert_eq!(outcomes(hasty.address, "/slow").await, (504, false));
    assert_eq!(outcomes(hasty.address, "/other").await, (200, true));
    hasty.no_seat_is_taken().await;
    hasty.done().await;
}

#[tokio::test]
async fn a_stream_has_an_end_where_its_route_says_so() {
    let upstream = Upstream::halting().await;
    let mut settings = config(&[upstream.address]);
    let text = "requests: {routes: [{path: /events, longRunning: true, timeouts: {total: 300ms, response: 300ms}}]}";
    settings.requests = Config::parse("evenkeel.yaml", text).unwrap().requests;
    let running = start(settings).await;
    let mut client = Client::connect(running.address).await;
    client.send("GET /events HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(client.rest().await.ends_with(b"half"));
    running.done().await;
}

#[tokio::test]
async fn a_route_may_stand_still_for_longer_than_others() {
    let upstream = Upstream::new(|mut client, _| async move {
        while support::upstream::has_more(&mut client).await {
            let request = client.answer().await;
            client.send("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf").await;
            tokio::time::sleep(10 * SHORT).await;
            client.send(if request.body.is_empty() { "done" } else { "sent" }).await;
        }
    })
    .await;
    let mut settings = settings(&upstream, "{stall: 1m}");
    settings.timeouts.stall = SHORT;
    let running = start(settings).await;
    let mut slow = Client::connect(running.address).await;
    slow.send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n").await;
    // A body that stands still for a while.
    let mut sending = Client::connect(running.address).await;
    sending.send("POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf").await;
    let mut frames = Frames::connect(running.address).await;
    frames.send_head(1, &frames::request("/slow", &[]), frames::END_STREAM).await;
    let mut other = Client::connect(running.address).await;
    other.send("GET /other HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(other.rest().await.ends_with(b"half"), "others are cut");
    assert_eq!(slow.answer().await.text(), "halfdone");
    assert_eq!(frames.outcome(1).await, Outcome::Answered("halfdone".to_owned()));
    sending.send(" body").await;
    assert_eq!(sending.answer().await.text(), "halfsent");
    running.done().await;
}

#[tokio::test]
async fn a_route_may_wait_longer_for_a_seat_than_others() {
    let (upstream, mut told, leave) = Upstream::held().await;
    let mut settings = settings(&upstream, "{queue: 10m}");
    (settings.concurrency, settings.timeouts.queue) = (Some(1.into()), SHORT);
    assert_eq!(settings.check_without_files(), []);
    let running = start_with(settings, ONE_LEVEL).await;
    let mut clients = Vec::new();
    for path in ["/other", "/slow"] {
        let mut client = Client::connect(running.address).await;
        client.send(&format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
        clients.push(client);
        if path == "/other" {
            told.recv().await.unwrap();
        }
    }
    let flow = running.gateway.flow();
    let waiting = |count| flow.status().iter().any(|level| level.waiting == count);
    eventually("one waits", || waiting(1)).await;
    let rejected = get(running.address, "/other", "").await;
    assert_eq!((rejected.status, rejected.header("x-evenkeel-reason").as_deref()), (429, Some("time-out")));
    assert!(waiting(1), "the one of the route still waits");
    leave.add_permits(2);
    for mut client in clients {
        assert_eq!(client.answer().await.status, 200);
    }
    running.done().await;
}

#[test]
fn problems_name_the_setting() {
    let found = |text: &str| {
        let config = Config::parse("evenkeel.yaml", &format!("upstreams: [{{url: 'http://a'}}]\n{text}")).unwrap();
        config.check_without_files().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let routes =
        "requests: {routes: [{path: /a}, {path: /b, timeouts: {stall: 0s, queue: 2h, total: 5s, response: 6s}}]}";
    assert_eq!(
        found(routes),
        [
            "requests.routes[1].timeouts.stall: must be longer than zero",
            "requests.routes[1].timeouts.queue: a request waits at most one hour for a seat; set it to 1h or less",
            "requests.routes[1].timeouts.queue: is longer than the route's total; make it shorter, or total longer",
            "requests.routes[1].timeouts.response: is longer than the route's total; make it shorter, or total longer",
        ]
    );
    assert_eq!(
        found("requests: {routes: [{path: /a, timeouts: {total: 5s}}]}"),
        [
            "requests.routes[0].timeouts.total: is shorter than timeouts.response; set the response of the route too, or make it longer"
        ]
    );
    assert_eq!(
        found("preset: kubernetes\nrequests: {routes: [{path: /a, timeouts: {queue: 2m}}]}"),
        [
            "requests.routes[0].timeouts.queue: under the preset `kubernetes`, a request waits at most one minute for a seat; set it to 1m or less"
        ]
    );
    assert_eq!(
        found("requests: {routes: [{path: /a, seats: 0, timeouts: {queue: 2m}}]}"),
        ["requests.routes[0].timeouts.queue: the route has `seats: 0`, so its requests wait for no seat; remove it"]
    );
    let error =
        Config::parse("evenkeel.yaml", "requests:\n  routes:\n  - path: /a\n    timeouts: {queue: 5}\n").unwrap_err();
    assert!(
        error.to_string().starts_with("evenkeel.yaml:4:23: requests.routes[0].timeouts.queue: \"5\" is not a duration"),
        "{error}"
    );
}
