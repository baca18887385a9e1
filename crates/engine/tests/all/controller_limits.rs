//! Limits and seat caps that a digest gives, and reconfiguration under load (CC-16, WE-4, CL-12, CL-18).

use crate::busy_engine;

use std::collections::BTreeMap;
use std::sync::Arc;

use busy_engine::{BusyEngine, Came, LINGERING, objects, queuing, rejecting, schema, with_queues};
use evenkeel_api::v1::PriorityLevelConfiguration;
use evenkeel_engine::controller::Objects;
use evenkeel_engine::queue_set::{Finish, Phase, QueueSet};
use evenkeel_engine::time::{MILLISECOND, SECOND};
use evenkeel_engine::{Ticket, WorkEstimate};

const ONE_SEAT: WorkEstimate = WorkEstimate::ONE_SEAT;

#[test]
fn cc_16_limits_and_caps_of_the_bootstrap_levels() {
    let mut server = BusyEngine::new(600);
    server.apply(Objects::bootstrap());
    let found: Vec<_> = server
        .engine
        .levels()
        .map(|view| {
            let limits = view.control.limits();
            let current = view.control.current_limit();
            assert_eq!(view.queue_set.concurrency_limit(), current, "CL-18: {} was told", view.name);
            (view.name, limits.nominal, limits.min, limits.max, view.control.seat_cap(), current)
        })
        .collect();
    assert_eq!(
        found,
        [
            ("catch-all", 13, 13, 613, None, 30),
            ("exempt", 0, 0, 600, None, 0),
            ("global-default", 49, 24, 649, Some(8), 56),
            ("leader-election", 25, 25, 625, Some(4), 58),
            ("node-high", 98, 73, 698, Some(15), 170),
            ("system", 74, 50, 674, Some(12), 117),
            ("workload-high", 98, 49, 698, Some(15), 114),
            ("workload-low", 245, 24, 845, Some(37), 56),
        ]
    );
    assert_eq!((server.engine.controller().nominal_sum(), server.engine.controller().server_limit()), (602, 600));
}

#[test]
fn cc_16_a_digest_starts_requests_that_wait_for_the_seats_it_gives() {
    let mut server = BusyEngine::new(2);
    server.apply(objects(&[queuing("batch"), rejecting("other", 900)], &[]));
    let batch = server.id("batch");
    assert_eq!(server.control("batch").current_limit(), 1);
    assert_eq!(server.arrive(batch, 1, ONE_SEAT), Came::Started);
    assert_eq!(server.arrive(batch, 2, ONE_SEAT), Came::Waiting);
    server.apply(objects(&[queuing("batch")], &[]));
    assert_eq!((server.control("batch").current_limit(), &*server.started), (2, &[1, 2][..]));
}

#[test]
fn cc_16_a_digest_ends_the_period_in_which_demand_was_observed() {
    let mut server = BusyEngine::new(10);
    server.apply(objects(&[queuing("batch")], &[]));
    server.arrive(server.id("batch"), 1, WorkEstimate::seats(3));
    server.pass(4 * SECOND);
    server.finish(1);
    server.apply(objects(&[queuing("batch")], &[]));
    let statistics = server.control("batch").statistics();
    assert_eq!((statistics.high_watermark, statistics.average.to_bits()), (3, 3.0_f64.to_bits()));
    server.pass(SECOND);
    server.adjust();
    let statistics = server.control("batch").statistics();
    assert_eq!((statistics.high_watermark, statistics.average.to_bits()), (0, 0.0_f64.to_bits()));
}

#[test]
fn we_4_the_cap_of_a_level_that_no_longer_queues_stays_until_the_level_goes() {
    let caps = |server: &BusyEngine| {
        let configuration = server.engine.configuration();
        let schema = configuration.schemas().iter().find(|schema| &*schema.name == "s");
        (server.control("batch").seat_cap(), schema.expect("it is used").level.seat_cap())
    };
    let queues =
        PriorityLevelConfiguration::builder("batch").limited(|l| l.shares(5).queue(|q| q.hand_size(1))).build();
    let with = |level: &PriorityLevelConfiguration| objects(std::slice::from_ref(level), &[schema("s", "batch", 500)]);
    let mut server = BusyEngine::new(200);
    server.apply(with(&rejecting("batch", 5)));
    assert_eq!(caps(&server), (None, None), "it never had queues");
    server.apply(with(&queues));
    assert_eq!((server.control("batch").limits().nominal, caps(&server)), (100, (Some(15), Some(15))));
    server.apply(with(&rejecting("batch", 15)));
    assert_eq!((server.control("batch").limits().nominal, caps(&server)), (150, (Some(15), Some(15))), "the last one");

    server.apply(Objects::default());
    server.apply(with(&rejecting("batch", 5)));
    assert_eq!(caps(&server), (None, None), "it is another level");
}

#[test]
fn we_4_the_cap_follows_the_seats_of_the_server_without_a_new_configuration() {
    let level = PriorityLevelConfiguration::builder("batch").limited(|l| l.shares(5).queue(|q| q.hand_size(1))).build();
    let mut server = BusyEngine::new(200);
    server.apply(objects(&[level], &[schema("s", "batch", 500)]));
    let configuration = server.engine.configuration();
    let cap =
        || configuration.schemas().iter().find(|schema| &*schema.name == "s").expect("it is used").level.seat_cap();
    assert_eq!(cap(), Some(15));
    let statistics = server.control("batch").statistics();
    server.engine.set_server_limit(80, server.now, &mut |_: Ticket, _: &mut u32| {});
    assert_eq!((cap(), server.control("batch").limits().nominal), (Some(6), 40));
    assert!(Arc::ptr_eq(&configuration, &server.engine.configuration()), "nothing is compiled");
    assert_eq!(server.control("batch").statistics(), statistics, "what is known of the demand stays as it is (CL-11)");
}

#[test]
fn we_4_a_level_with_a_queuing_configuration_has_a_cap_whatever_the_number_of_queues() {
    for queues in [0, -1] {
        let mut server = BusyEngine::new(100);
        server.apply(objects(&[with_queues(queuing("batch"), queues, 1)], &[]));
        assert_eq!(server.control("batch").seat_cap(), Some(15), "{queues} queues");
    }
}

#[test]
fn cl_12_a_limited_level_with_a_negative_number_of_queues_has_its_limits() {
    let level = PriorityLevelConfiguration::builder("batch").limited(|l| l.borrowing_limit_percent(0).queue(|q| q));
    let mut server = BusyEngine::new(70);
    server.apply(objects(&[with_queues(level.build(), -1, 8)], &[]));
    let batch = server.id("batch");
    for number in 0..300 {
        assert_eq!(server.arrive(batch, number, ONE_SEAT), Came::Started);
    }
    server.pass(10 * SECOND);
    server.adjust();
    let level = server.control("batch");
    assert_eq!((level.statistics().high_watermark, level.limits().max, level.current_limit()), (300, 60, 60));
}

#[test]
fn cl_16_an_exempt_level_has_what_it_uses() {
    let mut server = BusyEngine::new(70);
    let exempt = server.id("exempt");
    for number in 0..300 {
        assert_eq!(server.arrive(exempt, number, ONE_SEAT), Came::Started);
    }
    server.adjust();
    assert_eq!(server.control("exempt").current_limit(), 300);
}

/// Requests of a server that is configured anew all the time.
struct Load {
    server: BusyEngine,
    random: u64,
    arrived: u32,
    rejected: usize,
    cancelled: usize,
    finished: usize,
    /// What each request is doing, unless it is gone.
    phases: BTreeMap<u32, Phase>,
}

impl Load {
    fn random(&mut self, below: u64) -> u64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % below
    }

    fn any(&mut self, phase: Phase) -> Option<u32> {
        let those: Vec<_> = self.phases.iter().filter(|(_, is)| **is == phase).map(|(number, _)| *number).collect();
        let choice = usize::try_from(self.random(those.len().max(1) as u64)).expect("a small number");
        those.get(choice).copied()
    }

    fn step(&mut self) {
        match self.random(16) {
            0..6 => self.arrive(),
            6..11 => {
                if let Some(number) = self.any(Phase::Executing) {
                    self.finish(number);
                }
            }
            11 => {
                if let Some(number) = self.any(Phase::Waiting) {
                    assert_eq!(self.server.cancel(number), Some(number));
                    self.phases.remove(&number);
                    self.cancelled += 1;
                }
            }
            12 => {
                if let Some(number) = self.any(Phase::Lingering) {
                    self.release(number);
                }
            }
            13 => self.server.adjust(),
            _ => self.configure(),
        }
        if self.server.engine.wants_reapply() {
            self.server.reapply();
        }
        self.server.pass(MILLISECOND);
        self.note_started();
        self.check();
    }

    fn note_started(&mut self) {
        for number in std::mem::take(&mut self.server.started) {
            self.phases.insert(number, Phase::Executing);
        }
    }

    /// Everything comes to its end, with no objects any more.
    fn end(&mut self) {
        self.server.apply(Objects::default());
        loop {
            self.note_started();
            if let Some(number) = self.any(Phase::Executing) {
                self.finish(number);
            } else if let Some(number) = self.any(Phase::Lingering) {
                self.release(number);
            } else {
                break;
            }
            self.check_seats();
        }
        self.server.reapply();
    }

    fn arrive(&mut self) {
        let ids: Vec<_> = self.server.engine.levels().map(|view| view.control.id()).collect();
        let choice = usize::try_from(self.random(ids.len() as u64)).expect("a small number");
        let work = if self.random(3) == 0 { LINGERING } else { WorkEstimate::seats(1 + self.arrived % 3) };
        self.arrived += 1;
        match self.server.arrive(ids[choice], self.arrived, work) {
            Came::Started => {}
            Came::Waiting => drop(self.phases.insert(self.arrived, Phase::Waiting)),
            Came::Rejected => self.rejected += 1,
            Came::Nowhere => panic!("the level is there"),
        }
    }

    fn finish(&mut self, number: u32) {
        match self.server.finish(number) {
            Some(Finish::Released(_)) => drop(self.phases.remove(&number)),
            Some(Finish::Lingering { .. }) => drop(self.phases.insert(number, Phase::Lingering)),
            None => panic!("{number} is executing"),
        }
        self.finished += 1;
    }

    /// A lingering request ends. Its level may be gone.
    fn release(&mut self, number: u32) {
        self.server.release(number);
        self.phases.remove(&number);
    }

    /// Some of three levels, each with few or many queues or none.
    fn configure(&mut self) {
        let mut levels = Vec::new();
        for name in ["a", "b", "c"] {
            match self.random(4) {
                0 => levels.push(rejecting(name, 10)),
                1 => levels.push(queuing(name)),
                2 => levels.push(PriorityLevelConfiguration::builder(name).limited(|l| l.queue(|q| q)).build()),
                _ => {}
            }
        }
        self.server.apply(objects(&levels, &[]));
    }

    /// What the engine counts is what was seen from outside.
    fn check(&self) {
        self.check_seats();
        let seen = |phase| self.phases.values().filter(|is| **is == phase).count();
        let sets = || self.server.engine.levels().map(|view| view.queue_set);
        let executing = sets().map(QueueSet::executing).sum::<usize>();
        let waiting = sets().map(QueueSet::waiting).sum::<usize>();
        assert_eq!((executing, waiting), (seen(Phase::Executing), seen(Phase::Waiting)));
        let ended = self.rejected + self.cancelled + self.finished;
        assert_eq!(self.arrived as usize, ended + executing + waiting);
    }

    /// The totals of each level are the sums over its requests and queues.
    fn check_seats(&self) {
        for view in self.server.engine.levels() {
            let set = view.queue_set;
            let in_use = set.requests().filter(|request| request.phase != Phase::Waiting);
            let seats: i64 = in_use.map(|request| i64::from(request.work.max_seats())).sum();
            assert_eq!(set.seats_in_use(), seats, "{}", view.name);
            let queued: usize = set.queues().map(|queue| queue.waiting).sum();
            assert_eq!(set.waiting(), queued, "{}", view.name);
            assert_eq!(set.concurrency_limit(), view.control.current_limit(), "{}", view.name);
        }
    }
}

#[test]
fn reconfiguration_under_load_loses_no_request_and_no_seat() {
    for seed in 0..20 {
        let mut load = Load {
            server: BusyEngine::new(12),
            random: seed,
            arrived: 0,
            rejected: 0,
            cancelled: 0,
            finished: 0,
            phases: BTreeMap::new(),
        };
        for _ in 0..1_000 {
            load.step();
        }
        assert!(load.rejected > 0 && load.cancelled > 0 && load.finished > 0, "seed {seed} puts no load on the server");

        load.end();
        assert_eq!(load.server.names(), ["catch-all", "exempt"], "seed {seed}");
        for view in load.server.engine.levels() {
            assert_eq!((view.queue_set.seats_in_use(), view.queue_set.waiting()), (0, 0), "seed {seed}, {}", view.name);
        }
        assert_eq!(load.arrived as usize, load.rejected + load.cancelled + load.finished, "seed {seed}");
    }
}
