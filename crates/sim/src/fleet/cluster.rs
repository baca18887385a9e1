//! `Cluster`: servers that run the requests of one workload, and what all of them do together.

use evenkeel_engine::controller::Objects;
use evenkeel_engine::limits::LevelLimits;
use evenkeel_engine::queue_set::Mode;
use evenkeel_engine::time::Nanos;
use evenkeel_fleet::EtcdCounts;

use super::exchange::Exchange;
use super::usage::SeatUsage;
use crate::level_record::{LevelRecord, PresentLevel};
use crate::report::{MeanMax, rounded};
use crate::server_settings::ServerSettings;
use crate::servers::Servers;
use crate::service::ServiceCurve;
use crate::simulator::Simulator;
use crate::traffic::{Token, Traffic};
use crate::workload::Instances;

/// Several servers in front of one service.
pub(super) struct Cluster {
    simulators: Vec<Simulator<Token>>,
    /// The exchange that decides about their seats; `None` if each keeps its own.
    exchange: Option<Exchange>,
    seen: Seen,
    /// Whether requests of one server slow down those of the others.
    shares_service: bool,
}

/// What the servers did when they were last looked at.
struct Seen {
    seats: i64,
    /// The state of each level, by server and level.
    present: Vec<Vec<PresentLevel>>,
    /// The records of levels, all servers together.
    levels: Vec<LevelRecord>,
    by_instance: Vec<SeatUsage>,
    total: SeatUsage,
    bucket_width: Nanos,
}

// === impl Cluster ===

impl Cluster {
    /// Instances that share the seats. At first, none has any.
    pub(super) fn fleet(instances: &Instances, settings: &ServerSettings, objects: &Objects, seed: u64) -> Self {
        let seats = vec![0; instances.count as usize];
        let exchange = Exchange::new(instances, settings, seed);
        let own = ServerSettings { auto: None, ..settings.clone() };
        let mut cluster = Self::new(seats, &own, objects, Some(exchange));
        if settings.auto.is_some() {
            cluster.simulators.iter_mut().for_each(Simulator::sum_up);
        }
        cluster
    }

    /// Instances with an equal part of the seats each, or that find out how many they should have, each for itself.
    pub(super) fn apart(instances: &Instances, settings: &ServerSettings, objects: &Objects) -> Self {
        let count = i64::from(instances.count);
        let part = |number| settings.seats / count + i64::from(number < settings.seats % count);
        Self::new((0..count).map(part).collect(), settings, objects, None)
    }

    fn new(seats: Vec<i64>, settings: &ServerSettings, objects: &Objects, exchange: Option<Exchange>) -> Self {
        let simulator = |seats| {
            let own = ServerSettings { seats, ..settings.clone() };
            Simulator::new(own, objects.clone())
        };
        let mut seen = Seen {
            seats: settings.seats,
            present: vec![Vec::new(); seats.len()],
            levels: Vec::new(),
            by_instance: vec![SeatUsage::default(); seats.len()],
            total: SeatUsage::default(),
            bucket_width: settings.bucket_width,
        };
        let simulators: Vec<_> = seats.into_iter().map(simulator).collect();
        seen.follow(&simulators);
        let shares_service = settings.service != ServiceCurve::default();
        Self { simulators, exchange, seen, shares_service }
    }

    /// The seats of the service: those of the ledger, or of all servers together.
    pub(super) fn service_seats(&self) -> i64 {
        let own = |simulator: &Simulator<Token>| simulator.engine().controller().server_limit();
        self.exchange.as_ref().map_or_else(|| self.simulators.iter().map(own).sum(), Exchange::service_seats)
    }

    /// Whether an instance finds out how many seats the service should have.
    pub(super) fn finds_seats(&self) -> bool {
        self.exchange.as_ref().is_some_and(Exchange::finds_seats)
    }

    /// Something has happened at a server: its requests may be more or fewer for the others.
    fn tell_others(&mut self, server: usize) {
        if !self.shares_service {
            return;
        }
        let now = self.simulators[server].now();
        let all: u32 = self.simulators.iter().map(Simulator::in_work).sum();
        for simulator in &mut self.simulators {
            let others = all - simulator.in_work();
            simulator.set_others_in_work(now, others);
        }
    }

    /// The seats that the service uses.
    pub(super) fn in_use(&self) -> MeanMax {
        figures(&self.seen.total)
    }

    pub(super) fn in_use_by_instance(&self) -> impl Iterator<Item = MeanMax> {
        self.seen.by_instance.iter().map(figures)
    }

    /// The counts of writes to etcd, and how many messages were lost.
    pub(super) fn etcd_counts(&self) -> Option<(EtcdCounts, u64)> {
        self.exchange.as_ref().map(Exchange::counts)
    }

    pub(super) fn into_levels(self) -> Vec<LevelRecord> {
        self.seen.levels
    }
}

impl Servers for Cluster {
    fn all(&self) -> &[Simulator<Token>] {
        &self.simulators
    }

    fn all_mut(&mut self) -> &mut [Simulator<Token>] {
        &mut self.simulators
    }

    fn changed(&mut self, server: usize) {
        self.tell_others(server);
        self.seen.look(server, &self.simulators[server]);
    }

    fn reconfigured(&mut self) {
        self.seen.follow(&self.simulators);
    }

    fn step(&mut self, until: Nanos, traffic: &mut Traffic<'_>) -> bool {
        let ends = self.simulators.iter().enumerate().filter_map(|(server, one)| Some((one.next_event()?, server)));
        let end = ends.min().filter(|(at, _)| *at <= until);
        let message = self.exchange.as_ref().and_then(Exchange::next).filter(|at| *at <= until);
        // Events of requests come before messages of the same time.
        let server = match (end, message) {
            (Some((at, server)), message) if message.is_none_or(|message| at <= message) => {
                self.simulators[server].step(at, traffic);
                server
            }
            _ => match self.exchange.as_mut().filter(|_| message.is_some()) {
                Some(exchange) => exchange.step(&mut self.simulators, traffic),
                None => return false,
            },
        };
        self.tell_others(server);
        self.seen.look(server, &self.simulators[server]);
        true
    }

    fn events(&self) -> u64 {
        let messages = self.exchange.as_ref().map_or(0, Exchange::events);
        self.simulators.iter().map(Simulator::events).sum::<u64>() + messages
    }

    fn reset_counts(&mut self, now: Nanos) {
        self.simulators.iter_mut().for_each(Simulator::reset_counts);
        self.exchange.iter_mut().for_each(Exchange::reset_counts);
        self.seen.reset(now, &self.simulators);
    }

    fn close_records(&mut self, now: Nanos) {
        self.simulators.iter_mut().for_each(Simulator::close_records);
        self.seen.close(now);
    }

    fn levels(&self) -> &[LevelRecord] {
        &self.seen.levels
    }
}

fn figures(usage: &SeatUsage) -> MeanMax {
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    let max = usage.most() as f64;
    MeanMax { mean: rounded(usage.mean()), max }
}

// === impl Seen ===

impl Seen {
    /// The levels of all servers are those of the first, with the limits that they would have with all seats.
    fn follow(&mut self, simulators: &[Simulator<Token>]) {
        let Some(first) = simulators.first() else { return };
        let now = first.now();
        for own in &first.levels()[self.levels.len()..] {
            self.levels.push(LevelRecord::new(own.name(), now, self.bucket_width));
        }
        for (name, _, stake) in first.engine().controller().stakes_with(self.seats) {
            let limits = LevelLimits {
                nominal: stake.nominal,
                lendable: stake.nominal - stake.floor,
                borrowing: stake.max - stake.nominal,
                min: stake.floor,
                max: stake.max,
            };
            if let Some(level) = self.levels.iter_mut().find(|level| level.name() == name) {
                level.set_limits(now, limits, limits.max);
            }
        }
    }

    /// Something may have happened at a server.
    fn look(&mut self, server: usize, simulator: &Simulator<Token>) {
        let now = simulator.now();
        let present = &mut self.present[server];
        present.resize(simulator.levels().len(), PresentLevel::default());
        for ((before, own), all) in present.iter_mut().zip(simulator.levels()).zip(&mut self.levels) {
            let after = own.present();
            if *before != after {
                all.add_change(now, before, &after);
                *before = after;
            }
        }
        let limited = simulator.engine().levels().filter(|level| !matches!(level.queue_set.mode(), Mode::Exempt));
        let seats: i64 = limited.map(|level| level.queue_set.seats_in_use()).sum();
        let before = self.by_instance[server].seats();
        if seats != before {
            self.by_instance[server].set(now, seats);
            self.total.set(now, self.total.seats() + seats - before);
        }
    }

    fn reset(&mut self, now: Nanos, simulators: &[Simulator<Token>]) {
        for (present, simulator) in self.present.iter_mut().zip(simulators) {
            *present = simulator.levels().iter().map(LevelRecord::present).collect();
        }
        self.levels.iter_mut().for_each(|level| level.reset(now));
        self.by_instance.iter_mut().chain([&mut self.total]).for_each(|usage| usage.reset(now));
    }

    fn close(&mut self, now: Nanos) {
        self.levels.iter_mut().for_each(|level| level.close(now));
        self.by_instance.iter_mut().chain([&mut self.total]).for_each(|usage| usage.advance(now));
    }
}
