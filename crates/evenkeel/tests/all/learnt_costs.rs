//! Costs that are learnt: where they come from, what follows for seats and turns, and what teaches nothing (CO-2 to CO-5).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use evenkeel::events::{CostKind, Event, EventKind};
use evenkeel::identify::Anonymous;
use evenkeel::request::{FlowRequest, SeatTimes};
use evenkeel::{Attributes, FlowControl, FlowLayer, Permit, RequestInfo, User};
use http::{HeaderMap, Response, StatusCode};
use http_body::Frame;
use http_body_util::BodyExt;

use crate::costed_objects::{PER_FLOW, costed_objects};
use crate::layer::{Mock, Reply, TestBody, ask, bytes_of, get, send};

/// A service with 100 seats whose flow schema has these annotations.
pub(crate) fn controlled(annotations: &str) -> FlowControl {
    FlowControl::builder().server_concurrency(100).objects(&*objects(annotations)).build()
}

/// Its objects.
pub(crate) fn objects(annotations: &str) -> String {
    costed_objects(PER_FLOW, annotations)
}

pub(crate) const TOKENS: &str = "evenkeel.dev/cost: tokens, evenkeel.dev/seats: learnt, evenkeel.dev/cost-per-seat: '100', evenkeel.dev/seats-max: '20'";
pub(crate) const BYTES: &str =
    "evenkeel.dev/cost: bytes, evenkeel.dev/seats: learnt, evenkeel.dev/cost-per-seat: '1000'";

async fn permit(flow: &FlowControl, name: &str, path: &'static str) -> Permit {
    let (user, request) = (User::new(name, ["system:authenticated"]), RequestInfo::for_path("post", path));
    flow.admit_request(FlowRequest::new(Attributes { user: &user, request: &request })).await.unwrap()
}

pub(crate) fn seats_in_use(flow: &FlowControl) -> i64 {
    flow.status().iter().find(|status| status.name == "api").unwrap().seats_in_use
}

#[tokio::test(start_paused = true)]
async fn co_3_a_request_takes_the_seats_that_its_class_has_cost() {
    let flow = controlled(TOKENS);
    for _ in 0..8 {
        let permit = permit(&flow, "alice", "/generate").await;
        permit.add_cost(412.0);
    }
    let known = permit(&flow, "alice", "/generate").await;
    assert_eq!(known.seats(), 5);
    assert!((known.cost().unwrap().expected - 412.0).abs() < 1e-9);
    for (path, width) in [("/generate", "by the route"), ("/other", "by the schema")] {
        let other = permit(&flow, "bob", path).await;
        other.mark_failed();
        assert_eq!(other.seats(), 5, "{width}");
    }
}

/// CO-6: what requests cost is told by flow, with its unit, and so is what was expected of them.
#[tokio::test(start_paused = true)]
async fn co_6_the_flows_that_cost_the_most_are_known() {
    let flow = FlowControl::builder().server_concurrency(100).attribute_flows().objects(&*objects(TOKENS)).build();
    for (name, cost) in [("alice", 400.0), ("alice", 400.0), ("bob", 100.5)] {
        permit(&flow, name, "/generate").await.add_cost(cost);
    }
    let told = flow.flows_of("api", 20).unwrap();
    let of = |name: &str| told.flows.iter().find(|one| one.id.flow == name).unwrap().costs.clone();
    let ([alice], [bob]) = (&of("alice")[..], &of("bob")[..]) else { panic!("{told:?}") };
    assert_eq!((alice.unit, alice.cost, alice.expected), ("tokens", 800.0, 400.0));
    assert_eq!((bob.unit, bob.cost), ("tokens", 100.5));
    // Nothing was known of bob: the average of the route counts, to a thousandth of the cost.
    assert!((bob.expected - 400.0).abs() < 0.2, "{bob:?}");
}

#[tokio::test(start_paused = true)]
async fn co_4_seats_follow_what_arises_and_what_is_announced() {
    let flow = controlled(TOKENS);
    let request = permit(&flow, "alice", "/generate").await;
    assert_eq!(request.seats(), 1, "nothing is known");
    request.add_cost(90.0);
    assert_eq!((request.seats(), seats_in_use(&flow)), (1, 1));
    request.add_cost(150.0);
    assert_eq!((request.seats(), seats_in_use(&flow)), (3, 3), "more at once");
    request.announce_cost(700.0);
    assert_eq!((request.seats(), seats_in_use(&flow)), (7, 7));
    request.set_cost(300.0);
    assert_eq!((request.seats(), seats_in_use(&flow)), (3, 3), "fewer at once");
    request.add_cost(1e9);
    assert_eq!(request.seats(), 20, "and never more than the maximum");
    drop(request);
    assert_eq!(seats_in_use(&flow), 0);
    assert!(
        (permit(&flow, "alice", "/generate").await.cost().unwrap().expected - 300.0).abs() < 1e-9,
        "what was reported"
    );
}

/// Events that nobody hears are not written, and whoever begins to listen hears of the next cost.
#[tokio::test(start_paused = true)]
async fn co_5_listeners_hear_of_a_cost_in_the_call_that_ends_its_request() {
    let flow = controlled(TOKENS);
    for _ in 0..2 {
        let request = permit(&flow, "alice", "/generate").await;
        tokio::time::advance(Duration::from_millis(10)).await;
        request.add_cost(100.0);
    }
    let told = Arc::<Mutex<Vec<Event>>>::default();
    let kept = Arc::clone(&told);
    flow.listen(move |_, _| {
        let kept = Arc::clone(&kept);
        move |events: &[Event]| kept.lock().unwrap().extend_from_slice(events)
    });
    let request = permit(&flow, "alice", "/generate").await;
    tokio::time::advance(Duration::from_millis(5)).await;
    request.add_cost(100.0);
    drop(request);
    flow.deliver_events();
    let told = told.lock().unwrap();
    let kinds: Vec<EventKind> = told.iter().map(Event::kind).collect();
    let [
        EventKind::Passed { .. },
        EventKind::Charged { seat_time },
        EventKind::Costed { cost, expected_per_mille, unit },
        EventKind::Finished { .. },
    ] = kinds[..]
    else {
        panic!("{kinds:?}")
    };
    assert_eq!(seat_time, 5_000_000, "it pays what 100 tokens took before, and held its seat for half of that");
    assert_eq!((cost, expected_per_mille, unit), (100_000, 1000, CostKind::Tokens));
    let is_last: Vec<bool> = told.iter().map(Event::is_last).collect();
    assert_eq!(is_last, [true, false, false, true]);
    assert_eq!(told[1].level().executing, 0, "as it is afterwards");
}

#[tokio::test(start_paused = true)]
async fn co_5_what_fails_teaches_nothing() {
    let flow = controlled(TOKENS);
    let failed = permit(&flow, "alice", "/generate").await;
    failed.add_cost(1000.0);
    failed.mark_failed();
    drop(failed);
    let next = permit(&flow, "alice", "/generate").await;
    assert_eq!((next.seats(), next.cost().unwrap().expected), (1, 0.0));
}

#[tokio::test(start_paused = true)]
async fn the_newest_estimate_counts_when_a_request_starts() {
    let flow = controlled(TOKENS);
    let running: Vec<Permit> = {
        let first = permit(&flow, "alice", "/generate").await;
        first.set_seats(200);
        vec![first]
    };
    let (user, request) = (User::new("bob", ["system:authenticated"]), RequestInfo::for_path("post", "/generate"));
    let mut waits = flow.arrive_request(FlowRequest::new(Attributes { user: &user, request: &request }));
    assert!(tokio::time::timeout(Duration::from_millis(1), &mut waits).await.is_err());
    // It is learnt meanwhile what such requests cost.
    for permit in &running {
        permit.add_cost(700.0);
    }
    drop(running);
    assert_eq!(waits.await.unwrap().seats(), 7);
}

#[tokio::test(start_paused = true)]
async fn co_2_time_is_learnt_by_the_seconds() {
    let annotations = "evenkeel.dev/seats: learnt, evenkeel.dev/cost-per-seat: '0.5'";
    let flow = controlled(annotations);
    for _ in 0..8 {
        let report = permit(&flow, "alice", "/report").await;
        tokio::time::sleep(Duration::from_millis(1900)).await;
        drop(report);
    }
    assert_eq!(permit(&flow, "alice", "/report").await.seats(), 4);
}

/// A service whose responses have this cost in a header or a trailer.
fn reporting(status: StatusCode, header: Option<&'static str>, trailer: Option<&'static str>) -> Mock {
    Mock::new(move |_| {
        let (frames, body) = TestBody::streamed();
        frames.send(Ok(Frame::data(Bytes::from_static(b"rows")))).unwrap();
        if let Some(cost) = trailer {
            let mut trailers = HeaderMap::new();
            trailers.insert("x-cost", cost.parse().unwrap());
            trailers.insert("x-other", "1".parse().unwrap());
            frames.send(Ok(Frame::trailers(trailers))).unwrap();
        }
        let mut response = Response::builder().status(status);
        if let Some(cost) = header {
            response = response.header("X-Cost", cost);
        }
        Reply::Now(response.body(body).unwrap())
    })
}

/// What is expected of a request after that one, and the headers and trailers that its client gets.
async fn learnt(layer: &FlowLayer<Anonymous>, flow: &FlowControl, mock: &Mock) -> (f64, HeaderMap, HeaderMap) {
    let response = ask(layer, mock, get("/rows"));
    let headers = response.headers().clone();
    let trailers = response.into_body().collect().await.unwrap().trailers().cloned().unwrap_or_default();
    let (user, request) =
        (User::new("system:anonymous", ["system:unauthenticated"]), RequestInfo::for_path("get", "/rows"));
    let next = flow.admit_request(FlowRequest::new(Attributes { user: &user, request: &request })).await.unwrap();
    next.mark_failed();
    (next.cost().unwrap().expected, headers, trailers)
}

#[tokio::test(start_paused = true)]
async fn co_2_a_service_says_the_cost_in_a_header_or_a_trailer_that_clients_do_not_see() {
    for (keeps, header, trailer) in [
        (false, Some("37.5"), None),
        (false, None, Some("37.5")),
        (false, Some("1"), Some("37.5")),
        (true, Some("37.5"), None),
        (true, None, Some("37.5")),
    ] {
        let flow = controlled(&format!("evenkeel.dev/cost: 'header:X-Cost{}'", if keeps { ";keep" } else { "" }));
        let layer = flow.layer(Anonymous);
        let (expected, headers, trailers) = learnt(&layer, &flow, &reporting(StatusCode::OK, header, trailer)).await;
        assert!((expected - 37.5).abs() < 1e-9, "{header:?} {trailer:?}: {expected}");
        assert_eq!(headers.contains_key("x-cost"), keeps && header.is_some());
        assert_eq!(trailers.contains_key("x-cost"), keeps && trailer.is_some());
        assert_eq!(trailers.contains_key("x-other"), trailer.is_some(), "other trailers stay");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_no_number_says_nothing_and_is_removed() {
    for cost in ["", "many", "-3", "NaN", "inf", "1e400", "0x10", "3;4"] {
        let flow = controlled("evenkeel.dev/cost: 'header:X-Cost'");
        let layer = flow.layer(Anonymous);
        let (expected, headers, _) = learnt(&layer, &flow, &reporting(StatusCode::OK, Some(cost), None)).await;
        assert!(expected.abs() < 1e-9, "{cost}");
        assert!(!headers.contains_key("x-cost"));
    }
}

#[tokio::test(start_paused = true)]
async fn co_5_errors_of_the_service_and_responses_that_are_cut_off_teach_nothing() {
    let flow = controlled("evenkeel.dev/cost: 'header:X-Cost'");
    let layer = flow.layer(Anonymous);
    let (expected, ..) = learnt(&layer, &flow, &reporting(StatusCode::BAD_GATEWAY, Some("50"), None)).await;
    assert!(expected.abs() < 1e-9);
    // The client leaves before the end, and before the response.
    drop(ask(&layer, &reporting(StatusCode::OK, Some("50"), None), get("/rows")));
    drop(send(&layer, &Mock::stuck(), get("/rows")));
    let (expected, ..) = learnt(&layer, &flow, &reporting(StatusCode::OK, Some("8"), None)).await;
    assert!((expected - 8.0).abs() < 1e-9, "{expected}");
}

#[tokio::test(start_paused = true)]
async fn co_2_bytes_of_responses_are_counted_and_those_of_the_content_length_at_once() {
    let flow = controlled(BYTES);
    let layer = flow.layer(Anonymous);
    let response = ask(&layer, &bytes_of(3500), get("/export"));
    assert_eq!(seats_in_use(&flow), 1, "nobody knows how long it is");
    let mut body = response.into_body();
    assert!(body.frame().await.is_some());
    drop(body);
    assert_eq!(seats_in_use(&flow), 0);
    let (user, request) =
        (User::new("system:anonymous", ["system:unauthenticated"]), RequestInfo::for_path("get", "/export"));
    let next = flow.admit_request(FlowRequest::new(Attributes { user: &user, request: &request })).await.unwrap();
    assert_eq!((next.seats(), next.cost().unwrap().expected), (4, 3500.0));
    next.mark_failed();
    drop(next);
    // One that says its length has the seats for it before the first byte, also if that is fewer than expected.
    for (length, seats) in [(9500, 10), (500, 1)] {
        let (_frames, body) = TestBody::streamed();
        let body = std::sync::Mutex::new(Some(body.hint(http_body::SizeHint::with_exact(length))));
        let mock = Mock::new(move |_| Reply::Now(Response::new(body.lock().unwrap().take().unwrap())));
        let response = ask(&layer, &mock, get("/export"));
        assert_eq!(seats_in_use(&flow), seats);
        drop(response);
    }
}

#[tokio::test(start_paused = true)]
async fn co_1_flows_take_turns_by_what_their_requests_cost() {
    let starts = starts_of_cheap_and_dear(200).await;
    assert!(starts[0] > 7 * starts[1], "nine cheap ones for a dear one: {starts:?}");
}

/// What a unit costs is not known when they arrive, but when they end.
#[tokio::test(start_paused = true)]
async fn co_1_requests_that_arrived_before_the_first_one_ended_are_charged_their_cost_too() {
    let starts = starts_of_cheap_and_dear(0).await;
    assert!(starts[0] > 4 * starts[1], "nine cheap ones for a dear one, soon: {starts:?}");
}

/// Who starts, of two flows that want more than there is and whose requests cost 1 and 9, when so many of each have run before.
async fn starts_of_cheap_and_dear(known: usize) -> [u32; 2] {
    let flow = controlled("evenkeel.dev/cost: tokens");
    // The same time for all: only the cost tells them apart.
    let once = async |name: &str, cost: f64| {
        let permit = permit(&flow, name, "/generate").await;
        tokio::time::sleep(Duration::from_millis(10)).await;
        permit.add_cost(cost);
    };
    for _ in 0..known {
        once("cheap", 1.0).await;
        once("dear", 9.0).await;
    }
    // 98 seats for all others; the last ones are fought for.
    let blocker = permit(&flow, "blocker", "/generate").await;
    let free = flow.status().iter().find(|status| status.name == "api").unwrap().current_limit;
    blocker.set_seats(u32::try_from(free - 1).unwrap());
    let mut starts = [0u32; 2];
    let mut tasks = Vec::new();
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    for index in 0..400 {
        let (name, cost) = if index % 2 == 0 { ("cheap", 1.0) } else { ("dear", 9.0) };
        let (user, request) = (User::new(name, ["system:authenticated"]), RequestInfo::for_path("post", "/generate"));
        let patience = evenkeel::request::Patience::default().waits_at_most(Duration::from_secs(60));
        let arrived =
            flow.arrive_request(FlowRequest::new(Attributes { user: &user, request: &request }).patience(patience));
        let sender = sender.clone();
        tasks.push(tokio::spawn(async move {
            if let Ok(permit) = arrived.await {
                sender.send(index % 2).unwrap();
                tokio::time::sleep(Duration::from_millis(10)).await;
                permit.add_cost(cost);
            }
        }));
    }
    for _ in 0..100 {
        starts[receiver.recv().await.unwrap()] += 1;
    }
    starts
}

#[tokio::test(start_paused = true)]
async fn co_6_the_access_log_learns_the_cost() {
    let flow = controlled(TOKENS);
    let times = Arc::<SeatTimes>::default();
    let (user, request) = (User::new("alice", ["system:authenticated"]), RequestInfo::for_path("post", "/generate"));
    let asked = FlowRequest::new(Attributes { user: &user, request: &request }).seat_times(&times);
    let permit = flow.admit_request(asked).await.unwrap();
    permit.add_cost(7.0);
    assert_eq!(times.cost(), None);
    drop(permit);
    let cost = times.cost().unwrap();
    assert_eq!((cost.expected, cost.actual), (0.0, 7.0));
}

#[tokio::test(start_paused = true)]
async fn co_7_where_nothing_is_said_nothing_is_counted() {
    let flow = controlled("evenkeel.dev/cost: time");
    let permit = permit(&flow, "alice", "/generate").await;
    permit.add_cost(7.0);
    assert_eq!((permit.cost(), permit.seats()), (None, 1));
}
