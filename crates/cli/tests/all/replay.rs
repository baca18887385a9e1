//! `evenkeel replay` as people run it: the recorded log of a kube-apiserver, and the log of a gateway that runs here.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::pin::Pin;
use std::process::Stdio;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use evenkeel::clock::ManualClock;
use evenkeel::{Attributes, FlowControl, RequestInfo, User, WorkEstimate};
use serde_json::Value;
use tempfile::TempDir;

use crate::child::{PATIENCE, Running, address_after, evenkeel, run, text};
use crate::peer::{Upstream, get};

/// A file of the recording.
fn recorded(name: &str) -> String {
    evenkeel_recorded::golden().join("replay").join(format!("{name}.gz")).to_str().unwrap().to_owned()
}

fn json(arguments: &[&str]) -> Value {
    let output = run(&[arguments, &["-o", "json"]].concat());
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()), "{arguments:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// TL-37, TL-39
#[test]
fn the_recorded_log_has_the_fields_of_the_contract() {
    let (audit, objects, truth) = (recorded("audit.jsonl"), recorded("objects.json"), recorded("httplog.txt"));
    let arguments = ["replay", &audit, "--objects", &objects, "--against", &objects, "--concurrency", "28"];
    let report = json(&[&arguments[..], &["--truth", &truth]].concat());
    assert_eq!((&report["lines"], &report["requests"], &report["damaged"]), (&13_725.into(), &6758.into(), &0.into()));
    let classification = serde_json::json!({"compared": 6758, "agree": 6758, "differ": []});
    assert_eq!(report["classification"], classification);
    let flood = &report["flows"].as_array().unwrap().iter().max_by_key(|flow| flow["requests"].as_u64()).unwrap();
    assert_eq!(flood["before"], flood["after"], "the same objects");
    assert_eq!(flood["recorded"]["rejected"], 2505);
    let after = &flood["after"];
    assert_eq!(
        (&after["schema"], &after["level"], &after["flow"]),
        (&"batch".into(), &"batch".into(), &"batch-runner".into())
    );
    assert!(after["rejected"]["queue-full"].as_u64().unwrap() > 2000);
    for field in ["p50", "p99", "max"] {
        assert!(after["wait"][field].is_f64(), "{after}");
    }
    assert!(after["seatSeconds"].as_f64().unwrap() > 1.0 && after["waited"].as_u64().unwrap() > 1);
    let level = report["levels"].as_array().unwrap().iter().find(|level| level["name"] == "batch").unwrap();
    assert_eq!((&level["after"]["nominal"], &level["after"]["seats"]["max"]), (&1.into(), &1.into()));
    assert_eq!(report["notes"]["unauthenticated"], 168);
}

/// AL-8: the limit that was found is in the report, as text and as JSON.
#[test]
fn al_8_a_replay_with_auto_tells_the_limit_that_it_found() {
    let folder = TempDir::new().unwrap();
    let log = folder.path().join("access.log");
    let line = |index: u32| {
        let (second, micros) = (index / 2000, index % 2000 * 500);
        format!(
            r#"{{"time":"2026-11-16T10:51:{second:02}.{micros:06}Z","user":"user-{}","groups":["system:authenticated"],"method":"GET","path":"/","schema":"everyone","level":"everyone","seats":1,"waitMs":0,"serviceMs":40,"status":200}}"#,
            index % 50
        ) + "\n"
    };
    fs::write(&log, (0..16_000).map(line).collect::<String>()).unwrap();
    let objects = folder.path().join("objects.yaml");
    fs::write(&objects, "levels: {everyone: {share: 1}}\nmatch: [{level: everyone}]\n").unwrap();
    let replayed = ["replay", log.to_str().unwrap(), "--objects", objects.to_str().unwrap(), "--preset", "plain"];
    let arguments = [&replayed[..], &["--concurrency", "auto:10..400"]].concat();
    let report = json(&arguments);
    let limit = &report["limit"]["after"];
    assert!(limit["limit"].as_f64().unwrap() > 30.0 && limit["isKnown"].is_boolean(), "{limit}");
    let changes = limit["changes"].as_array().unwrap();
    assert!(!changes.is_empty() && changes[0]["reason"].is_string() && report["limit"]["before"].is_null(), "{limit}");
    let printed = text(&run(&arguments).stdout);
    assert!(printed.contains("\nLimit at the end, ") && printed.contains("trial "), "{printed}");
    let fixed = json(&[&replayed[..], &["--concurrency", "100"]].concat());
    assert!(fixed["limit"].is_null(), "a number that was set");
}

/// TL-3, TL-38
#[test]
fn a_classification_that_differs_is_a_finding() {
    let folder = TempDir::new().unwrap();
    let other = folder.path().join("other.yaml");
    let schema = "\
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: everybody}
spec:
  priorityLevelConfiguration: {name: catch-all}
  matchingPrecedence: 2
  rules:
  - subjects: [{kind: User, user: {name: '*'}}]
    resourceRules: [{verbs: ['*'], apiGroups: ['*'], resources: ['*'], namespaces: ['*'], clusterScope: true}]
";
    fs::write(&other, schema).unwrap();
    let (audit, truth) = (recorded("audit.jsonl"), recorded("httplog.txt"));
    let output = run(&["replay", &audit, "--objects", other.to_str().unwrap(), "--truth", &truth]);
    assert_eq!(output.status.code(), Some(1));
    let printed = text(&output.stdout);
    let line = printed.lines().find(|line| line.contains("batch-runner list")).unwrap();
    assert!(line.ends_with(": everybody in catch-all instead of batch in batch"), "{line}");
    assert!(printed.contains("requests agree with the server"), "{printed}");
}

/// TL-2, TL-36
#[test]
fn standard_input_and_damaged_lines() {
    let objects = recorded("objects.json");
    let mut child = evenkeel(&["replay", "-", "--objects", &objects, "-o", "json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let event = r#"{"auditID":"a","stage":"ResponseComplete","requestURI":"/a","verb":"get","user":{"username":"u"},"requestReceivedTimestamp":"2026-11-16T10:51:10Z","stageTimestamp":"2026-11-16T10:51:11Z"}"#;
    write!(child.stdin.take().unwrap(), "{event}\nnonsense\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &report["requests"], &report["damaged"]), (Some(0), &1.into(), &1.into()));
    let damaged = &report["damagedLines"][0];
    assert_eq!((&damaged["log"], &damaged["number"]), (&"standard input".into(), &2.into()));
    assert_eq!(damaged["reason"], "expected an object at byte 0");
}

#[test]
fn what_cannot_be_done_is_said_in_one_sentence() {
    let folder = TempDir::new().unwrap();
    let diary = folder.path().join("diary.txt").to_str().unwrap().to_owned();
    fs::write(&diary, "Dear diary,\n").unwrap();
    let (audit, objects) = (recorded("audit.jsonl"), recorded("objects.json"));
    for (arguments, complaint) in [
        (&["no-such.log", "--objects", &objects][..], "cannot read no-such.log: No such file or directory"),
        (&[&diary, "--objects", &objects], "cannot tell what kind of log"),
        (&[&audit, "--objects", "no-such.yaml"], "cannot read no-such.yaml"),
        (&[&audit, "--objects", &objects, "--format", "hello"], "--format cannot be used: the format has no $variable"),
        (&[&audit, "--objects", &objects, "--truth", &audit], "does not contain flow schemas"),
        (&[&audit, "--objects", &objects, "--object-counts", &diary], "\"Dear diary,\" is neither"),
        (&[&audit, "--objects", &objects, "--wait-limit", "soon"], "it must be a time"),
        (&[&audit], "--objects"),
    ] {
        let output = run(&[&["replay"], arguments].concat());
        let said = text(&output.stderr);
        assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{arguments:?}: {said}");
        assert!(said.contains(complaint), "{arguments:?}: {said}");
    }
}

#[test]
fn the_report_is_one_page_with_its_pictures_inside() {
    let folder = TempDir::new().unwrap();
    let page = folder.path().join("report.html").to_str().unwrap().to_owned();
    let (audit, objects) = (recorded("audit.jsonl"), recorded("objects.json"));
    let output = run(&["replay", &audit, "--objects", &objects, "--concurrency", "28", "--report", &page]);
    assert_eq!(output.status.code(), Some(0));
    let html = fs::read_to_string(page).unwrap();
    for part in ["Rejected requests by flow", "Wait by flow", "Seats of batch", "batch/batch-runner", "</html>"] {
        assert!(html.contains(part), "{part}");
    }
    let addresses = html.replace("http://www.w3.org/", "");
    assert!(!addresses.contains("http://") && !addresses.contains("https://"), "it needs a network");
}

// === The log of a gateway ===

/// A level with short queues, so that requests wait and are rejected.
const OBJECTS: &str = include_str!("../../../replay/tests/objects/tenants.yaml");

const SEATS: &str = "4";
const SERVICE_TIME: Duration = Duration::from_millis(40);
const LOAD: Duration = Duration::from_secs(6);

/// A service that takes its time.
fn slow_service() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || {
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
                while lines.next().is_some() {
                    lines.by_ref().take_while(|line| !line.is_empty()).for_each(drop);
                    thread::sleep(SERVICE_TIME);
                    if (&stream).write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").is_err() {
                        break;
                    }
                }
            });
        }
    });
    address
}

/// A client that sends one request after the other, and pauses after each.
fn client(gateway: SocketAddr, user: &'static str, pause: Duration) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        let mut stream = TcpStream::connect(gateway).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let until = Instant::now() + LOAD;
        let mut response = [0; 4096];
        while Instant::now() < until {
            write!(stream, "GET /{user} HTTP/1.1\r\nHost: test\r\nX-Remote-User: {user}\r\n\r\n").unwrap();
            let mut head = Vec::new();
            // Responses are short, and end with `ok` or with the text of a rejection.
            while !is_whole(&head) {
                let read = stream.read(&mut response).unwrap();
                assert!(read > 0, "the gateway closed the connection");
                head.extend_from_slice(&response[..read]);
            }
            thread::sleep(pause);
        }
    })
}

/// Whether a response is there as a whole.
fn is_whole(response: &[u8]) -> bool {
    let text = String::from_utf8_lossy(response);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ").map(str::to_owned));
    length.is_some_and(|length| body.len() >= length.trim().parse().unwrap())
}

/// Runs a gateway under load, and returns its access log.
fn access_log(folder: &TempDir) -> PathBuf {
    let name = |name: &str| folder.path().join(name);
    fs::write(name("objects.yaml"), OBJECTS).unwrap();
    let settings = format!(
        "listen: [{{address: 127.0.0.1:0}}]\nadmin: {{address: 127.0.0.1:0}}\nupstreams: [{{url: 'http://{}'}}]\n\
         concurrency: {SEATS}\nobjects: {}\nlog: {{access: json, accessFile: {}}}\n\
         identity: {{sources: [{{trustedHeaders: {{fromAddresses: [127.0.0.0/8], userHeader: x-remote-user}}}}]}}\n",
        slow_service(),
        name("objects.yaml").display(),
        name("access.log").display(),
    );
    fs::write(name("evenkeel.yaml"), settings).unwrap();
    let mut gateway = Running::start(&["serve", "--config", name("evenkeel.yaml").to_str().unwrap()]);
    let address = address_after(&gateway.line_with("ready: "), "listening on ");
    let greedy = (0..16).map(|_| client(address, "greedy", Duration::from_millis(30)));
    let polite = (0..3).map(|_| client(address, "polite", Duration::from_millis(100)));
    let clients: Vec<_> = greedy.chain(polite).collect();
    for client in clients {
        client.join().unwrap();
    }
    gateway.signal("TERM");
    assert!(gateway.end().0.success());
    name("access.log")
}

/// TL-32, TL-40
#[test]
fn the_log_of_a_gateway_replays_as_it_was() {
    let folder = TempDir::new().unwrap();
    let log = access_log(&folder);
    let objects = folder.path().join("objects.yaml");
    let (log, objects) = (log.to_str().unwrap(), objects.to_str().unwrap());
    let report = json(&["replay", log, "--objects", objects, "--concurrency", SEATS]);
    let requests = &report["requests"];
    assert_eq!(report["classification"]["agree"], report["classification"]["compared"]);
    let (mut recorded_rejections, mut replayed_rejections) = (0, 0);
    for flow in report["flows"].as_array().unwrap() {
        recorded_rejections += flow["recorded"]["rejected"].as_u64().unwrap();
        let by_reason = flow["after"]["rejected"].as_object().unwrap();
        replayed_rejections += by_reason.values().map(|number| number.as_u64().unwrap()).sum::<u64>();
        let [recorded, replayed] =
            [&flow["recorded"], &flow["after"]].map(|side| side["wait"]["p99"].as_f64().unwrap());
        let figures = format!("{}: p99 of the wait {recorded} ms and {replayed} ms", flow["after"]["flow"]);
        eprintln!("{figures}");
        assert!((recorded - replayed).abs() <= 0.15 * recorded, "{figures}");
    }
    let figures = format!("{requests} requests, {recorded_rejections} and {replayed_rejections} rejected");
    eprintln!("{figures}");
    assert!(recorded_rejections > 100, "{figures}");
    assert!(recorded_rejections.abs_diff(replayed_rejections) * 100 <= 2 * recorded_rejections, "{figures}");
}

/// FR-3: a dump is replayed alone, under its own objects and under others; what is for logs is refused.
#[test]
fn a_dump_is_replayed_under_a_settings_file() {
    let (upstream, folder) = (Upstream::start(), TempDir::new().unwrap());
    let ports = ["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--concurrency", "9"];
    let mut gateway = Running::start(&[&["serve", "--upstream", &upstream.url()], &ports[..]].concat());
    let line = gateway.line_with("ready: ");
    let (address, admin) = (address_after(&line, "listening on "), address_after(&line, "admin on "));
    for number in 0..20 {
        assert_eq!(get(address, &format!("/{number}")).0, 200);
    }
    let mut stream = TcpStream::connect(admin).unwrap();
    write!(stream, "GET /debug/flight HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let body = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap() + 4;
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (dump, settings, other) = (path("incident.ekf"), path("evenkeel.yaml"), path("other.yaml"));
    fs::write(&dump, &answer[body..]).unwrap();
    let form = "levels: {a: {share: 1}}\nmatch: [{level: a}]\n";
    fs::write(&settings, format!("concurrency: 3\n{form}")).unwrap();
    fs::write(&other, form.replace("level: a", "level: b").replace("{a:", "{b:")).unwrap();
    let replay = |flags: &[&str]| {
        let output = run(&[&["replay", &dump], flags].concat());
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let levels = |flags: &[&str]| {
        let (code, page, complaint) = replay(flags);
        assert_eq!(code, Some(0), "{complaint}");
        let report: Value = serde_json::from_str(&page).unwrap();
        let levels = report["levels"].as_array().unwrap();
        ["a", "b", "everyone"].map(|name| levels.iter().any(|level| level["name"] == name))
    };
    assert_eq!(levels(&["-o", "json"]), [false, false, true]);
    assert_eq!(levels(&["-o", "json", "--config", &settings]), [true, false, true]);
    assert_eq!(levels(&["-o", "json", "--config", &settings, "--against", &other]), [true, true, false]);
    assert_eq!(levels(&["-o", "json", "--against", &other]), [false, true, true]);
    for (flags, told) in [
        (&["--truth", &settings][..], "it has the decisions of its gateway; leave out --truth\n"),
        (&["--format", "$remote_user"], "its format is known; leave out --format\n"),
        (&["--object-counts", &settings], "it has the seats that requests took; leave out --object-counts\n"),
        (&["--context", "production"], "name others with --objects; leave out --context and --kubeconfig\n"),
        (&[&dump], "is a dump of the flight recorder, which is replayed alone; name one dump at a time\n"),
        (&[&settings], "is a dump of the flight recorder, which is replayed alone; name one dump at a time\n"),
    ] {
        let (code, _, complaint) = replay(flags);
        assert_eq!(code, Some(2), "{flags:?}");
        assert!(complaint.contains("incident.ekf") && complaint.ends_with(told), "{complaint}");
    }
}

#[test]
fn a_damaged_dump_is_not_taken_for_a_log() {
    let folder = TempDir::new().unwrap();
    for (content, expected) in
        [("something else", "this is not a dump of a flight recorder"), ("", "the dump ends here")]
    {
        let dump = folder.path().join("incident.ekf");
        fs::write(&dump, content).unwrap();
        for command in ["replay", "simulate"] {
            let output = run(&[command, dump.to_str().unwrap()]);
            let told = text(&output.stderr);
            assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{told}");
            assert!(told.contains("incident.ekf: byte 0: ") && told.contains(expected), "{told}");
        }
    }
}

// === A dump of the flight recorder ===

/// Twenty times, a greedy tenant has the only seat, and a polite one waits for it. At last there is a crowd.
fn dump(folder: &TempDir) -> String {
    let clock = ManualClock::new();
    let objects = "{levels: {all: {share: 1, queue: 3, perClient: 3, wait: 10s}}, match: [{level: all}]}";
    let flow = FlowControl::builder().server_concurrency(1).objects(objects).manual_clock(clock.clone()).build();
    flow.record(1 << 20);
    let arrive = |user: &str| {
        let (user, request) = (User::new(user, [""; 0]), RequestInfo::for_path("get", "/orders"));
        flow.arrive(Attributes { user: &user, request: &request }, WorkEstimate::ONE_SEAT)
    };
    let permit = |arrived: &mut evenkeel::request::Arrived| match Pin::new(arrived)
        .poll(&mut Context::from_waker(Waker::noop()))
    {
        Poll::Ready(permit) => permit.unwrap(),
        Poll::Pending => panic!("it waits"),
    };
    for _ in 0..20 {
        let (mut greedy, mut polite) = (arrive("greedy"), arrive("polite"));
        let running = permit(&mut greedy);
        clock.advance(Duration::from_millis(100));
        drop(running);
        let running = permit(&mut polite);
        clock.advance(Duration::from_millis(10));
        drop(running);
        clock.advance(Duration::from_millis(5));
    }
    flow.set_server_concurrency(2);
    let crowd: Vec<_> = (0..8).map(|_| arrive("polite")).collect();
    clock.advance(Duration::from_millis(1));
    drop(crowd);
    let file = folder.path().join("incident.ekf");
    fs::write(&file, flow.flight(Duration::from_secs(60), "a test").unwrap().to_bytes()).unwrap();
    file.to_str().unwrap().to_owned()
}

/// FR-3
#[test]
fn fr_3_a_dump_tells_what_happened_and_who_delayed_whom() {
    let folder = TempDir::new().unwrap();
    let (dump, page) = (dump(&folder), folder.path().join("report.html"));
    let output = run(&["replay", &dump, "--report", page.to_str().unwrap()]);
    let printed = text(&output.stdout);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()), "{printed}");
    let told = [
        "48 requests in 2.3 s",
        "first rejection after 2.300 s: polite in level all (queue-full)",
        "last change before it, after 2.300 s: 1 seats became 2",
        "What happened",
        "Who used what",
        "Who delayed whom",
        "greedy 99 %",
        "Decided again under its own objects: ",
    ];
    let html = fs::read_to_string(page).unwrap();
    for part in told {
        assert!(printed.contains(part), "{part}: {printed}");
        assert!(html.contains(part), "{part}: {html}");
    }

    let report = json(&["replay", &dump]);
    let incident = &report["incident"];
    assert_eq!(
        (&incident["requests"], &incident["isComplete"], &incident["missed"]),
        (&48.into(), &true.into(), &0.into())
    );
    assert_eq!(incident["firstRejection"]["lastChange"]["what"], "1 seats became 2");
    let parts = incident["timeLine"].as_array().unwrap();
    assert_eq!(parts.iter().map(|part| part["arrived"].as_u64().unwrap()).sum::<u64>(), 48);
    let used = &incident["usage"][0];
    assert_eq!(
        (&used["flow"], &used["level"], &used["costs"]),
        (&"greedy".into(), &"all".into(), &serde_json::json!({}))
    );
    assert!(used["seatSeconds"].as_f64() > Some(1.9), "{used}");
    let delay = &incident["delays"][0];
    assert_eq!((&delay["flow"], &delay["by"][0]["flow"]), (&"polite".into(), &"greedy".into()));
    let [waited, by] = [&delay["waited"], &delay["by"][0]["seconds"]].map(|seconds| seconds.as_f64().unwrap());
    assert!((waited - 2.0).abs() < 0.01 && (by - 2.0).abs() < 0.05, "{delay}");
    assert_eq!(incident["agreement"]["same"], incident["agreement"]["requests"], "{incident}");

    // Under other objects, and as a workload.
    let other = folder.path().join("other.yaml");
    fs::write(&other, "{levels: {all: {share: 1, queue: 50}}, match: [{level: all}]}").unwrap();
    let compared = json(&["replay", &dump, "--objects", other.to_str().unwrap()]);
    assert!(compared["flows"][0]["before"].is_object() && compared["incident"].is_object());
    assert_eq!(run(&["simulate", &dump]).status.code(), Some(0));
}

/// What requests cost is told beside their seats.
#[test]
fn fr_3_a_dump_tells_what_requests_cost() {
    let (folder, clock) = (TempDir::new().unwrap(), ManualClock::new());
    let objects = "{levels: {all: {share: 1}}, match: [{level: all, cost: tokens}]}";
    let flow = FlowControl::builder().server_concurrency(9).objects(objects).manual_clock(clock.clone()).build();
    flow.record(1 << 20);
    for (name, cost) in [("alice", 1200.0), ("alice", 300.0), ("bob", 7.25)] {
        let (user, request) = (User::new(name, [""; 0]), RequestInfo::for_path("post", "/generate"));
        let mut arrived = flow.arrive(Attributes { user: &user, request: &request }, WorkEstimate::ONE_SEAT);
        let permit = Pin::new(&mut arrived).poll(&mut Context::from_waker(Waker::noop()));
        let Poll::Ready(Ok(permit)) = permit else { panic!("{permit:?}") };
        clock.advance(Duration::from_millis(500));
        permit.set_cost(cost);
    }
    let file = folder.path().join("incident.ekf");
    fs::write(&file, flow.flight(Duration::from_secs(60), "a test").unwrap().to_bytes()).unwrap();
    let (file, page) = (file.to_str().unwrap(), folder.path().join("report.html"));
    let printed = text(&run(&["replay", file, "--report", page.to_str().unwrap()]).stdout);
    let html = fs::read_to_string(page).unwrap();
    for cost in ["1,500 tokens", "7.25 tokens"] {
        assert!(printed.contains(cost) && html.contains(cost), "{printed}");
    }
    assert!(printed.contains("3 of 3 requests start"), "{printed}");
    let report = json(&["replay", file]);
    assert_eq!(report["incident"]["usage"][0]["costs"], serde_json::json!({"tokens": 1500.0}));
    assert_eq!(report["notes"]["untoldCosts"].as_u64().unwrap_or(0), 0, "{}", report["notes"]);
    assert_eq!(run(&["simulate", file]).status.code(), Some(0));
}

#[test]
fn fr_3_what_changed_before_the_first_request_is_told_as_such() {
    let (folder, clock) = (TempDir::new().unwrap(), ManualClock::new());
    let objects = "{levels: {all: {share: 1, reject: true}}, match: [{level: all}]}";
    let flow = FlowControl::builder().server_concurrency(1).objects(objects).manual_clock(clock.clone()).build();
    flow.record(1 << 20);
    flow.set_server_concurrency(2);
    clock.advance(Duration::from_secs(2));
    let (user, request) = (User::new("alice", [""; 0]), RequestInfo::for_path("get", "/orders"));
    let attributes = Attributes { user: &user, request: &request };
    let arrived: Vec<_> = (0..3).map(|_| flow.arrive(attributes, WorkEstimate::ONE_SEAT)).collect();
    drop(arrived);
    // The dump is taken long after the last request has ended, and there is nothing to tell of that time.
    clock.advance(Duration::from_secs(9));
    let file = folder.path().join("incident.ekf");
    fs::write(&file, flow.flight(Duration::from_secs(60), "a test").unwrap().to_bytes()).unwrap();
    let printed = text(&run(&["replay", file.to_str().unwrap()]).stdout);
    assert!(printed.contains("last change, 2.000 s before the first request: 1 seats became 2"), "{printed}");
    assert!(printed.starts_with("3 requests in 0.0 s, 1 rejected, 2 seats"), "{printed}");
}
