//! What a fleet costs a request of the library (FL-8), with a real etcd.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use evenkeel::fleet::{EtcdConfig, FleetConfig, FleetSettings};
use evenkeel::{Attributes, FlowControl, RequestInfo, User, WorkEstimate};
use evenkeel_bars::{Bar, Bars, nanos_per_operation};

use crate::{ROUND, now};

const SEATS: u32 = 1000;
const PORTS: [u16; 2] = [19_379, 19_380];

/// A measurement with and one without a fleet, so many times in turns: what else happens on the machine concerns both.
const TURNS: usize = 9;

/// etcd, until it is dropped.
struct Etcd {
    child: Child,
    folder: PathBuf,
}

pub(crate) fn bars(bars: &mut Bars) {
    if !bars.wants("fleet: ") {
        return;
    }
    // Without etcd nothing can be measured.
    let Some(_etcd) = Etcd::start() else { return };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let alone = FlowControl::builder().server_concurrency(SEATS).drive_by_hand().build();
    let shared = {
        let _entered = runtime.enter();
        member()
    };
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        without.push(request(&alone));
        with.push(request(&shared));
    }
    let [without, with] = [without, with].map(median);
    bars.measure("fleet: admit and finish, without a fleet", "ns", || (without, Bar::None));
    bars.measure("fleet: a member of a fleet, a request more", "ns", || (with - without, Bar::AtMost(3.0, "ns")));
    runtime.shutdown_background();
}

/// The only member of a fleet, when it has all seats.
fn member() -> FlowControl {
    let settings = FleetSettings { seats: SEATS.into(), ..FleetSettings::default() };
    let etcd = EtcdConfig::new([format!("127.0.0.1:{}", PORTS[0])]);
    let fleet = FleetConfig { service: "bars".into(), etcd, settings, lock_file: None };
    let flow = FlowControl::builder().server_concurrency(SEATS).fleet(fleet).drive_by_hand().build();
    let begun = Instant::now();
    while flow.fleet_state().is_none_or(|state| state.seats < u64::from(SEATS)) {
        assert!(begun.elapsed() < Duration::from_secs(20), "the fleet gives no seats: {:?}", flow.fleet_state());
        std::thread::sleep(Duration::from_millis(20));
    }
    flow
}

/// How long a request takes that is let in and ends, in nanoseconds.
fn request(flow: &FlowControl) -> f64 {
    let (user, info) = (User::new("alice", ["system:authenticated"]), RequestInfo::for_path("get", "/orders/7"));
    let attributes = Attributes { user: &user, request: &info };
    nanos_per_operation(ROUND, || {
        for _ in 0..ROUND {
            drop(now(flow.admit(attributes, WorkEstimate::ONE_SEAT)).expect("a seat"));
        }
    })
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

// === impl Etcd ===

impl Etcd {
    /// `None` if it is not installed.
    fn start() -> Option<Self> {
        let folder = std::env::temp_dir().join(format!("evenkeel-bench-etcd-{}", std::process::id()));
        let [clients, peers] = PORTS.map(|port| format!("http://127.0.0.1:{port}"));
        let mut command = Command::new("etcd");
        command.arg("--data-dir").arg(&folder).args(["--log-level", "error"]);
        command.args(["--listen-client-urls", &clients, "--advertise-client-urls", &clients]);
        command.args(["--listen-peer-urls", &peers, "--initial-advertise-peer-urls", &peers]);
        command.args(["--initial-cluster", &format!("default={peers}")]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
        Some(Self { child, folder })
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
