//! An instance that has as many requests as it may, and the service that it sends them to.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use evenkeel_engine::fleet_division::{FlowLoad, InstanceLoad, LevelLoad};
use evenkeel_fleet::{
    Allowance, CurrentUsage, Fleet, FleetConfig, FleetInstance, FleetSettings, LoadSource, MemberEvent, Terms,
    boot_time,
};
use evenkeel_store::EtcdConfig;

pub(crate) const SEATS: u64 = 60;

/// Short, so that the tests are; requests are shorter than the grace.
const TERMS: Terms = Terms { ttl_ms: 1_000, grace_ms: 1_000, floor_hold_ms: 60_000 };
const REQUEST: Duration = Duration::from_millis(50);

/// Counts what is in flight, whoever sent it.
#[derive(Debug, Default)]
pub(crate) struct Service {
    in_flight: AtomicU64,
    in_flight_max: AtomicU64,
}

#[derive(Debug)]
pub(crate) struct Instance {
    service: Arc<Service>,
    number: u64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    allowance: Option<Allowance>,
    in_use: u64,
    wanted: u64,
}

/// What the fleet sees of an instance.
struct Member(Arc<Instance>);

/// An instance that is part of a fleet.
pub(crate) struct Running {
    pub(crate) instance: Arc<Instance>,
    pub(crate) fleet: Fleet,
}

// === impl Service ===

impl Service {
    pub(crate) fn in_flight_max(&self) -> u64 {
        self.in_flight_max.load(Ordering::SeqCst)
    }

    fn begin(&self) {
        let in_flight = self.in_flight.fetch_add(1, Ordering::SeqCst) + 1;
        self.in_flight_max.fetch_max(in_flight, Ordering::SeqCst);
    }

    fn end(&self) {
        self.in_flight.fetch_sub(1, Ordering::SeqCst);
    }
}

// === impl Instance ===

impl Instance {
    pub(crate) fn in_use(&self) -> u64 {
        self.state.lock().unwrap().in_use
    }

    /// This many requests are there from now on.
    pub(crate) fn want(self: &Arc<Self>, wanted: u64) {
        self.state.lock().unwrap().wanted = wanted;
        self.start_requests();
    }

    /// Starts what may start. The end of the allowance is compared at every start (FL-8).
    fn start_requests(self: &Arc<Self>) {
        let mut state = self.state.lock().unwrap();
        let seats = state.allowance.map_or(0, |allowance| allowance.seats(boot_time()));
        while state.in_use < seats.min(state.wanted) {
            state.in_use += 1;
            self.service.begin();
            let instance = Arc::clone(self);
            tokio::spawn(async move {
                tokio::time::sleep(REQUEST).await;
                instance.service.end();
                instance.state.lock().unwrap().in_use -= 1;
                instance.start_requests();
            });
        }
    }
}

// === impl Member ===

impl FleetInstance for Member {
    fn allow(&self, allowance: Allowance) {
        self.0.state.lock().unwrap().allowance = Some(allowance);
        self.0.start_requests();
    }

    fn tell(&self, _: MemberEvent) {}
}

impl LoadSource for Member {
    fn usage(&self) -> CurrentUsage {
        let state = self.0.state.lock().unwrap();
        CurrentUsage { in_use: state.in_use, demands: vec![("all".to_owned(), state.wanted)] }
    }

    fn load(&self, _service_seats: u64) -> Arc<InstanceLoad> {
        let state = self.0.state.lock().unwrap();
        let flows = vec![FlowLoad { hash: self.0.number, weight: 1, demand: state.wanted }];
        let level = LevelLoad {
            name: "all".to_owned(),
            floor: SEATS / 2,
            nominal: SEATS,
            max: SEATS,
            borrowing_weight: 1,
            demand: state.wanted,
            flow_weight: 1,
            flows,
        };
        Arc::new(InstanceLoad { levels: vec![level] })
    }
}

// === impl Running ===

impl Running {
    pub(crate) fn start(number: u64, wanted: u64, service: &Arc<Service>, endpoints: &[String]) -> Self {
        let state = Mutex::new(State { wanted, ..State::default() });
        let instance = Arc::new(Instance { service: Arc::clone(service), number, state });
        let settings = FleetSettings { seats: SEATS, terms: TERMS, ..FleetSettings::default() };
        let etcd = EtcdConfig::new(endpoints.iter().cloned());
        let config = FleetConfig { service: "checkout".to_owned(), etcd, settings, lock_file: None };
        let fleet = Fleet::join(&config, Arc::new(Member(Arc::clone(&instance)))).unwrap();
        Self { instance, fleet }
    }

    /// As `kill -9`, but for the requests that the service works on.
    pub(crate) fn kill(self) -> Arc<Instance> {
        self.instance.state.lock().unwrap().allowance = None;
        self.instance
    }
}
