//! The example programs, run as users run them: what they print, and what their services answer.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The examples, each of which a test below runs.
const EXAMPLES: [&str; 4] = ["axum_tenants", "by_hand", "cookbook", "tonic_greeter"];

/// How long anything may take that a test waits for.
const PATIENCE: Duration = Duration::from_secs(60);

/// A program that is ended with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An example, which cargo builds with the tests.
fn example(name: &str) -> Command {
    let own = std::env::current_exe().unwrap();
    let program: PathBuf = own.ancestors().nth(2).unwrap().join("examples").join(name);
    assert!(
        program.exists(),
        "{} is missing: build it with `cargo build --examples --all-features`",
        program.display()
    );
    Command::new(program)
}

/// What an example prints that ends by itself, without a fault.
fn printed(name: &str) -> String {
    let output = example(name).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{name}: {}: {said}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

/// The status and the body of the response to a request to the service.
fn get(port: u16, path: &str, header: &str) -> (String, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{header}\r\n").unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().to_owned(), body.to_owned())
}

/// Waits until somebody listens.
fn wait_for(port: u16, running: &mut Running) {
    let until = Instant::now() + PATIENCE;
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(running.0.try_wait().unwrap().is_none(), "it has ended: is port {port} taken?");
        assert!(Instant::now() < until, "nobody listens on port {port}");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn no_example_is_forgotten() {
    let folder = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")).unwrap();
    let names = folder.map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned());
    assert_eq!(names.collect::<BTreeSet<_>>(), EXAMPLES.map(str::to_owned).into());
}

#[test]
fn by_hand() {
    let printed = printed("by_hand");
    let expected = "\
first job runs: Permit { flow_schema: \"jobs\", priority_level: \"jobs\" }
second job waits: true
first job has ended, and its seat lingers; second job waits: true
two seconds later; the next tick is due in 8s
second job runs
third job waits: true
fifteen seconds later, third job: too many requests (time-out), try again in ";
    let seconds = printed.strip_prefix(expected).unwrap_or_else(|| panic!("{printed}"));
    // Each process spreads its clients in a way of its own.
    assert!((1..=90).contains(&seconds.strip_suffix(" s\n").unwrap().parse::<u32>().unwrap()), "{printed}");
}

#[test]
fn tonic_greeter() {
    let printed = printed("tonic_greeter");
    let mut lines = printed.lines();
    assert_eq!(lines.next(), Some("Hello, Ada."));
    // Both ask at the same time, and one of them is the first.
    let mut both: Vec<&str> = lines.collect();
    both.sort_unstable();
    let [greeting, rejection] = both[..] else { panic!("{printed}") };
    assert!(["Hello, Ada.", "Hello, Grace."].contains(&greeting), "{printed}");
    // How long it should wait has a random part.
    let (told, pushback) = rejection.split_once("; grpc-retry-pushback-ms: Some(\"").unwrap();
    let seconds: u32 = pushback.strip_suffix("000\")").unwrap().parse().unwrap();
    let expected = format!("ResourceExhausted: too many requests (concurrency-limit), try again in {seconds} s");
    assert!(told == expected && (1..=4).contains(&seconds), "{rejection}");
}

/// Both listen on port 8080, so that one test runs them in turn.
#[test]
fn axum_tenants_and_cookbook() {
    axum_tenants();
    cookbook();
}

fn axum_tenants() {
    let mut running = Running(example("axum_tenants").stdout(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(running.0.stdout.take().unwrap()).lines();
    let printed: Vec<String> = lines.by_ref().take(7).map(Result::unwrap).collect();
    let expected = "\
One tenant, with a response after a second:
  curl -i -H 'X-Tenant: polite' http://127.0.0.1:8080/report
Another one that asks for too much. Some of its requests wait, and some get a 429:
  for i in $(seq 40); do
    curl -s -o /dev/null -w '%{http_code} ' -H 'X-Tenant: greedy' http://127.0.0.1:8080/report &
  done; wait
Meanwhile the first one waits for the next free seat at most, and is never rejected.";
    assert_eq!(printed.join("\n"), expected);
    let report = |tenant: &str| get(8080, "/report", &format!("X-Tenant: {tenant}\r\n"));
    assert_eq!(report("polite"), ("200".to_owned(), "done\n".to_owned()));
    thread::scope(|scope| {
        let greedy: Vec<_> = (0..40).map(|_| scope.spawn(|| report("greedy").0)).collect();
        let polite: Vec<_> = (0..2).map(|_| report("polite").0).collect();
        assert_eq!(polite, ["200", "200"]);
        let statuses: Vec<String> = greedy.into_iter().map(|asked| asked.join().unwrap()).collect();
        let count = |status: &str| statuses.iter().filter(|found| *found == status).count();
        assert!(count("200") >= 4 && count("429") >= 1 && count("200") + count("429") == 40, "{statuses:?}");
    });
}

fn cookbook() {
    let mut running = Running(example("cookbook").spawn().unwrap());
    wait_for(8080, &mut running);
    let key = |key: &str| format!("X-Api-Key: {key}\r\n");
    let answer = |status: &str, body: &str| (status.to_owned(), body.to_owned());
    assert_eq!(get(8080, "/healthz", ""), answer("200", "ok\n"));
    for known in ["key-of-acme", "key-of-zoe"] {
        assert_eq!(get(8080, "/orders", &key(known)), answer("200", "no orders\n"));
    }
    let (status, levels) = get(9901, "/debug/api_priority_and_fairness/dump_priority_levels", "");
    assert!(status == "200" && levels.starts_with("PriorityLevelName,"), "{status}: {levels}");
    drop(running);
}
