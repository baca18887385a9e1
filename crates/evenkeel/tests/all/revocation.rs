//! Requests of revocable levels end when requests of another level have waited for too long for seats of its own (LM-7).

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use evenkeel::api::short::Part;
use evenkeel::clock::ManualClock;
use evenkeel::events::{Event, EventKind, RunEnd};
use evenkeel::identify::authenticated;
use evenkeel::metrics::prometheus_client::encoding::text;
use evenkeel::metrics::prometheus_client::registry::Registry;
use evenkeel::{FlowControl, Permit, User, WorkEstimate};
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;

use crate::layer::{Mock, Reply, TestBody, get, send};
use crate::service::{assert_idle, attributes};

const AFTER: Duration = Duration::from_millis(200);

/// Four seats: two of people, and two of jobs, which use what people leave idle.
fn flow(clock: &ManualClock, is_revocable: bool) -> FlowControl {
    FlowControl::builder()
        .server_concurrency(4)
        .level("people", |l| l.share(50).lend(Part::All))
        .level(
            "jobs",
            |l| if is_revocable { l.share(50).lend(Part::All).revocable() } else { l.share(50).lend(Part::All) },
        )
        .rule(|r| r.group("jobs").level("jobs"))
        .rule(|r| r.level("people"))
        .revoke_after(AFTER)
        .manual_clock(clock.clone())
        .build()
}

fn user(group: &str) -> User {
    User::new(group, [group])
}

fn admit(flow: &FlowControl, group: &str) -> Option<Permit> {
    let mut arrived = flow.arrive(attributes(&user(group)), WorkEstimate::ONE_SEAT);
    match Pin::new(&mut arrived).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(permit) => Some(permit.unwrap()),
        Poll::Pending => None,
    }
}

fn is_revoked(permit: &Permit) -> bool {
    permit.poll_revoked(&Context::from_waker(Waker::noop())).is_ready()
}

/// Jobs hold all seats; each started a millisecond after the one before.
fn full_of_jobs(flow: &FlowControl, clock: &ManualClock) -> Vec<Permit> {
    let jobs = (0..4).map(|_| {
        clock.advance(Duration::from_millis(1));
        admit(flow, "jobs").expect("a seat")
    });
    jobs.collect()
}

#[test]
fn lm_7_the_youngest_end_after_the_wait_and_no_more_than_needed() {
    let clock = ManualClock::new();
    let flow = flow(&clock, true);
    let mut jobs = full_of_jobs(&flow, &clock);
    let mut person = flow.arrive(attributes(&user("people")), WorkEstimate::ONE_SEAT);
    let poll = |person: &mut evenkeel::request::Arrived| Pin::new(person).poll(&mut Context::from_waker(Waker::noop()));
    assert!(poll(&mut person).is_pending());
    clock.advance(AFTER / 2);
    flow.tick();
    assert!(!jobs.iter().any(is_revoked), "not before the wait is over");
    clock.advance(AFTER);
    flow.tick();
    let revoked: Vec<bool> = jobs.iter().map(is_revoked).collect();
    assert_eq!(revoked, [false, false, false, true], "the youngest one");
    clock.advance(AFTER);
    flow.tick();
    assert_eq!(jobs.iter().filter(|job| is_revoked(job)).count(), 1, "it is about to end");
    drop(jobs.pop());
    let Poll::Ready(Ok(permit)) = poll(&mut person) else { panic!("the seat goes to whoever waits") };
    assert_eq!(permit.priority_level(), "people");
    assert!(!permit.is_revocable() && jobs[0].is_revocable());
    // People have two seats of their own, and no more come from others.
    let mut more: Vec<_> = (0..2).map(|_| flow.arrive(attributes(&user("people")), WorkEstimate::ONE_SEAT)).collect();
    for person in &mut more {
        assert!(poll(person).is_pending());
    }
    for _ in 0..5 {
        clock.advance(AFTER);
        flow.tick();
    }
    assert_eq!(jobs.iter().map(is_revoked).collect::<Vec<_>>(), [false, false, true]);
    drop((jobs, permit, person, more));
    assert_idle(&flow);
}

#[test]
fn lm_7_who_does_not_end_is_not_waited_for() {
    let clock = ManualClock::new();
    let flow = flow(&clock, true);
    let jobs = full_of_jobs(&flow, &clock);
    let mut person = flow.arrive(attributes(&user("people")), WorkEstimate::ONE_SEAT);
    assert!(Pin::new(&mut person).poll(&mut Context::from_waker(Waker::noop())).is_pending());
    clock.advance(AFTER * 2);
    flow.tick();
    clock.advance(Duration::from_secs(2));
    flow.tick();
    assert_eq!(jobs.iter().map(is_revoked).collect::<Vec<_>>(), [false, false, true, true]);
}

#[test]
fn lm_7_nothing_ends_without_need() {
    let clock = ManualClock::new();
    let plain = flow(&clock, false);
    let jobs = full_of_jobs(&plain, &clock);
    assert!(admit(&plain, "people").is_none());
    assert!(plain.tick() > Duration::from_secs(1), "nobody has to look");
    clock.advance(AFTER * 10);
    plain.tick();
    assert!(!jobs.iter().any(|job| is_revoked(job) || job.is_revocable()));
    let clock = ManualClock::new();
    let idle = flow(&clock, true);
    let jobs = full_of_jobs(&idle, &clock);
    // Other jobs wait too; they have no seats of their own to wait for.
    let mut job = idle.arrive(attributes(&user("jobs")), WorkEstimate::ONE_SEAT);
    assert!(Pin::new(&mut job).poll(&mut Context::from_waker(Waker::noop())).is_pending());
    for _ in 0..10 {
        clock.advance(AFTER);
        assert!(idle.tick() <= AFTER, "somebody may have to end");
    }
    assert!(!jobs.iter().any(is_revoked));
}

#[test]
fn lm_7_the_end_is_told() {
    let clock = ManualClock::new();
    let flow = flow(&clock, true);
    let ends = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&ends);
    flow.listen(move |_, _| {
        let heard = Arc::clone(&heard);
        Ends(heard)
    });
    let jobs = full_of_jobs(&flow, &clock);
    let mut person = flow.arrive(attributes(&user("people")), WorkEstimate::ONE_SEAT);
    assert!(Pin::new(&mut person).poll(&mut Context::from_waker(Waker::noop())).is_pending());
    clock.advance(AFTER * 2);
    flow.tick();
    assert!(is_revoked(&jobs[3]));
    drop(jobs);
    flow.deliver_events();
    let mut ends = ends.lock().unwrap().clone();
    ends.sort();
    assert_eq!(ends, [RunEnd::Done, RunEnd::Done, RunEnd::Done, RunEnd::Revoked]);
    let mut registry = Registry::default();
    flow.register_metrics(&mut registry).unwrap();
    let mut metrics = String::new();
    text::encode(&mut metrics, &registry).unwrap();
    assert!(metrics.contains("evenkeel_revoked_requests_total{priority_level=\"jobs\"} 1"), "{metrics}");
}

/// Notes how requests ended.
struct Ends(Arc<Mutex<Vec<RunEnd>>>);

impl evenkeel::events::Listener for Ends {
    fn on_events(&mut self, events: &[Event]) {
        let ends = events.iter().filter_map(|event| match event.kind() {
            EventKind::Finished { end, .. } => Some(end),
            _ => None,
        });
        self.0.lock().unwrap().extend(ends);
    }
}

#[tokio::test(start_paused = true)]
async fn lm_7_whoever_waits_for_it_is_woken() {
    let flow = FlowControl::builder()
        .server_concurrency(2)
        .level("people", |l| l.share(50).lend(Part::All))
        .level("jobs", |l| l.share(50).lend(Part::All).revocable())
        .rule(|r| r.group("jobs").level("jobs"))
        .rule(|r| r.level("people"))
        .build();
    let job = |flow: FlowControl| async move {
        let permit = flow.admit(attributes(&user("jobs")), WorkEstimate::ONE_SEAT).await.unwrap();
        permit.revoked().await;
    };
    let jobs = [tokio::spawn(job(flow.clone())), tokio::spawn(job(flow.clone()))];
    tokio::time::sleep(Duration::from_millis(1)).await;
    let before = tokio::time::Instant::now();
    let permit = flow.admit(attributes(&user("people")), WorkEstimate::ONE_SEAT).await.unwrap();
    let waited = before.elapsed();
    assert!((500..=1000).contains(&waited.as_millis()), "{waited:?}");
    drop(permit);
    assert_eq!(jobs.iter().filter(|job| job.is_finished()).count(), 1);
    jobs.iter().for_each(tokio::task::JoinHandle::abort);
}

/// A response to a job, through the layer, until it is told to end: what was sent of it, and how it ended.
async fn ended_by_the_layer(content_type: &'static str, hint: SizeHint) -> (Vec<u8>, &'static str) {
    let clock = ManualClock::new();
    let flow = flow(&clock, true);
    let (frames, body) = TestBody::streamed();
    let body = Mutex::new(Some(body.hint(hint)));
    let mock = Mock::new(move |_| {
        let body = body.lock().unwrap().take().unwrap_or_else(TestBody::empty);
        Reply::Now(Response::builder().header(CONTENT_TYPE, content_type).body(body).unwrap())
    });
    let older = (0..3).map(|_| admit(&flow, "jobs")).collect::<Vec<_>>();
    clock.advance(Duration::from_millis(1));
    let layer = flow.layer(|_: &_| Ok(authenticated("jobs", ["jobs"])));
    let mut body = send(&layer, &mock, get("/")).now().into_body();
    frames.send(Ok(Frame::data(Bytes::from_static(b"data: 1\n\n")))).unwrap();
    let mut sent = body.frame().await.unwrap().unwrap().into_data().unwrap().to_vec();
    let mut person = flow.arrive(attributes(&user("people")), WorkEstimate::ONE_SEAT);
    assert!(Pin::new(&mut person).poll(&mut Context::from_waker(Waker::noop())).is_pending());
    clock.advance(AFTER * 2);
    flow.tick();
    let end = loop {
        let next = poll_fn(|context| Poll::Ready(Pin::new(&mut body).poll_frame(context))).await;
        match next {
            Poll::Ready(Some(frame)) => sent.extend(frame.unwrap().into_data().unwrap()),
            Poll::Ready(None) => break "ended",
            Poll::Pending => break "goes on",
        }
    };
    assert_eq!(body.has_permit(), end == "goes on");
    drop((body, older, person));
    assert_idle(&flow);
    (sent, end)
}

#[tokio::test]
async fn lm_7_the_layer_ends_what_clients_can_tell_from_a_whole_response() {
    let (sent, end) = ended_by_the_layer("text/event-stream", SizeHint::default()).await;
    let text = String::from_utf8(sent).unwrap();
    assert!(
        text.starts_with("data: 1\n\n\n\nevent: error\ndata: {\"status\":503,") && text.ends_with("}\n\n"),
        "{text}"
    );
    assert_eq!(end, "ended");
    let known = ended_by_the_layer("text/plain", SizeHint::with_exact(1000)).await;
    assert_eq!(known, (b"data: 1\n\n".to_vec(), "ended"));
    let unknown = ended_by_the_layer("text/plain", SizeHint::default()).await;
    assert_eq!(unknown, (b"data: 1\n\n".to_vec(), "goes on"));
}

#[test]
fn lm_7_the_layer_responds_where_there_is_no_response() {
    let clock = ManualClock::new();
    let flow = flow(&clock, true);
    let older = (0..3).map(|_| admit(&flow, "jobs")).collect::<Vec<_>>();
    clock.advance(Duration::from_millis(1));
    let mut answer = send(&flow.layer(|_: &_| Ok(authenticated("jobs", ["jobs"]))), &Mock::stuck(), get("/"));
    assert!(answer.poll().is_none());
    let mut person = flow.arrive(attributes(&user("people")), WorkEstimate::ONE_SEAT);
    assert!(Pin::new(&mut person).poll(&mut Context::from_waker(Waker::noop())).is_pending());
    clock.advance(AFTER * 2);
    flow.tick();
    let response = answer.now();
    assert_eq!(
        (response.status(), &response.headers()["retry-after"]),
        (StatusCode::SERVICE_UNAVAILABLE, &HeaderValue::from_static("1"))
    );
    drop((older, person, response, answer));
    assert_idle(&flow);
}
