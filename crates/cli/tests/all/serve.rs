//! `evenkeel serve` as people run it: a process with real connections, files that change, and signals.

use crate::child;
use crate::peer;

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Instant;

use child::{PATIENCE, Running, address_after, run, text};
use peer::{Upstream, get};
use tempfile::TempDir;

/// Lets everything through.
const OPEN: &str = "\
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata:
  name: everybody
spec:
  priorityLevelConfiguration:
    name: exempt
  matchingPrecedence: 2
  rules:
  - subjects: [{kind: User, user: {name: '*'}}]
    nonResourceRules: [{verbs: ['*'], nonResourceURLs: ['*']}]
";

/// Under `kubernetes` it lets one request at a time through: it has no seats and can borrow none, but there is always room for one request.
const CLOSED: &str = "\
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata:
  name: closed
spec:
  type: Limited
  limited:
    nominalConcurrencyShares: 0
    lendablePercent: 0
    borrowingLimitPercent: 0
    limitResponse: {type: Reject}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata:
  name: everybody
spec:
  priorityLevelConfiguration:
    name: closed
  matchingPrecedence: 2
  rules:
  - subjects: [{kind: User, user: {name: '*'}}]
    nonResourceRules: [{verbs: ['*'], nonResourceURLs: ['*']}]
";

/// A gateway that is ready.
struct Served {
    gateway: Running,
    address: SocketAddr,
    admin: SocketAddr,
}

fn serve(upstream: &Upstream, more: &[&str]) -> Served {
    let url = upstream.url();
    let ports = ["serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--upstream", &url];
    let mut gateway = Running::start(&[&ports, more].concat());
    let line = gateway.line_with("ready: ");
    let (address, admin) = (address_after(&line, "listening on "), address_after(&line, "admin on "));
    Served { gateway, address, admin }
}

/// Waits for what a change of the objects brings about.
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < until, "it never came to this: {what}");
    }
}

/// All at once: a file that is followed must not be read while it is empty, which is no mistake.
fn write(folder: &TempDir, name: &str, text: &str) {
    let unseen = folder.path().join(format!(".{name}"));
    fs::write(&unseen, text).unwrap();
    fs::rename(unseen, folder.path().join(name)).unwrap();
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn it_says_where_it_listens_and_passes_requests_on() {
    let upstream = Upstream::start();
    let served = serve(&upstream, &[]);
    assert_eq!(get(served.address, "/a?b=c"), (200, "upstream saw /a?b=c\n".to_owned()));
    assert_eq!([get(served.admin, "/livez").0, get(served.admin, "/readyz").0], [200, 200]);
    assert!(get(served.admin, "/metrics").1.contains("apiserver_flowcontrol_"));
}

/// AL-3, AL-7
#[test]
fn a_limit_that_nobody_chose_is_told() {
    let upstream = Upstream::start();
    for (flags, is_told) in [
        (&[][..], true),
        (&["--concurrency", "auto"], false),
        (&["--concurrency", "5"], false),
        (&["--preset", "kubernetes"], false),
    ] {
        let mut served = serve(&upstream, flags);
        served.gateway.signal("TERM");
        served.gateway.end();
        let said = served.gateway.rest();
        let told = "`concurrency` is not set, so the gateway finds out how many requests the service can process at a time: it starts with 20 seats";
        assert_eq!(said.contains(told), is_told, "{flags:?}: {said}");
    }
}

#[test]
fn curl_gets_its_answer() {
    let upstream = Upstream::start();
    let served = serve(&upstream, &[]);
    let curl = Command::new("curl").args(["-sS", &format!("http://{}/from-curl", served.address)]).output();
    let Ok(curl) = curl else {
        return evenkeel_missing_tool::skip("curl is not installed");
    };
    assert_eq!((text(&curl.stdout), text(&curl.stderr)), ("upstream saw /from-curl\n".to_owned(), String::new()));
}

#[test]
fn an_edit_of_the_objects_governs_and_a_mistake_changes_nothing() {
    let upstream = Upstream::start();
    let objects = TempDir::new().unwrap();
    write(&objects, "everybody.yaml", OPEN);
    let Served { mut gateway, address, admin } =
        serve(&upstream, &["--preset", "kubernetes", "--objects", path(objects.path())]);
    assert_eq!(get(address, "/").0, 200);

    write(&objects, "everybody.yaml", CLOSED);
    let levels = || get(admin, "/debug/api_priority_and_fairness/dump_priority_levels").1;
    // Only what governs is measured.
    assert!(!get(admin, "/metrics").1.contains("priority_level=\"global-default\""));
    wait_until("there is a level `closed`", || levels().contains("closed"));
    let slow = thread::spawn(move || get(address, "/slow").0);
    upstream.slow_request();
    assert_eq!(get(address, "/").0, 429);

    write(&objects, "everybody.yaml", &OPEN.replace("matchingPrecedence", "precedence"));
    let line = gateway.line_with("everybody.yaml:8:3");
    assert!(line.contains("precedence"), "{line}");
    assert_eq!(get(address, "/").0, 429, "a mistake must change nothing");
    let is_refused = |flag: &str| get(admin, "/metrics").1.contains(&format!("\nevenkeel_objects_refused {flag}\n"));
    assert!(is_refused("1"));

    write(&objects, "everybody.yaml", OPEN);
    wait_until("all are let through", || get(address, "/").0 == 200);
    wait_until("the objects are in effect", || is_refused("0"));
    upstream.let_go();
    assert_eq!(slow.join().unwrap(), 200);
}

#[test]
fn under_plain_a_level_without_seats_lets_nobody_in() {
    let upstream = Upstream::start();
    let objects = TempDir::new().unwrap();
    write(&objects, "everybody.yaml", &CLOSED.replace("verbs: ['*']", "verbs: [post]"));
    let served = serve(&upstream, &["--objects", path(objects.path())]);
    assert_eq!(get(served.address, "/").0, 200);
    let post = || {
        let mut stream = TcpStream::connect(served.address).unwrap();
        stream.write_all(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    for _ in 0..3 {
        let answer = post();
        assert!(answer.starts_with("HTTP/1.1 429 "), "{answer}");
    }
}

#[test]
fn too_few_seats_for_the_suggested_objects_are_told() {
    for more in [
        &["--concurrency", "12", "--preset", "kubernetes"][..],
        &["--concurrency", "13", "--preset", "kubernetes"],
        &["--concurrency", "12"],
    ] {
        let arguments =
            ["serve", "--listen", "127.0.0.1:0", "--admin-listen", "none", "--upstream", "http://127.0.0.1:1"];
        let mut gateway = Running::start(&[&arguments, more].concat());
        gateway.line_with("ready: ");
        assert_eq!(
            gateway.said().iter().any(|line| line.contains("--objects")),
            more[1..] == ["12", "--preset", "kubernetes"],
            "{more:?}"
        );
        gateway.signal("TERM");
        assert!(gateway.end().0.success());
    }
}

#[test]
fn it_warns_if_clients_may_take_more_memory_than_there_is() {
    let folder = TempDir::new().unwrap();
    write(&folder, "evenkeel.yaml", "limits: {connections: 4000000000}\n");
    let settings = folder.path().join("evenkeel.yaml");
    let settings = settings.to_str().unwrap();
    let arguments = ["--listen", "127.0.0.1:0", "--admin-listen", "none", "--upstream", "http://127.0.0.1:1"];
    let mut gateway = Running::start(&[&["serve", "--config", settings], &arguments[..]].concat());
    let warning = gateway.line_with("of memory by limits.connections");
    assert!(warning.contains("limits.connections (4000000000) and limits.bufferBytes (134217728)"), "{warning}");
    gateway.signal("TERM");
    assert!(gateway.end().0.success());
}

#[test]
fn with_few_open_files_it_warns_refuses_clients_and_stays_alive() {
    let upstream = Upstream::start();
    let script = format!(
        "ulimit -n 256; exec {} serve --listen 127.0.0.1:0 --admin-listen 127.0.0.1:0 --concurrency 9999 --upstream {}",
        env!("CARGO_BIN_EXE_evenkeel"),
        upstream.url()
    );
    let mut gateway = Running::spawn(Command::new("sh").args(["-c", &script]).env("NO_COLOR", "1"));
    let warning = gateway.line_with("open files");
    assert!(warning.contains("the limit of open files is 256, but limits.connections (65536)"), "{warning}");
    let line = gateway.line_with("ready: ");
    let (address, admin) = (address_after(&line, "listening on "), address_after(&line, "admin on "));
    let open = |count| (0..count).map(|_| TcpStream::connect(address).unwrap()).collect::<Vec<_>>();
    let first = open(1);
    // Each worker accepts for itself, so that one that is slow could accept it after all others.
    wait_until("the first is accepted", || get(admin, "/metrics").1.contains("\nevenkeel_connections 1\n"));
    let others = open(400);
    for _ in 0..20 {
        assert_eq!(get(admin, "/livez").0, 200);
    }
    // Whoever is connected is served: there are descriptors left for the upstream.
    assert_eq!(peer::get_on(&first[0], "/a"), (200, "upstream saw /a\n".to_owned()));
    // Those that are refused are told so.
    let refused = || others.iter().any(|stream| peer::has_status(stream, 503));
    wait_until("some are refused", refused);
    // Connections to the upstream take what is left: only those that are kept for the admin endpoint remain.
    for mut stream in &others {
        // Those that were refused are closed already.
        let _ = stream.write_all(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    wait_until("no connection can be opened", || others.iter().any(|stream| peer::has_status(stream, 502)));
    for _ in 0..20 {
        assert_eq!(get(admin, "/livez").0, 200);
    }
    for _ in &others {
        upstream.let_go();
    }
    drop((first, others));
    wait_until("it serves everybody again", || get(address, "/b").0 == 200);
    gateway.signal("TERM");
    assert_eq!(gateway.end().0.code(), Some(0));
    let said = gateway.rest();
    let lines = said.lines().filter(|line| line.contains("accept") || line.contains("refused")).count();
    // One for each listener of a worker and each ten seconds.
    assert!((1..100).contains(&lines), "{lines} lines: {said}");
}

#[test]
fn it_finishes_what_has_begun_before_it_ends() {
    let upstream = Upstream::start();
    let Served { mut gateway, address, admin: _ } = serve(&upstream, &[]);
    let slow = thread::spawn(move || get(address, "/slow"));
    upstream.slow_request();
    gateway.signal("TERM");
    gateway.line_with("shutting down");
    upstream.let_go();
    assert_eq!(slow.join().unwrap(), (200, "upstream saw /slow\n".to_owned()));
    let (status, output) = gateway.end();
    assert_eq!((status.code(), output.as_str()), (Some(0), ""), "{}", gateway.rest());
}

#[test]
fn health_is_an_exit_code() {
    let upstream = Upstream::start();
    let Served { mut gateway, address, admin } = serve(&upstream, &[]);
    let url = format!("http://{admin}");
    let health = || run(&["health", &url]);

    let ready = health();
    let printed = (ready.status.code(), text(&ready.stdout), text(&ready.stderr));
    assert_eq!(printed, (Some(0), format!("{url} is ready\n"), String::new()));

    let slow = thread::spawn(move || get(address, "/slow"));
    upstream.slow_request();
    gateway.signal("TERM");
    gateway.line_with("shutting down");
    let draining = health();
    assert_eq!((draining.status.code(), text(&draining.stdout)), (Some(1), String::new()));
    let why = text(&draining.stderr);
    assert!(why.starts_with(&format!("evenkeel: {url} is not ready: 503 ")), "{why}");
    upstream.let_go();
    assert_eq!(slow.join().unwrap().0, 200);
    gateway.end();

    let gone = health();
    let why = text(&gone.stderr);
    assert_eq!(gone.status.code(), Some(1));
    assert!(why.starts_with(&format!("evenkeel: cannot read from {url}: ")), "{why}");
    assert_eq!(run(&["health", "gateway:9901"]).status.code(), Some(2));
}

#[test]
fn requests_that_a_drain_cuts_off_end_it_with_code_3() {
    let upstream = Upstream::start();
    let folder = TempDir::new().unwrap();
    let settings = folder.path().join("evenkeel.yaml");
    fs::write(&settings, "timeouts: {drain: 300ms, drainNotice: 0s}\n").unwrap();
    // Which of the two workers gets the request differs from run to run.
    for _ in 0..6 {
        let mut served = serve(&upstream, &["--workers", "2", "--config", path(&settings)]);
        let _stuck = peer::send(served.address, "/slow");
        upstream.slow_request();
        served.gateway.signal("TERM");
        let (status, _) = served.gateway.end();
        let said = served.gateway.rest();
        assert_eq!(status.code(), Some(3), "{said}");
        assert!(said.contains("1 requests had not finished in time") && !said.contains("panicked"), "{said}");
    }
}

#[test]
fn an_interrupt_stops_it_too_and_whoever_insists_ends_it_at_once() {
    let upstream = Upstream::start();
    let Served { mut gateway, address, admin: _ } = serve(&upstream, &[]);
    let slow = thread::spawn(move || std::panic::catch_unwind(|| get(address, "/slow")));
    upstream.slow_request();
    gateway.signal("INT");
    gateway.line_with("shutting down");
    assert_eq!(gateway.insist("INT").code(), Some(3), "{}", gateway.rest());
    // Its connection is cut, or it is told so; it is not left hanging.
    let _ = slow.join().unwrap();
}

#[test]
fn names_can_be_listened_on_and_localhost_is_this_machine() {
    let upstream = Upstream::start();
    let url = upstream.url();
    let listen = ["--listen", "localhost:0", "--admin-listen", "localhost:0"];
    let mut gateway = Running::start(&[&["serve", "--upstream", &url], &listen[..]].concat());
    let line = gateway.line_with("ready: ");
    let listening = line.split("listening on ").nth(1).unwrap().split(", forwarding to").next().unwrap();
    let addresses: Vec<SocketAddr> = listening.split(", ").map(|address| address.parse().unwrap()).collect();
    for address in addresses {
        assert!(address.ip().is_loopback(), "{line}");
        assert_eq!(get(address, "/a"), (200, "upstream saw /a\n".to_owned()), "{line}");
    }
    assert_eq!(get(address_after(&line, "admin on "), "/livez").0, 200);
    gateway.signal("TERM");
    assert!(gateway.end().0.success());
}

#[test]
fn a_folder_without_objects_is_a_warning() {
    let upstream = Upstream::start();
    let folder = TempDir::new().unwrap();
    let served = serve(&upstream, &["--objects", path(folder.path()), "--log-filter", "warn,evenkeel_cli=info"]);
    let warning = format!(
        "no objects found in {}: all clients share one priority level without queues; add manifests or remove --objects",
        folder.path().display()
    );
    let said = served.gateway.said();
    assert!(said.iter().any(|line| line.contains("WARN") && line.ends_with(&warning)), "{said:?}");
}

#[test]
fn settings_are_followed_and_wrong_ones_change_nothing() {
    let upstream = Upstream::start();
    let folder = TempDir::new().unwrap();
    write(&folder, "evenkeel.yaml", "concurrency: 70\n");
    let settings = folder.path().join("evenkeel.yaml");
    let mut served = serve(&upstream, &["--config", path(&settings), "--log-filter", "info"]);
    let in_effect = |setting: &str| get(served.admin, "/config").1.contains(setting);

    served.gateway.signal("HUP");
    served.gateway.line_with("settings not changed");
    // Flags override the file after a reload too.
    write(
        &folder,
        "evenkeel.yaml",
        "{concurrency: 80, timeouts: {idle: 70s}, upstreams: [{url: http://a:1}], log: {filter: error}}\n",
    );
    let line = served.gateway.line_with("settings reloaded");
    assert!(line.ends_with("settings reloaded; changed: concurrency, timeouts.idle"), "{line}");
    assert!(in_effect("concurrency: 80") && in_effect("idle: 1m10s") && in_effect(&upstream.url()));
    write(&folder, "evenkeel.yaml", "{concurrency: 90, workers: 3, timeouts: {idle: 70s}}\n");
    let line = served.gateway.line_with("restart to apply");
    assert!(line.ends_with("restart to apply: workers"), "{line}");
    assert!(in_effect("concurrency: 90"));
    write(&folder, "evenkeel.yaml", "concurency: 80\n");
    let line = served.gateway.line_with("the previous settings stay in effect");
    assert!(
        line.contains("evenkeel.yaml:1:1: concurency: unknown setting `concurency`; did you mean `concurrency`?"),
        "{line}"
    );
    // What can be read need not be right.
    write(&folder, "evenkeel.yaml", "workers: 0\ntimeouts:\n  idle: 5s\n  queue: 2h\nconcurrency: 0\n");
    let line = served.gateway.line_with("the previous settings stay in effect");
    for problem in [
        "evenkeel.yaml:4:3: timeouts.queue: ",
        "evenkeel.yaml:5:1: concurrency: must be",
        "evenkeel.yaml:1:1: workers: must",
    ] {
        assert!(line.contains(problem), "{problem} is not in {line}");
    }
    assert!(in_effect("concurrency: 90"));
    served.gateway.signal("HUP");
    served.gateway.line_with("the previous settings stay in effect");
    let refused = get(served.admin, "/metrics").1;
    assert!(refused.contains("evenkeel_settings_changes_total{outcome=\"refused\"} 3"), "{refused}");
    assert!(refused.contains("\nevenkeel_settings_refused 1\n"), "{refused}");
    assert_eq!(get(served.address, "/").0, 200);
    // A mistake that is undone changes no setting, and is over all the same.
    write(&folder, "evenkeel.yaml", "{concurrency: 90, timeouts: {idle: 70s}}\n");
    let is_over = || get(served.admin, "/metrics").1.contains("\nevenkeel_settings_refused 0\n");
    wait_until("the settings are accepted", is_over);
    write(&folder, "evenkeel.yaml", "concurrency: 0\n");
    wait_until("the settings are refused", || !is_over());
    write(&folder, "evenkeel.yaml", "concurrency: 60\n");
    wait_until("other settings are accepted", is_over);
    assert!(in_effect("concurrency: 60"));
}

#[test]
fn logs_are_json_if_asked_for() {
    let upstream = Upstream::start();
    let url = upstream.url();
    let mut gateway = Running::start(&[
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--admin-listen",
        "none",
        "--upstream",
        &url,
        "--log-format",
        "json",
    ]);
    let line = gateway.line_with("ready: ");
    assert!(serde_json::from_str::<serde_json::Value>(&line).is_ok(), "{line}");
    assert!(line.contains("admin on none"), "{line}");
}

#[test]
fn printed_settings_read_back() {
    let folder = TempDir::new().unwrap();
    write(&folder, "evenkeel.yaml", "{concurrency: 7, timeouts: {idle: 1m30s}, workers: 2}");
    let file = folder.path().join("evenkeel.yaml");
    let printed = run(&[
        "serve",
        "--config",
        path(&file),
        "--upstream",
        "http://127.0.0.1:9000",
        "--workers",
        "3",
        "--print-config",
    ]);
    assert_eq!((printed.status.code(), text(&printed.stderr)), (Some(0), String::new()));
    let printed = text(&printed.stdout);
    for setting in ["concurrency: 7", "workers: 3", "idle: 1m30s", "http://127.0.0.1:9000"] {
        assert!(printed.contains(setting), "{setting} is not in\n{printed}");
    }
    write(&folder, "again.yaml", &printed);
    let again = run(&["serve", "--config", path(&folder.path().join("again.yaml")), "--print-config"]);
    assert_eq!(text(&again.stdout), printed);
}

#[test]
fn wrong_settings_are_printed_and_complained_about() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("evenkeel.yaml");
    for (settings, flags, code, complaint) in [
        ("{upstreams: [{url: http://a:1}], concurrency: 0}", &[][..], 2, "concurrency: must be at least 1"),
        ("{upstreams: [{url: http://a:1}], objects: on/another/machine.yaml}", &[], 0, ""),
        // With the API alone there is nothing that the settings of the gateway could be wrong for.
        ("{}", &[], 2, "upstreams: no upstream is configured"),
        ("{}", &["--api-only", "--data-dir", "data"], 0, ""),
    ] {
        write(&folder, "evenkeel.yaml", settings);
        let printed = run(&[&["serve", "--config", path(&file), "--print-config"], flags].concat());
        let said = text(&printed.stderr);
        assert_eq!(printed.status.code(), Some(code), "{settings}: {said}");
        assert_eq!((said.contains(complaint), said.is_empty()), (true, code == 0), "{settings}: {said}");
        assert!(text(&printed.stdout).contains("upstreams:"), "{settings}");
    }
}

/// A folder whose store was filled with the objects of a manifest, which were also copied.
fn folder_with_copy(upstream: &Upstream) -> TempDir {
    let (folder, objects) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    write(&objects, "everybody.yaml", CLOSED);
    let data = folder.path().join("data");
    let flags = ["--api-listen", "127.0.0.1:0", "--data-dir", path(&data), "--objects", path(objects.path())];
    let Served { mut gateway, .. } = serve(upstream, &flags);
    let copy = data.join("objects.copy");
    // The schema is applied after its level: a copy without it would let requests in.
    wait_until("there is a copy", || fs::read_to_string(&copy).is_ok_and(|text| text.contains("\"everybody\"")));
    gateway.signal("TERM");
    assert!(gateway.end().0.success(), "{}", gateway.rest());
    folder
}

#[test]
fn without_its_store_the_gateway_starts_with_the_last_copy_and_follows_the_store_when_it_is_back() {
    let upstream = Upstream::start();
    let folder = folder_with_copy(&upstream);
    let data = folder.path().join("data");
    let store = data.join("store.redb");
    let whole = fs::read(&store).unwrap();
    fs::write(&store, &whole[..whole.len() / 2]).unwrap();

    let Served { mut gateway, address, admin } =
        serve(&upstream, &["--api-listen", "127.0.0.1:0", "--data-dir", path(&data)]);
    let said = gateway.said().join("\n");
    assert!(said.contains("the gateway starts with the copy of revision") && said.contains("is damaged"), "{said}");
    // The level of the copy lets nobody in.
    assert_eq!(get(address, "/").0, 429);
    assert_eq!(get(admin, "/readyz"), (200, "ok".to_owned()));
    let ready = get(admin, "/readyz?verbose").1;
    assert!(ready.contains("[+]objects ok, but they may be out of date: the copy of revision"), "{ready}");
    assert!(get(admin, "/metrics").1.contains("\nevenkeel_objects_stale 1\n"));
    assert!(get(admin, "/metrics").1.contains("\nevenkeel_store_unavailable 1\n"));
    let levels = || get(admin, "/debug/api_priority_and_fairness/dump_priority_levels").1;
    assert!(levels().contains("closed"));

    fs::write(folder.path().join("restored"), &whole).unwrap();
    fs::rename(folder.path().join("restored"), &store).unwrap();
    gateway.output_until("API ready on https://");
    wait_until("the store is followed", || get(admin, "/metrics").1.contains("\nevenkeel_objects_stale 0\n"));
    assert!(get(admin, "/metrics").1.contains("\nevenkeel_store_unavailable 0\n"));
    assert!(get(admin, "/readyz?verbose").1.contains("[+]objects ok\n[+]store ok\n"));
    assert!(levels().contains("closed"));
    gateway.signal("TERM");
    assert_eq!(gateway.end().0.code(), Some(0), "{}", gateway.rest());
}

#[test]
fn without_its_store_and_without_a_copy_the_gateway_says_what_to_do() {
    let upstream = Upstream::start();
    let folder = folder_with_copy(&upstream);
    let data = folder.path().join("data");
    fs::write(data.join("store.redb"), fs::read(data.join("store.redb")).unwrap().split_at(5000).0).unwrap();
    let url = upstream.url();
    let start = || {
        let output = run(&["serve", "--listen", "127.0.0.1:0", "--upstream", &url, "--data-dir", path(&data)]);
        (output.status.code(), text(&output.stderr))
    };
    fs::write(data.join("objects.copy"), "evenkeel-objects 1 sha256:0\n{}\n").unwrap();
    let (code, said) = start();
    assert!(code == Some(1) && said.contains("its checksum does not match") && said.contains("is damaged"), "{said}");
    fs::remove_file(data.join("objects.copy")).unwrap();
    let (code, said) = start();
    assert!(
        code == Some(1) && said.contains("there is no copy of the objects") && said.contains("is damaged"),
        "{said}"
    );
    // What redb asserts of its file is in the error, and not printed before it.
    assert!(!said.contains("panicked at"), "{said}");
}

/// EP-6: without `--upstream` it only decides, opens no port for clients, and says where Envoy may ask.
#[test]
fn it_decides_for_an_envoy() {
    let mut gateway = Running::start(&["serve", "--ext-proc", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]);
    let line = gateway.line_with("ready: ");
    let (envoy, admin) = (address_after(&line, "deciding for Envoy on "), address_after(&line, "admin on "));
    assert!(!line.contains("listening on"), "{line}");
    assert!(get(admin, "/metrics").1.contains("evenkeel_ext_proc_requests_total{outcome=\"started\"} 0"));
    // It speaks HTTP/2 there: the first frame is that of its settings.
    let mut stream = TcpStream::connect(envoy).unwrap();
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").unwrap();
    let mut head = [0; 9];
    stream.read_exact(&mut head).unwrap();
    assert_eq!(head[3], 4);
    drop(stream);
    gateway.signal("TERM");
    assert!(gateway.end().0.success());
}

/// FR-2, FR-3: SIGUSR1 takes a dump, and the tools read it.
#[test]
fn fr_2_a_signal_takes_a_dump_that_the_tools_read() {
    let (upstream, folder) = (Upstream::start(), TempDir::new().unwrap());
    let settings = folder.path().join("evenkeel.yaml");
    let dumps = folder.path().join("dumps");
    fs::write(&settings, format!("flightRecorder: {{directory: '{}'}}\n", path(&dumps))).unwrap();
    let mut served = serve(&upstream, &["--config", path(&settings), "--concurrency", "5"]);
    for _ in 0..3 {
        assert_eq!(get(served.address, "/orders").0, 200);
    }
    served.gateway.signal("USR1");
    let line = served.gateway.line_with("flight recorder: wrote ");
    let dump = line.split("wrote ").nth(1).and_then(|rest| rest.split(" (").next()).unwrap();
    assert!(dump.starts_with(path(&dumps)) && dump.ends_with("-signal.ekf"), "{line}");
    for (command, told) in [("replay", "3 requests in "), ("simulate", "")] {
        let output = run(&[command, dump]);
        let printed = text(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{command}: {}", text(&output.stderr));
        assert!(printed.contains(told), "{printed}");
    }
}
