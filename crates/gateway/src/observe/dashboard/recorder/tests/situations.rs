//! Situations that operators meet, and the diagnosis of each: each situation is staged with a flow control, requests and a clock,
//! and the sentence is that of the last frame.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use evenkeel::objects::{IntoObjects, Objects};
use evenkeel::request::FlowRequest;
use evenkeel::{Attributes, Permit, Preset, RequestInfo, User, WorkEstimate};
use evenkeel_api::annotations::NEWCOMER_SEATS;
use evenkeel_api::decode::{Manifest, Strictness};

use super::{Arrived, Bench, DiagnosisState, Frame, OutCause, UpstreamReading};

/// A client that sends requests at a steady rate.
#[derive(Debug, Clone, Copy)]
struct Client {
    user: &'static str,
    /// A request every so many milliseconds.
    every_ms: u64,
    /// How long each of them runs.
    runs_ms: u64,
    /// How long it waits before it disconnects.
    leaves_ms: u64,
    is_long_running: bool,
}

/// A request that waits, since when, and whose it is.
type Waiting = (Pin<Box<Arrived>>, u64, Client);

/// A gateway, its clients, and a service that takes as long as they say.
struct Stage {
    bench: Bench,
    now_ms: u64,
    waiting: Vec<Waiting>,
    running: Vec<(u64, Permit)>,
}

const STEP_MS: u64 = 10;
const NEVER: u64 = u64::MAX;

fn client(user: &'static str, every_ms: u64, runs_ms: u64) -> Client {
    Client { user, every_ms, runs_ms, leaves_ms: NEVER, is_long_running: false }
}

impl Stage {
    fn new(seats: u32) -> Self {
        let mut bench = Bench::new(seats);
        bench.frame();
        Self { bench, now_ms: 0, waiting: Vec::new(), running: Vec::new() }
    }

    /// Without seats for new clients: others may hold all of them.
    fn without_kept_seats(seats: u32) -> Self {
        let stage = Self::new(seats);
        let mut all = Objects::from(Preset::Plain);
        for level in &mut all.priority_levels {
            let annotations = &mut Arc::make_mut(level).metadata.annotations;
            annotations.insert(NEWCOMER_SEATS.to_owned(), "0".to_owned());
        }
        stage.bench.flow.apply_stored(all);
        stage
    }

    /// With these objects beside those of the preset.
    fn with_objects(seats: u32, manifest: &str) -> Self {
        let stage = Self::new(seats);
        let manifest =
            Manifest::read_for(Preset::Plain, "objects.yaml", manifest.as_bytes(), Strictness::Strict).unwrap();
        let (mut all, more) = (Objects::from(Preset::Plain), manifest.into_objects(Preset::Plain).unwrap());
        all.priority_levels.extend(more.priority_levels);
        all.flow_schemas.extend(more.flow_schemas);
        stage.bench.flow.apply_stored(all);
        stage
    }

    /// Lets seconds pass with these clients. The last frame is returned.
    fn run(&mut self, seconds: u64, clients: &[Client]) -> Frame {
        self.run_with(seconds, clients, |_| {})
    }

    /// The same, and something happens at the end of each second.
    fn run_with(&mut self, seconds: u64, clients: &[Client], mut each: impl FnMut(&mut Bench)) -> Frame {
        let end = self.now_ms + 1000 * seconds;
        let mut frame = None;
        while self.now_ms < end {
            for client in clients {
                if self.now_ms.is_multiple_of(client.every_ms) {
                    let user = User::new(client.user, Vec::<String>::new());
                    let info = RequestInfo::default();
                    let request = FlowRequest::new(Attributes { user: &user, request: &info });
                    let request = request.work(WorkEstimate::ONE_SEAT);
                    let request = if client.is_long_running { request.long_running() } else { request };
                    self.waiting.push((Box::pin(self.bench.flow.arrive_request(request)), self.now_ms, *client));
                }
            }
            self.step();
            if self.now_ms.is_multiple_of(1000) {
                each(&mut self.bench);
                frame = Some(self.bench.frame());
            }
        }
        frame.unwrap()
    }

    fn step(&mut self) {
        let now = self.now_ms;
        self.running.retain(|(end, _)| *end > now);
        for (mut request, since, client) in std::mem::take(&mut self.waiting) {
            match request.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Ok(permit)) => self.running.push((now.saturating_add(client.runs_ms), permit)),
                Poll::Ready(Err(_)) => {}
                Poll::Pending if now - since >= client.leaves_ms => {}
                Poll::Pending => self.waiting.push((request, since, client)),
            }
        }
        self.now_ms += STEP_MS;
        self.bench.pass(Duration::from_millis(STEP_MS));
    }
}

/// Two upstreams, of which the first is the one of the bench.
fn two_upstreams(bench: &mut Bench) {
    bench.upstream.name = "one:80".to_owned();
    bench.others = vec![UpstreamReading { name: "two:80".to_owned(), ..UpstreamReading::default() }];
}

/// A second in which an upstream responds in ten milliseconds.
fn respond(upstream: &mut UpstreamReading, responses: u64, errors: u64) {
    upstream.responses += responses;
    upstream.timed += responses;
    upstream.latency_sum_ns += responses * 10_000_000;
    upstream.errors += errors;
}

/// Web clients that leave much of the service free.
const WEB: [Client; 2] = [
    Client { user: "alice", every_ms: 100, runs_ms: 20, leaves_ms: NEVER, is_long_running: false },
    Client { user: "bob", every_ms: 100, runs_ms: 20, leaves_ms: NEVER, is_long_running: false },
];

/// A level of its own for a user.
fn level_for(user: &str, spec: &str) -> String {
    let level = format!(
        "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: PriorityLevelConfiguration\nmetadata: {{name: {user}}}\nspec: {spec}\n"
    );
    level + "---\n" + &schema_for(user, user)
}

/// A flow schema for the requests of a user.
fn schema_for(user: &str, level: &str) -> String {
    format!(
        "apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {{name: {user}}}
spec:
  priorityLevelConfiguration: {{name: {level}}}
  matchingPrecedence: 100
  distinguisherMethod: {{type: ByUser}}
  rules:
  - subjects: [{{kind: User, user: {{name: {user}}}}}]
    nonResourceRules: [{{verbs: ['*'], nonResourceURLs: ['*']}}]
"
    )
}

/// A situation, how it is staged, how urgent it is, and the sentence.
type Situation = (&'static str, fn() -> Frame, DiagnosisState, &'static str);

#[rustfmt::skip]
const SITUATIONS: &[Situation] = &[
    ("nothing happens", || Stage::new(10).run(5, &[]), DiagnosisState::Well,
        "all is well: 0 of 10 seats are in use, no request waits"),
    ("it is busy, and nobody waits", || {
        Stage::new(10).run(20, &[client("alice", 20, 80), client("bob", 20, 80)])
    }, DiagnosisState::Well,
        "all is well: 8 of 10 seats are in use, no request waits"),
    ("one greedy client waits behind itself", || {
        Stage::new(10).run(30, &[WEB[0], WEB[1], client("bulk", 20, 210)])
    }, DiagnosisState::Well,
        "one client is limited as intended, the others are fine: bulk waits behind its own requests and holds 10 of 10 seats of everyone"),
    ("one greedy client is rejected", || {
        Stage::new(10).run(40, &[WEB[0], WEB[1], client("bulk", 10, 150)])
    }, DiagnosisState::Well,
        "one client is limited as intended, the others are fine: bulk has 36 requests a second rejected (queue-full) and holds 10 of 10 seats of everyone"),
    ("the only client sends too much", || Stage::new(10).run(40, &[client("bulk", 10, 400)]), DiagnosisState::Failing,
        "everyone rejects 75 requests a second (queue-full): all of them are from bulk, which holds 10 of 10 seats"),
    ("one of two upstreams responds with 503", || {
        let mut stage = Stage::new(10);
        two_upstreams(&mut stage.bench);
        stage.run_with(20, &WEB, |bench| {
            respond(&mut bench.upstream, 95, 95);
            respond(&mut bench.others[0], 5, 0);
        })
    }, DiagnosisState::Failing,
        "not flow control: the upstream one:80 responds with errors: all 95 requests a second fail; 1 of 2 upstreams serve"),
    ("the failing upstream has been ejected", || {
        let mut stage = Stage::new(10);
        two_upstreams(&mut stage.bench);
        stage.bench.upstream.out = Some(OutCause::Errors);
        stage.run_with(20, &WEB, |bench| respond(&mut bench.others[0], 20, 0))
    }, DiagnosisState::Failing,
        "not flow control: the upstream one:80 responds with errors and gets no requests; 1 of 2 upstreams serve"),
    ("all upstreams respond with errors", || {
        let mut stage = Stage::new(10);
        two_upstreams(&mut stage.bench);
        stage.run_with(20, &WEB, |bench| {
            respond(&mut bench.upstream, 10, 10);
            respond(&mut bench.others[0], 10, 9);
        })
    }, DiagnosisState::Failing,
        "not flow control: all 2 upstreams fail, one:80 responds with errors: 19 of 20 requests a second fail"),
    ("an upstream does not respond in time, and requests pile up behind it", || {
        let slow = [client("alice", 100, 5000), client("bob", 100, 5000)];
        Stage::new(10).run_with(30, &slow, |bench| bench.upstream.timeouts += 2)
    }, DiagnosisState::Failing,
        "not flow control: the upstream service:80 does not respond in time: all 2 requests a second fail"),
    ("the upstream is down", || {
        let mut stage = Stage::new(10);
        stage.bench.upstream.out = Some(OutCause::Connections);
        stage.run_with(20, &WEB, |bench| bench.upstream.unreachable += 20)
    }, DiagnosisState::Failing,
        "not flow control: the upstream service:80 cannot be connected to: all 20 requests a second fail"),
    ("the upstream has become slower", || {
        let mut stage = Stage::new(10);
        stage.run_with(30, &WEB, |bench| respond(&mut bench.upstream, 20, 0));
        stage.run_with(10, &WEB, |bench| {
            respond(&mut bench.upstream, 20, 0);
            bench.upstream.latency_sum_ns += 20 * 50_000_000;
        })
    }, DiagnosisState::Slow,
        "not flow control: the upstream got six times slower at 08:00 UTC (10 ms → 60 ms at the mean), demand is unchanged"),
    ("slow requests of one client wait for each other, and seats are kept for those of others", || {
        let mut stage = Stage::new(10);
        stage.run(5, &WEB);
        stage.run(1, &[client("export", 20, 60_000)]);
        stage.run(6, &[client("alice", 500, 20)])
    }, DiagnosisState::Well,
        "one client is limited as intended, the others are fine: export waits behind its own requests and holds 8 of 10 seats of everyone"),
    ("slow requests of one client hold all seats, and those of others wait", || {
        let mut stage = Stage::without_kept_seats(10);
        stage.run(5, &WEB);
        stage.run(1, &[client("export", 20, 60_000)]);
        stage.run(6, &[client("alice", 500, 20)])
    }, DiagnosisState::Slow,
        "everyone has started no request for 6.0 s, 52 wait: export holds 10 of 10 seats"),
    ("those that wait for slow requests of another client time out", || {
        let mut stage = Stage::without_kept_seats(10);
        stage.run(5, &WEB);
        stage.run(1, &[client("export", 20, 600_000)]);
        stage.run(90, &[client("alice", 500, 20)])
    }, DiagnosisState::Failing,
        "everyone rejects 2 requests a second (time-out): all of them are from alice; export holds 10 of 10 seats"),
    ("long-running requests hold the seats until they respond", || {
        let mut stage = Stage::without_kept_seats(10);
        let poll = |user| Client { is_long_running: true, ..client(user, 100, 60_000) };
        stage.run(1, &[poll("carol"), poll("dave"), poll("erin"), poll("frank")]);
        stage.run(6, &[client("alice", 500, 20)])
    }, DiagnosisState::Slow,
        "everyone has started no request for 6.0 s, 42 wait: long-running requests hold 10 of 10 seats until they respond"),
    ("a level has as many long-running requests as it may", || {
        let level = level_for("chat", "{type: Limited, limited: {nominalConcurrencyShares: 30, limitResponse: {type: Queue, queuing: {queues: 8, handSize: 2, queueLengthLimit: 50}}}}");
        let level = level.replacen("metadata: {name: chat}", "metadata: {name: chat, annotations: {evenkeel.dev/max-long-running: '3'}}", 1);
        let mut stage = Stage::with_objects(10, &level);
        stage.run(12, &[Client { is_long_running: true, ..client("chat", 500, 60_000) }])
    }, DiagnosisState::Failing,
        "chat rejects 2 long-running requests a second: it has 3 of 3 that it may have"),
    ("exempt requests fill the service", || {
        let mut stage = Stage::with_objects(10, &schema_for("backup", "exempt"));
        stage.run(10, &[WEB[0], client("backup", 20, 1000)])
    }, DiagnosisState::Slow,
        "exempt requests use 50 seats beside the 10 of all other levels: nothing limits those of exempt"),
    ("many clients send more than the service can do", || {
        let names = ["u00", "u01", "u02", "u03", "u04", "u05", "u06", "u07", "u08", "u09", "u10", "u11", "u12", "u13", "u14", "u15"];
        Stage::new(10).run(40, &names.map(|user| client(user, 50, 500)))
    }, DiagnosisState::Failing,
        "everyone rejects 302 requests a second (time-out): 10 of 10 seats are in use, by many clients"),
    ("a level with zero shares starves", || {
        let level = level_for("batch", "{type: Limited, limited: {nominalConcurrencyShares: 0, borrowingLimitPercent: 0, limitResponse: {type: Queue, queuing: {queues: 8, handSize: 2, queueLengthLimit: 50}}}}");
        Stage::with_objects(10, &level).run(8, &[WEB[0], client("batch", 1000, 100)])
    }, DiagnosisState::Failing,
        "no request of batch can start, 8 wait: it has no seats of its own and can borrow none now"),
    ("clients leave while they wait", || {
        let leaving = |user| Client { leaves_ms: 1000, ..client(user, 100, 2000) };
        Stage::without_kept_seats(10).run(20, &[leaving("alice"), leaving("bob")])
    }, DiagnosisState::Slow,
        "everyone: the clients of 15 requests a second disconnect while they wait: 10 of 10 seats are in use"),
    ("seats of another level are idle and not lendable", || {
        let level = level_for("vip", "{type: Limited, limited: {nominalConcurrencyShares: 100, lendablePercent: 0, limitResponse: {type: Queue, queuing: {queues: 8, handSize: 2, queueLengthLimit: 50}}}}");
        Stage::with_objects(20, &level).run(20, &[client("alice", 100, 600), client("bob", 100, 600)])
    }, DiagnosisState::Slow,
        "everyone waits 5.0 s at p99: 10 of 10 seats are in use; 10 seats of other levels are idle and not lendable"),
    ("seats were taken away", || {
        let mut stage = Stage::new(40);
        let busy = [client("alice", 40, 500), client("bob", 40, 500)];
        stage.run(10, &busy);
        stage.bench.flow.set_server_concurrency(10);
        stage.run(5, &busy)
    }, DiagnosisState::Slow,
        "everyone waits 5.0 s at p99: 10 of 10 seats are in use; there are 40 → 10 seats since 08:00 UTC"),
    ("the store cannot be written", || {
        let mut stage = Stage::new(10);
        stage.bench.store_problem = Some("No space left on device (os error 28)".to_owned());
        stage.run(5, &WEB)
    }, DiagnosisState::Slow,
        "the store cannot be used: No space left on device (os error 28); requests are served by the objects in effect"),
    ("the store cannot be reached", || {
        let mut stage = Stage::new(10);
        stage.bench.objects_stale = Some("those of revision 7; the store has been out of reach for 12 s".to_owned());
        stage.run(5, &WEB)
    }, DiagnosisState::Slow,
        "the objects may be out of date: those of revision 7; the store has been out of reach for 12 s; requests are served by the objects in effect"),
    ("the objects on disk have errors", || {
        let mut stage = Stage::new(10);
        stage.bench.objects_are_refused = true;
        stage.run(5, &WEB)
    }, DiagnosisState::Slow,
        "the latest objects have errors, and older ones are in effect; the log says which"),
    ("a flow schema names a level that does not exist", || {
        Stage::with_objects(10, &schema_for("tenants", "gold")).run(5, &WEB)
    }, DiagnosisState::Slow,
        "flow schema tenants is not used: its level gold does not exist"),
    ("the buffers for slow clients are full", || {
        let mut stage = Stage::new(10);
        (stage.bench.buffered, stage.bench.buffer_limit) = (62 << 20, 64 << 20);
        stage.run(5, &WEB)
    }, DiagnosisState::Failing,
        "not flow control: the buffers for slow clients are full (62 of 64 MiB), the slowest requests are rejected; raise limits.bufferBytes, or lower limits.requestBuffer and limits.responseBuffer"),
    ("an overload is over", || {
        let mut stage = Stage::new(10);
        stage.run(10, &[client("alice", 20, 300), client("bob", 20, 300)]);
        stage.waiting.clear();
        stage.run(6, &WEB)
    }, DiagnosisState::Slow,
        "recovering: everyone rejected requests until 5.0 s ago, no request waits now"),
];

#[test]
fn the_diagnosis_is_right_in_staged_situations() {
    assert!(SITUATIONS.len() >= 20);
    let mut wrong = String::new();
    for (situation, stage, state, text) in SITUATIONS {
        let found = stage().diagnosis;
        if (found.state, found.text.as_str()) != (*state, *text) {
            wrong += &format!(
                "{situation}:\n  expected {state:?} {text:?}\n  found    {:?} {:?}\n",
                found.state, found.text
            );
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// A sentence changes when the situation does, and not from second to second.
#[test]
fn a_steady_situation_has_a_steady_diagnosis() {
    let mut stage = Stage::new(10);
    let mut frames = Vec::new();
    for _ in 0..20 {
        frames.push(stage.run(1, &[WEB[0], WEB[1], client("bulk", 10, 150)]));
    }
    let settled: Vec<&str> =
        frames[10..].iter().map(|frame| frame.diagnosis.text.split([':', '0', '1']).next().unwrap()).collect();
    let level = frames.last().unwrap().level("everyone");
    assert!(settled.iter().all(|text| *text == settled[0]), "{settled:?} {level:?}");
    assert_eq!(settled[0], "one client is limited as intended, the others are fine", "{level:?}");
}
