//! What it costs to watch: viewers of the dashboard beside load, and one look at many levels and flows.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use evenkeel::objects::Objects;
use evenkeel::{Attributes, FlowControl, FlowSchema, PriorityLevelConfiguration, RequestInfo, User, WorkEstimate};
use evenkeel_bars::{Bar, Bars};
use evenkeel_gateway::observe::dashboard::{Frames, Recording};
use evenkeel_process::{free_address, median};

use crate::evenkeel::start_watched;
use crate::throughput::times;
use crate::upstream::Upstream;
use crate::wrk;

const CONNECTIONS: usize = 64;
const ROUNDS: usize = 30;
const ROUND_SECONDS: u32 = 2;
/// Ten browsers and `evenkeel top`.
const VIEWERS: usize = 11;
const LEVELS: usize = 200;
const FLOWS: usize = 50_000;
const LOOKS: usize = 200;
/// How a frame begins in the stream.
const FRAME: &[u8] = b"event: frame";

/// Somebody who reads frames until he is told to stop.
struct Viewers {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<io::Result<()>>>,
}

pub(crate) fn bars(bars: &mut Bars) -> io::Result<()> {
    look(bars);
    watched(bars)
}

fn watched(bars: &mut Bars) -> io::Result<()> {
    let (upstream, folder, admin) = (Upstream::start()?, tempfile::tempdir()?, free_address()?);
    let gateway = start_watched(admin, upstream.process.address, folder.path())?;
    wrk::run(gateway.address, CONNECTIONS, 1)?;
    let mut turns = [Vec::new(), Vec::new()];
    for round in 0..ROUNDS {
        // Each of the two begins as often as the other.
        for place in 0..2 {
            let is_watched = (round + place) % 2 == 1;
            // Before every turn they connect and are waited for: what a machine does next depends on how long it was idle.
            let mut viewers = Some(Viewers::start(admin)?);
            if !is_watched {
                viewers.take().map_or(Ok(()), Viewers::stop)?;
            }
            turns[usize::from(is_watched)].push(wrk::run(gateway.address, CONNECTIONS, ROUND_SECONDS)?);
            viewers.map_or(Ok(()), Viewers::stop)?;
        }
    }
    let [alone, watched] = &turns;
    bars.add(
        "requests per second, nobody watches",
        median(alone.iter().map(|run| run.requests_per_second)),
        "",
        Bar::None,
    );
    bars.add(
        "with 11 viewers, that times",
        times(watched, alone, |run| run.requests_per_second),
        "",
        Bar::AtLeast(0.99, ""),
    );
    bars.add("p99, nobody watches", median(alone.iter().map(|run| run.p99_ms)), "ms", Bar::None);
    bars.add("with 11 viewers, that times", times(watched, alone, |run| run.p99_ms), "", Bar::AtMost(1.02, ""));
    Ok(())
}

/// One look at many levels, of which many have flows, and what a frame is long.
fn look(bars: &mut Bars) {
    let names: Vec<_> = (0..LEVELS).map(|index| format!("level-{index:03}")).collect();
    let flow = FlowControl::builder().server_concurrency(2000).attribute_flows().objects(objects(&names));
    let flow = flow.drive_by_hand().build();
    let frames = Frames::default();
    let mut recording = Recording::alone(frames.clone(), flow.clone());
    let request = RequestInfo::default();
    let users: Vec<_> =
        (0..FLOWS).map(|index| User::new(format!("some-user-{index:05}"), [names[index % LEVELS].clone()])).collect();
    let mut held = Vec::new();
    let mut times: Vec<Duration> = (0..LOOKS)
        .map(|turn| {
            // Between two looks, every flow is busy, and some requests wait.
            held.clear();
            let turn = users.iter().skip(turn % 7);
            held.extend(turn.map(|user| flow.arrive(Attributes { user, request: &request }, WorkEstimate::ONE_SEAT)));
            let began = Instant::now();
            recording.look();
            began.elapsed()
        })
        .collect();
    times.sort();
    let length = frames.latest_event().len();
    bars.add(
        "a look at 200 levels and 50,000 flows",
        times[LOOKS / 2].as_secs_f64() * 1e3,
        "ms",
        Bar::AtMost(2.0, "ms"),
    );
    bars.add("a frame of them, as viewers get it", length as f64, "bytes", Bar::AtMost(65536.0, "bytes"));
}

fn objects(names: &[String]) -> Objects {
    let levels = names.iter().map(|name| {
        let level = PriorityLevelConfiguration::builder(name);
        level.limited(|l| l.shares(10).queue(|q| q.queues(64).hand_size(4).queue_length_limit(50))).build()
    });
    let schemas = names.iter().map(|name| {
        let schema = FlowSchema::builder(format!("schema-of-{name}")).priority_level(name).matching_precedence(100);
        schema.by_user().rule(|r| r.group(name).everything()).build()
    });
    Objects { priority_levels: levels.map(Arc::new).collect(), flow_schemas: schemas.map(Arc::new).collect() }
}

// === impl Viewers ===

impl Viewers {
    /// Connects them, and waits until each has its first frame: what is measured is watching, not the way there.
    fn start(admin: SocketAddr) -> io::Result<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        let (has_frame, frames) = channel();
        let threads = (0..VIEWERS).map(|_| {
            let (is_over, has_frame) = (Arc::clone(&is_over), has_frame.clone());
            std::thread::spawn(move || watch(admin, &is_over, &has_frame))
        });
        let threads = threads.collect();
        drop(has_frame);
        match frames.iter().take(VIEWERS).count() {
            VIEWERS => Ok(Self { is_over, threads }),
            _ => Err(io::Error::other("a viewer got no frame")),
        }
    }

    fn stop(self) -> io::Result<()> {
        self.is_over.store(true, Ordering::Relaxed);
        self.threads
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into())))
    }
}

fn watch(admin: SocketAddr, is_over: &AtomicBool, has_frame: &Sender<()>) -> io::Result<()> {
    let mut stream = TcpStream::connect(admin)?;
    stream.write_all(format!("GET /debug/frames HTTP/1.1\r\nHost: {admin}\r\n\r\n").as_bytes())?;
    let mut buffer = vec![0; 65536];
    let mut is_watching = false;
    while !is_over.load(Ordering::Relaxed) {
        let length = stream.read(&mut buffer)?;
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if !is_watching && buffer[..length].windows(FRAME.len()).any(|window| window == FRAME) {
            is_watching = true;
            // Nobody waits any more if another viewer failed.
            let _ = has_frame.send(());
        }
    }
    Ok(())
}
