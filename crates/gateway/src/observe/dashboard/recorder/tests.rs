//! Frames of a flow control whose clock the test moves.

mod situations;

use std::time::Duration;

use evenkeel::clock::ManualClock;
use evenkeel::request::Arrived;
use evenkeel::{Attributes, FlowControl, Preset, RequestInfo, User, WorkEstimate};

use super::*;
use crate::observe::frame::{DiagnosisState, EventKind, Queuing};
use crate::observe::metrics::Edit;

/// A gateway without a network.
struct Bench {
    clock: ManualClock,
    flow: FlowControl,
    recorder: Recorder,
    history: History,
    upstream: UpstreamReading,
    /// The upstreams beside it.
    others: Vec<UpstreamReading>,
    models: Vec<ModelReading>,
    object_changes: BTreeSet<ObjectChange>,
    objects_stale: Option<String>,
    store_problem: Option<String>,
    objects_are_refused: bool,
    buffered: u64,
    buffer_limit: u64,
    canary_returned: Option<String>,
}

impl Bench {
    fn new(seats: u32) -> Self {
        let clock = ManualClock::default();
        let flow = FlowControl::builder().preset(Preset::Plain).server_concurrency(seats).manual_clock(clock.clone());
        let flow = flow.attribute_flows().drive_by_hand().build();
        let upstream = UpstreamReading { name: "service:80".to_owned(), ..UpstreamReading::default() };
        let (recorder, history) = (Recorder::default(), History::default());
        Self {
            clock,
            flow,
            recorder,
            history,
            upstream,
            others: Vec::new(),
            models: Vec::new(),
            object_changes: BTreeSet::new(),
            objects_stale: None,
            store_problem: None,
            objects_are_refused: false,
            buffered: 0,
            buffer_limit: 0,
            canary_returned: None,
        }
    }

    fn arrive(&self, user: &str) -> Arrived {
        let user = User::new(user, Vec::<String>::new());
        self.flow.arrive(Attributes { user: &user, request: &RequestInfo::default() }, WorkEstimate::ONE_SEAT)
    }

    fn pass(&self, time: Duration) {
        self.clock.advance(time);
        self.flow.tick();
    }

    fn frame(&mut self) -> Frame {
        let reading = self.flow.reading();
        let busiest = self.recorder.busiest(&reading, 10);
        let flows = busiest.into_iter().filter_map(|level| self.flow.flows_of(level, 8)).collect();
        let time_ms = 1_800_000_000_000 + u64::try_from(reading.at_ns / 1_000_000).unwrap();
        let seen = Observation {
            reading,
            flows,
            upstreams: std::iter::once(&self.upstream).chain(&self.others).cloned().collect(),
            models: self.models.clone(),
            object_changes: std::mem::take(&mut self.object_changes),
            objects_refused: 0,
            settings_applied: 0,
            upstream_failures: 0,
            objects_stale: self.objects_stale.clone(),
            store_problem: self.store_problem.clone(),
            objects_are_refused: self.objects_are_refused,
            buffered: self.buffered,
            buffer_limit: self.buffer_limit,
            limit: None,
            fleet: None,
            has_shadow: false,
            canary_returns: u64::from(self.canary_returned.is_some()),
            canary_returned: self.canary_returned.clone(),
        };
        self.recorder.record(seen, time_ms, &mut self.history)
    }
}

#[test]
fn a_frame_tells_of_its_interval_and_not_of_its_end() {
    let mut bench = Bench::new(10);
    let first = bench.frame();
    assert_eq!((first.interval_ms, first.server.concurrency), (0, 10));
    // Four seats for a quarter of a second, and none at the end.
    let running: Vec<_> = (0..4).map(|_| bench.arrive("alice")).collect();
    bench.pass(Duration::from_millis(250));
    drop(running);
    bench.pass(Duration::from_millis(750));
    let frame = bench.frame();
    assert_eq!(frame.interval_ms, 1000);
    let level = frame.level("everyone").unwrap();
    assert_eq!((level.in_use, level.dispatched, level.queuing), (0, 4.0, Some(Queuing::PerFlow)));
    assert!((level.in_use_mean - 1.0).abs() < 0.01, "{level:?}");
    let used = level.utilisation.unwrap();
    assert!(used.min == 0.0 && used.max >= 4.0 / 10.0 && (used.mean - 0.1).abs() < 0.01, "{used:?}");
    assert!(level.wait_ms.unwrap().p99 < 0.001);
    let schema = level.schemas.iter().find(|schema| schema.hits > 0).unwrap();
    assert_eq!((schema.hits, schema.rate), (4, 4.0));
    assert!(frame.levels.iter().flat_map(|level| &level.schemas).any(|schema| schema.hits == 0));
    assert_eq!(frame.diagnosis.state, DiagnosisState::Well);
    let past = bench.history.of("everyone").unwrap();
    assert_eq!((past.in_use.len(), past.until_ms), (1, frame.time_ms));
}

#[test]
fn waiting_and_rejected_requests_are_in_the_frame_and_in_the_diagnosis() {
    let mut bench = Bench::new(2);
    bench.frame();
    let running: Vec<_> = (0..2).map(|_| bench.arrive("greedy")).collect();
    let waiting: Vec<_> = (0..6).map(|_| bench.arrive("greedy")).collect();
    bench.pass(Duration::from_secs(1));
    let frame = bench.frame();
    let level = frame.level("everyone").unwrap();
    assert_eq!((level.in_use, level.waiting), (2, 6));
    // They start after 1.2 s.
    bench.pass(Duration::from_millis(200));
    drop(running);
    bench.pass(Duration::from_millis(800));
    let frame = bench.frame();
    let wait = frame.level("everyone").unwrap().wait_ms.unwrap();
    assert!((1000.0..=2000.0).contains(&wait.p99), "{wait:?}");
    assert_eq!((frame.diagnosis.state, frame.diagnosis.level.as_deref()), (DiagnosisState::Slow, Some("everyone")));
    let text = &frame.diagnosis.text;
    assert!(text.contains("of it is greedy behind its own requests, which hold "), "{text}");
    let level = frame.level("everyone").unwrap();
    let [delay] = &level.delays[..] else { panic!("{level:?}") };
    assert_eq!((delay.waiter, delay.by, level.flows[0].distinguisher.as_str()), (0, Some(0), "greedy"));
    assert!(delay.share > 0.99 && level.flows[0].waiting > 0.0, "{level:?}");
    drop(waiting);
}

/// RL-1, RL-2: a rate is in the frame with its policy, with how many had to wait for it, and with how many wait now.
#[test]
fn rl_2_a_rate_and_what_waits_for_it_are_in_the_frame() {
    let mut bench = Bench::new(10);
    let objects = "
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: api}
spec: {type: Limited, limited: {nominalConcurrencyShares: 100, limitResponse: {type: Queue, queuing: {}}}}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: users, annotations: {evenkeel.dev/rate: 1/s;burst=1}}
spec:
  matchingPrecedence: 100
  priorityLevelConfiguration: {name: api}
  distinguisherMethod: {type: ByUser}
  rules:
  - subjects: [{kind: User, user: {name: '*'}}]
    nonResourceRules: [{verbs: ['*'], nonResourceURLs: ['*']}]
    resourceRules: [{verbs: ['*'], apiGroups: ['*'], resources: ['*'], namespaces: ['*'], clusterScope: true}]
";
    bench.flow.apply(objects).unwrap();
    let rate_in = |frame: &Frame| {
        let level = frame.level("api").unwrap();
        level.schemas.iter().find(|schema| schema.name == "users").unwrap().flow_rate.clone().unwrap()
    };
    let quiet = rate_in(&bench.frame());
    assert_eq!((&*quiet.policy, quiet.delayed, quiet.waiting), ("1/s;burst=1", 0.0, 0));
    let mut arrived: Vec<_> = (0..3).map(|_| bench.arrive("alice")).collect();
    bench.pass(Duration::from_secs(1));
    let frame = bench.frame();
    let busy = rate_in(&frame);
    assert_eq!((busy.delayed, busy.waiting), (2.0, 2), "{busy:?}");
    assert!(frame.level("everyone").is_none_or(|level| level.schemas.iter().all(|schema| schema.flow_rate.is_none())));
    arrived.clear();
    bench.pass(Duration::from_secs(1));
    let over = rate_in(&bench.frame());
    assert_eq!((over.delayed, over.waiting), (0.0, 0), "{over:?}");
}

/// The shares of each flow that waits add up to all that it waited, though a frame lists few flows.
#[test]
fn what_is_not_listed_is_waiting_behind_others() {
    let mut bench = Bench::new(40);
    bench.frame();
    let arrive_all = |bench: &Bench| (0..40).map(|user| bench.arrive(&format!("user-{user:02}"))).collect::<Vec<_>>();
    for _ in 0..20 {
        let running = arrive_all(&bench);
        let waiting: Vec<_> = (0..40).map(|_| bench.arrive("late")).collect();
        bench.pass(Duration::from_millis(500));
        drop(running);
        bench.pass(Duration::from_millis(500));
        drop(waiting);
        bench.frame();
    }
    let frame = bench.frame();
    let level = frame.level("everyone").unwrap();
    let late = level.flows.iter().position(|flow| flow.distinguisher == "late").unwrap();
    let of_late: Vec<_> = level.delays.iter().filter(|delay| delay.waiter == late).collect();
    let share: f64 = of_late.iter().map(|delay| delay.share).sum();
    assert!((0.97..=1.03).contains(&share), "{share} {of_late:?}");
    assert!(of_late.iter().any(|delay| delay.by.is_none() && delay.share > 0.3), "{of_late:?}");
    assert!(of_late.len() > 5, "{of_late:?}");
}

#[test]
fn a_slow_upstream_is_told_apart_from_flow_control() {
    let mut bench = Bench::new(10);
    let second = |bench: &mut Bench, latency_ms: u64| {
        bench.upstream.responses += 100;
        bench.upstream.timed += 100;
        bench.upstream.latency_sum_ns += 100 * latency_ms * 1_000_000;
        for _ in 0..100 {
            drop(bench.arrive("alice"));
        }
        bench.pass(Duration::from_secs(1));
        bench.frame()
    };
    bench.frame();
    let frames: Vec<_> = (0..30).map(|_| second(&mut bench, 10)).collect();
    assert!(frames.iter().all(|frame| frame.diagnosis.state == DiagnosisState::Well));
    let frame = (0..10).map(|_| second(&mut bench, 60)).last().unwrap();
    let upstream = &frame.upstreams[0];
    assert_eq!((upstream.latency_ms, upstream.responses), (Some(60.0), 100.0));
    let text = &frame.diagnosis.text;
    assert!(text.starts_with("not flow control: the upstream got ") && text.ends_with("demand is unchanged"), "{text}");
    assert!((0..10).map(|_| second(&mut bench, 10)).last().unwrap().diagnosis.text.starts_with("all is well"));
}

#[test]
fn what_comes_back_from_an_upstream_is_counted_by_how_it_failed() {
    let mut bench = Bench::new(10);
    bench.frame();
    bench.pass(Duration::from_secs(2));
    let before = bench.upstream.clone();
    bench.upstream = UpstreamReading {
        out: Some(OutCause::Silent),
        in_flight: 7,
        responses: 40,
        errors: 20,
        timeouts: 2,
        unreachable: 4,
        cut: 6,
        ..before
    };
    let upstream = bench.frame().upstreams.remove(0);
    assert_eq!((upstream.is_out, upstream.out_cause, upstream.in_flight), (true, Some(OutCause::Silent), 7));
    let rates = [upstream.responses, upstream.errors, upstream.timeouts, upstream.unreachable, upstream.cut];
    assert_eq!(rates.map(|rate| rate.to_string()), ["20", "10", "1", "2", "3"]);
}

#[test]
fn lm_8_language_models_are_in_the_frame_with_their_tokens_a_second() {
    let reading = |name: &str, prompt, output, running| ModelReading { name: name.into(), prompt, output, running };
    let of = |frame: &Frame| -> Vec<(String, u64, f64, f64)> {
        frame.models.iter().map(|model| (model.name.clone(), model.running, model.prompt, model.output)).collect()
    };
    let mut bench = Bench::new(10);
    assert!(bench.frame().models.is_empty());
    bench.models = vec![reading("big", 400, 30, 2)];
    bench.pass(Duration::from_secs(2));
    // All of a new model's tokens are of this interval.
    assert_eq!(of(&bench.frame()), [("big".to_owned(), 2, 200.0, 15.0)]);
    bench.models = vec![reading("big", 400, 80, 1)];
    bench.pass(Duration::from_secs(1));
    assert_eq!(of(&bench.frame()), [("big".to_owned(), 1, 0.0, 50.0)]);
    // Of many, the busiest are told apart.
    bench.models = (0..30).map(|number| reading(&format!("m-{number:02}"), 0, number * 10, 0)).collect();
    bench.models.push(reading(ModelReading::OTHERS, 5, 5, 9));
    bench.pass(Duration::from_secs(1));
    let shown = of(&bench.frame());
    assert_eq!(shown.len(), MODELS_MAX);
    assert_eq!(shown[0], (ModelReading::OTHERS.to_owned(), 9, 5.0, 1715.0));
    let names: Vec<&str> = shown[1..].iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!((names[0], names[10]), ("m-19", "m-29"));
}

#[test]
fn changes_are_events() {
    let mut bench = Bench::new(10);
    bench.frame();
    bench.flow.set_server_concurrency(20);
    bench.pass(Duration::from_secs(1));
    bench.frame();
    bench.flow.set_server_concurrency(30);
    bench.upstream.out = Some(OutCause::Errors);
    bench.pass(Duration::from_secs(1));
    bench.frame();
    bench.upstream.out = None;
    bench.canary_returned = Some("3 of 250 requests waited for longer than 2000 ms".to_owned());
    let change = |kind, edit, name: &str| ObjectChange { kind, edit, name: name.to_owned() };
    bench.object_changes = [
        change("level", Edit::Edited, "everyone"),
        change("flow schema", Edit::Edited, "a"),
        change("flow schema", Edit::Edited, "b"),
    ]
    .into();
    bench.object_changes.extend((0..4).map(|number| change("level", Edit::Added, &number.to_string())));
    bench.pass(Duration::from_secs(1));
    let frame = bench.frame();
    let events: Vec<_> = frame.events.iter().map(|event| (event.kind, event.text.as_str())).collect();
    assert_eq!(
        events,
        [
            (EventKind::UpstreamBack, "the upstream service:80 serves again"),
            (EventKind::ObjectsChanged, "the canary has returned: 3 of 250 requests waited for longer than 2000 ms"),
            (
                EventKind::ObjectsChanged,
                "the objects changed: 4 levels added; flow schema a, b edited; level everyone edited"
            ),
            (EventKind::UpstreamOut, "the upstream service:80 responds with errors"),
            (EventKind::LimitChanged, "all levels together have 10 → 30 seats"),
        ]
        .map(|(kind, text)| (kind, text))
    );
    // A limit that changes all the time does not push other events out.
    for seats in 31..80 {
        bench.flow.set_server_concurrency(seats);
        bench.pass(Duration::from_secs(1));
        bench.frame();
    }
    let events = bench.recorder.events.all();
    assert_eq!(events[0].text, "all levels together have 30 → 79 seats");
    assert!(events.len() == 6, "{events:?}");
}
