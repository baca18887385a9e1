//! An instance that has as many requests as it may, and the service that it sends them to.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use evenkeel_engine::auto_limit::{Sample, Totals};
use evenkeel_engine::fleet_division::{FlowLoad, InstanceLoad, LevelLoad};
use evenkeel_fleet::{
    Allowance, CurrentUsage, Fleet, FleetConfig, FleetInstance, FleetSettings, FoundSeats, LimitInput, LoadSource,
    MemberEvent, Terms, boot_time,
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
    /// What has happened, and until when, if the fleet finds its seats.
    totals: Option<(Totals, evenkeel_engine::time::Instant)>,
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

// === impl State ===

impl State {
    /// Time passes until now. To be called before anything changes.
    fn pass(&mut self) {
        let (now, in_use) = (boot_time(), u32::try_from(self.in_use).unwrap());
        if let Some((totals, until)) = &mut self.totals {
            let mut sample = Sample::default();
            let span = now - std::mem::replace(until, now);
            sample.passed(span, in_use, self.wanted > self.in_use);
            totals.add(span, &sample);
        }
    }

    fn note_end(&mut self) {
        if let Some((totals, _)) = &mut self.totals {
            let mut sample = Sample::default();
            sample.ended(0, i64::try_from(REQUEST.as_nanos()).unwrap(), 1, true);
            totals.add(0, &sample);
        }
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
        state.pass();
        let seats = state.allowance.map_or(0, |allowance| allowance.seats(boot_time()));
        while state.in_use < seats.min(state.wanted) {
            state.in_use += 1;
            self.service.begin();
            let instance = Arc::clone(self);
            tokio::spawn(async move {
                tokio::time::sleep(REQUEST).await;
                instance.service.end();
                {
                    let mut state = instance.state.lock().unwrap();
                    state.pass();
                    state.note_end();
                    state.in_use -= 1;
                }
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

    fn limit_input(&self) -> Option<LimitInput> {
        let mut state = self.0.state.lock().unwrap();
        state.pass();
        state.totals.map(|(totals, _)| LimitInput { totals, floor: 1, is_held_down: false })
    }
}

// === impl Running ===

impl Running {
    pub(crate) fn start(number: u64, wanted: u64, service: &Arc<Service>, endpoints: &[String]) -> Self {
        Self::start_with(FleetSettings { seats: SEATS, ..FleetSettings::default() }, number, wanted, service, endpoints)
    }

    /// An instance of a fleet that finds its seats.
    pub(crate) fn start_finding(found: FoundSeats, number: u64, service: &Arc<Service>, endpoints: &[String]) -> Self {
        Self::start_with(FleetSettings::default().auto(found), number, SEATS, service, endpoints)
    }

    fn start_with(
        settings: FleetSettings,
        number: u64,
        wanted: u64,
        service: &Arc<Service>,
        endpoints: &[String],
    ) -> Self {
        let totals = settings.auto.map(|_| (Totals::default(), boot_time()));
        let state = Mutex::new(State { wanted, totals, ..State::default() });
        let instance = Arc::new(Instance { service: Arc::clone(service), number, state });
        let settings = FleetSettings { terms: TERMS, ..settings };
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
