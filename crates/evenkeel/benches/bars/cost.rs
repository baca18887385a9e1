//! What costs and rates cost a request of the library, and a rate beside nginx's `limit_req`, both in real time.

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use evenkeel::clock::ManualClock;
use evenkeel::request::{FlowRequest, Patience};
use evenkeel::{Attributes, FlowControl, RequestInfo, User, WorkEstimate};
use evenkeel_bars::{Bar, Bars};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::costed_objects::{PER_FLOW, costed_objects};
use crate::instructions::PACE;
use crate::{ROUND, now};

const PORT: u16 = 19_329;
const SECONDS: f64 = 60.0;
/// How often two flow controls take turns.
const TURNS: usize = 1_000;

/// What came of the requests that were sent to somebody.
#[derive(Default)]
struct Tally {
    accepted: AtomicU32,
    rejected: AtomicU32,
}

/// nginx, until it is dropped.
struct Nginx {
    child: Child,
    folder: std::path::PathBuf,
}

const OFF: &str = "cost: admit and finish, nothing said of costs and rates";
const WITH_COSTS: &str = "cost: the same with learnt costs, a request more";
const WITH_RATE: &str = "cost: the same with a rate, a request more";
const OFF_RATE: &str = "cost: 100/s, burst 10, at 1.2 × Poisson for 60 s: accepted off the rate";
const REJECTED: &str = "cost: the same: rejected";
const NGINX_OFF_RATE: &str = "cost: nginx limit_req beside it: accepted off the rate";
const NGINX_REJECTED: &str = "cost: nginx limit_req beside it: rejected";

/// The annotations of a flow schema whose costs are learnt, and of one whose flows have a rate that nobody reaches.
pub(crate) const LEARNT: &str =
    "evenkeel.dev/cost: tokens, evenkeel.dev/seats: learnt, evenkeel.dev/cost-per-seat: '10'";
pub(crate) const RATE: &str = "evenkeel.dev/rate: 1000000000/s";

pub(crate) fn bars(bars: &mut Bars) {
    bars.measure(OFF, "ns", || (in_turns(["", ""])[0], Bar::None));
    bars.measure(WITH_COSTS, "ns", || (a_request_more(LEARNT), Bar::AtMost(60.0, "ns")));
    bars.measure(WITH_RATE, "ns", || (a_request_more(RATE), Bar::AtMost(40.0, "ns")));
    if ![OFF_RATE, REJECTED, NGINX_OFF_RATE, NGINX_REJECTED].iter().any(|name| bars.wants(name)) {
        return;
    }
    let (own, nginx) = beside_nginx();
    let off_rate =
        |tally: &Tally| 100.0 * (f64::from(tally.accepted.load(Ordering::Relaxed)) / (100.0 * SECONDS) - 1.0);
    bars.measure(OFF_RATE, "%", || (off_rate(&own).abs(), Bar::AtMost(0.5, "%")));
    let rejected = |tally: &Tally| f64::from(tally.rejected.load(Ordering::Relaxed));
    bars.measure(REJECTED, "requests", || (rejected(&own), Bar::AtMost(0.0, "requests")));
    if let Some(nginx) = nginx {
        bars.measure(NGINX_OFF_RATE, "%", || (off_rate(&nginx), Bar::None));
        bars.measure(NGINX_REJECTED, "requests", || (rejected(&nginx), Bar::None));
    }
}

fn controlled(annotations: &str) -> FlowControl {
    FlowControl::builder().server_concurrency(1000).drive_by_hand().objects(&*costed(annotations)).build()
}

fn costed(annotations: &str) -> String {
    costed_objects(&format!("{PER_FLOW}, evenkeel.dev/wait-limit: 60s"), annotations)
}

/// Requests with these annotations, for `cargo xtask bench instructions`.
pub(crate) fn call(annotations: &str, calls: u32) {
    let clock = ManualClock::new();
    let builder = FlowControl::builder().server_concurrency(1000).manual_clock(clock.clone());
    let flow = builder.objects(&*costed(annotations)).build();
    let (user, info) = (User::new("alice", ["system:authenticated"]), RequestInfo::for_path("get", "/orders"));
    for _ in 0..calls {
        clock.advance(PACE);
        request(&flow, Attributes { user: &user, request: &info });
    }
}

/// A request that is let in, costs something and ends.
fn request(flow: &FlowControl, attributes: Attributes<'_>) {
    let permit = now(flow.admit(attributes, WorkEstimate::ONE_SEAT)).expect("a seat");
    permit.add_cost(7.0);
    drop(permit);
}

/// How much longer a request takes with these annotations than without, in nanoseconds.
fn a_request_more(annotations: &str) -> f64 {
    let [off, on] = in_turns(["", annotations]);
    on - off
}

/// How long a request takes that is let in and ends, in nanoseconds, with each of two annotations. The usual rounds of both, which take
/// turns, so that whatever disturbs the machine disturbs both.
fn in_turns(annotations: [&str; 2]) -> [f64; 2] {
    let flows = annotations.map(controlled);
    let (user, info) = (User::new("alice", ["system:authenticated"]), RequestInfo::for_path("get", "/orders"));
    let attributes = Attributes { user: &user, request: &info };
    let round = |flow: &FlowControl| {
        let start = std::time::Instant::now();
        for _ in 0..ROUND {
            request(flow, attributes);
        }
        start.elapsed().as_secs_f64() * 1e9 / f64::from(ROUND)
    };
    let (mut first, mut second): (Vec<f64>, Vec<f64>) =
        (0..TURNS).map(|_| (round(&flows[0]), round(&flows[1]))).unzip();
    [&mut first, &mut second].map(|rounds| {
        rounds.sort_by(f64::total_cmp);
        rounds[TURNS / 10]
    })
}

/// Sends the same requests to both at the same times.
fn beside_nginx() -> (Arc<Tally>, Option<Arc<Tally>>) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let (own, other) = (Arc::<Tally>::default(), Arc::<Tally>::default());
    let nginx = Nginx::start();
    runtime.block_on(async {
        let flow = controlled("evenkeel.dev/rate: 100/s;burst=10");
        let (begun, mut at, mut state) = (tokio::time::Instant::now(), 0.0, 7u64);
        loop {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let uniform = (state >> 11) as f64 / (1u64 << 53) as f64;
            at -= (1.0 - uniform).ln() / 120.0;
            if at >= SECONDS {
                break;
            }
            tokio::time::sleep_until(begun + Duration::from_secs_f64(at)).await;
            let (user, info) = (User::new("alice", ["system:authenticated"]), RequestInfo::for_path("get", "/orders"));
            let patience = Patience::default().waits_at_most(Duration::from_secs(60));
            let arrived =
                flow.arrive_request(FlowRequest::new(Attributes { user: &user, request: &info }).patience(patience));
            let tally = Arc::clone(&own);
            tokio::spawn(async move { tally.count(arrived.await.is_ok()) });
            if nginx.is_some() {
                let tally = Arc::clone(&other);
                tokio::spawn(async move { tally.count(get().await == Some(200)) });
            }
        }
        tokio::time::sleep_until(begun + Duration::from_secs_f64(SECONDS)).await;
    });
    runtime.shutdown_background();
    (own, nginx.map(|_| other))
}

/// The status of a request to nginx.
async fn get() -> Option<u16> {
    let mut stream = TcpStream::connect(("127.0.0.1", PORT)).await.ok()?;
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await.ok()?;
    let mut head = [0; 12];
    stream.read_exact(&mut head).await.ok()?;
    std::str::from_utf8(&head[9..]).ok()?.parse().ok()
}

// === impl Tally ===

impl Tally {
    fn count(&self, is_accepted: bool) {
        let count = if is_accepted { &self.accepted } else { &self.rejected };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

// === impl Nginx ===

impl Nginx {
    /// `None` if it is not installed.
    fn start() -> Option<Self> {
        let folder = std::env::temp_dir().join(format!("evenkeel-bench-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("html")).ok()?;
        std::fs::write(folder.join("html/index.html"), "hello").ok()?;
        let settings = format!(
            "daemon off; worker_processes 1; pid nginx.pid; events {{}}\nhttp {{ access_log off; client_body_temp_path t1; proxy_temp_path t2; \
             fastcgi_temp_path t3; uwsgi_temp_path t4; scgi_temp_path t5;\nlimit_req_zone $host zone=k:1m rate=100r/s; limit_req_status 429;\n\
             server {{ listen 127.0.0.1:{PORT}; root html; location / {{ limit_req zone=k burst=10; }} }} }}\n"
        );
        std::fs::write(folder.join("nginx.conf"), settings).ok()?;
        let mut command = Command::new("nginx");
        command.arg("-p").arg(&folder).args(["-c", "nginx.conf", "-e", "error.log"]).stderr(Stdio::null());
        let child = command.spawn().ok()?;
        let is_up = (0..100).any(|_| {
            std::thread::sleep(Duration::from_millis(20));
            std::net::TcpStream::connect(("127.0.0.1", PORT)).is_ok()
        });
        let nginx = Self { child, folder };
        is_up.then_some(nginx)
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // Its workers end with it.
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
