//! How fast logs are read and replayed, and in how much memory.

#![allow(clippy::unwrap_used, clippy::cast_precision_loss, clippy::print_stdout, reason = "a benchmark")]

mod by_serde;
mod incident;
mod repeated;

use std::fs::File;
use std::io::Read as _;
use std::process::ExitCode;
use std::thread;
use std::time::Instant;

use evenkeel::flight::Flight;
use evenkeel_api::Preset;
use evenkeel_api::decode::{Manifest, Strictness};
use evenkeel_bars::{Bar, Bars};
use evenkeel_engine::controller::Objects;
use evenkeel_replay::{Format, Incident, Input, Replay, Report, Settings, Users, objects_of};
use flate2::read::MultiGzDecoder;

use by_serde::AuditEvent;
use repeated::Repeated;

const LINES_PER_SECOND: Bar = Bar::AtLeast(400_000.0, "lines/s");
const ROUNDS: usize = 5;

fn main() -> ExitCode {
    let mut bars = Bars::filtered(std::env::args().skip(1));
    let audit = unpacked("audit.jsonl");
    bars.measure("replay: audit lines, read", "lines/s", || (fastest(|| read(&audit)), LINES_PER_SECOND));
    bars.measure("replay: the same by serde_json, only parsed", "lines/s", || {
        (fastest(|| lines_per_second(&audit, |line| AuditEvent::read(line).is_ok())), Bar::None)
    });
    bars.measure("replay: audit lines, one configuration", "lines/s", || {
        (fastest(|| replayed(&audit, 20, 1).0), LINES_PER_SECOND)
    });
    bars.measure("replay: audit lines, two configurations", "lines/s", || {
        (fastest(|| replayed(&audit, 20, 2).0), Bar::None)
    });
    bars.measure("replay: memory for ten million lines", "MB", || {
        let (_, report) = replayed(&audit, 729, 2);
        assert!(report.lines > 10_000_000 && report.damaged.count() == 0, "{:?}", report.damaged);
        (memory_peak(), Bar::AtMost(200.0, "MB"))
    });
    bars.measure("shadow: from a dump of 2 million requests to the report", "s", || {
        (incident_seconds(2_000_000), Bar::AtMost(2.0, "s"))
    });
    bars.print("Replay");
    if bars.missed() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The best of a few rounds, as other programs may run beside.
fn fastest(mut round: impl FnMut() -> f64) -> f64 {
    (0..ROUNDS).map(|_| round()).fold(0.0, f64::max)
}

/// Lines a second, when they are only read.
fn read(audit: &[u8]) -> f64 {
    let mut users = Users::default();
    lines_per_second(audit, |line| Format::Audit.read(line, &mut users).is_ok())
}

fn lines_per_second<'a>(audit: &'a [u8], mut is_read: impl FnMut(&'a [u8]) -> bool) -> f64 {
    let (mut lines, start) = (0, processor_seconds());
    for line in audit.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        assert!(std::hint::black_box(is_read(line)));
        lines += 1;
    }
    f64::from(lines) / (processor_seconds() - start)
}

/// Lines a second, when a log of so many copies of the recorded one is replayed.
fn replayed(audit: &[u8], copies: usize, sides: usize) -> (f64, Report) {
    let configurations = vec![recorded_objects(); sides];
    let reader = Box::new(Repeated::new(audit, copies));
    let mut input = Input::new("audit.log", reader, None, Some(Format::Audit)).unwrap();
    let start = processor_seconds();
    let mut replay = Replay::new(Settings::new(Preset::Kubernetes, 28), configurations, None);
    replay.read(&mut input, |_, _| {});
    let report = replay.finish();
    (report.lines as f64 / (processor_seconds() - start), report)
}

fn recorded_objects() -> Objects {
    let manifest = Manifest::read("objects.json", &unpacked("objects.json"), Strictness::Lenient).unwrap();
    manifest.entries.into_iter().map(|entry| entry.object).collect()
}

fn unpacked(name: &str) -> Vec<u8> {
    let file = File::open(evenkeel_recorded::golden().join("replay").join(format!("{name}.gz"))).unwrap();
    let mut content = Vec::new();
    MultiGzDecoder::new(file).read_to_end(&mut content).unwrap();
    content
}

/// How long `evenkeel replay` of a dump takes, from the bytes of its file to its figures (FR-3).
fn incident_seconds(requests: usize) -> f64 {
    let dump = incident::dump(requests);
    let start = Instant::now();
    let flight = Flight::from_bytes(&dump).unwrap();
    assert_eq!(flight.records.len(), requests);
    let seats = u32::try_from(flight.header.seats).unwrap();
    let (report, incident) = thread::scope(|scope| {
        let incident = scope.spawn(|| Incident::new(&flight).unwrap().unwrap());
        let mut replay = Replay::new(Settings::new(Preset::Plain, seats), vec![objects_of(&flight).unwrap()], None);
        replay.read_flight(&flight);
        (replay.finish(), incident.join().unwrap())
    });
    let time = start.elapsed().as_secs_f64();
    // Those that had not ended when the dump was made are not compared.
    assert!(incident.agreement.requests + 100 > requests as u64, "{:?}", incident.agreement);
    assert_eq!(report.requests, requests as u64);
    if let Some(first) = incident.agreement.first_difference {
        // Of so many requests, one is decided differently: see docs/flight-recorder.md.
        let different = incident.agreement.requests - incident.agreement.same;
        println!(
            "shadow: {different} of {requests} requests are decided differently again, the first one is {:?}",
            flight.records[first]
        );
        assert!(different <= 1, "{:?}", incident.agreement);
    }
    time
}

/// The time that this thread has spent on a processor; the time of day where the system does not tell.
fn processor_seconds() -> f64 {
    use std::sync::OnceLock;

    static START: OnceLock<Instant> = OnceLock::new();
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = told.and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    nanos.map_or_else(|| START.get_or_init(Instant::now).elapsed().as_secs_f64(), |nanos| nanos / 1e9)
}

/// The most memory that this process has had, in MB.
fn memory_peak() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
}
