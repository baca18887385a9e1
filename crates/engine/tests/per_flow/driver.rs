//! Random events, for the discipline and for the plain model of it.

use evenkeel_api::annotations::SeatShare;
use evenkeel_engine::queue_set::{
    Arrival, Effects, Ended, Finish, FlowLimits, Mode, Phase, QueueSet, QueueSetConfig, QueuingDiscipline, Rejection,
    RequestId,
};
use evenkeel_engine::time::{Instant, MILLISECOND};
use evenkeel_engine::{Flow, WorkEstimate};

use crate::plain::{Happened, New, PlainLevel};

/// What happens to the level.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) seats: i64,
    pub(crate) flows: u64,
    /// Queues, hand, length.
    pub(crate) limits: (usize, usize, usize),
    pub(crate) seats_max: u64,
    pub(crate) weight_max: u64,
    pub(crate) linger: bool,
    /// Whether requests that run are charged more or less, and get other seats.
    pub(crate) changes: bool,
    /// How many nanoseconds the clock goes on by, times a number below 20.
    pub(crate) tick: i64,
    /// What one flow may take; the level goes from one to the other now and then.
    pub(crate) flow_limits: [FlowLimits; 2],
}

/// Lets the same happen to both, and compares.
pub(crate) struct Driver {
    load: Load,
    set: QueueSet<usize>,
    plain: PlainLevel,
    random: u64,
    now: i64,
    requests: Vec<Option<RequestId>>,
    waiting: Vec<usize>,
    running: Vec<usize>,
    lingering: Vec<usize>,
    seats: i64,
    flow_limits: FlowLimits,
    /// How often seats were seen to be kept for newcomers.
    pub(crate) kept: usize,
    /// How often the keys were counted anew.
    pub(crate) rebased: usize,
}

/// Notes what the discipline says.
#[derive(Default)]
pub(crate) struct Noted(pub(crate) Vec<(Happened, RequestId)>, usize);

// === impl Driver ===

impl Driver {
    pub(crate) fn new(load: Load, seed: u64) -> Self {
        Self {
            load,
            set: QueueSet::new(config(load, load.seats, load.flow_limits[0]), Instant::from_nanos(0)),
            plain: PlainLevel::new(load.seats, load.limits, load.flow_limits[0]),
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            now: 0,
            requests: Vec::new(),
            waiting: Vec::new(),
            running: Vec::new(),
            lingering: Vec::new(),
            seats: load.seats,
            flow_limits: load.flow_limits[0],
            kept: 0,
            rebased: 0,
        }
    }

    pub(crate) fn run(&mut self, events: usize) {
        for event in 0..events {
            // Times that stand still are frequent: they make ties.
            if self.below(3) > 0 {
                self.now += i64::try_from(self.below(20)).unwrap() * self.load.tick;
            }
            self.step();
            self.check(event);
        }
    }

    fn step(&mut self) {
        match self.below(100) {
            0..50 => self.arrive(),
            50..55 if self.load.changes => self.charge(),
            55..62 if self.load.changes => self.resize(),
            50..85 => self.finish(),
            85..93 => self.release(),
            // Now and then everybody gives up.
            93 if self.below(20) == 0 => (0..self.waiting.len()).for_each(|_| self.cancel()),
            93..98 => self.cancel(),
            98 if self.below(10) == 0 => self.set_flow_limits(),
            _ => self.set_seats(),
        }
    }

    fn below(&mut self, end: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    fn pick(&mut self, from: fn(&mut Self) -> &mut Vec<usize>) -> Option<usize> {
        let length = u64::try_from(from(self).len()).unwrap();
        let index = if length == 0 { return None } else { self.below(length) };
        Some(from(self).swap_remove(usize::try_from(index).unwrap()))
    }

    fn arrive(&mut self) {
        // Some flows send much more than others.
        let flow = self.below(self.load.flows).min(self.below(self.load.flows));
        let weight = u16::try_from(1 + flow % self.load.weight_max).unwrap();
        let seats = u32::try_from(1 + self.below(self.load.seats_max)).unwrap();
        let lingers = self.load.linger && self.below(4) == 0;
        let work = WorkEstimate {
            initial_seats: seats,
            final_seats: u32::from(lingers),
            additional_latency: if lingers { MILLISECOND } else { 0 },
        };
        let request = self.requests.len();
        self.requests.push(None);
        let expected = self.plain.arrive(self.now, New { request, flow, weight, seats });
        let (mut noted, now) = (Noted::default(), Instant::from_nanos(self.now));
        match self.set.arrive(now, Flow::from(flow).with_weight(weight), work, request, &mut noted) {
            Arrival::Started { id, .. } => self.requests[request] = Some(id),
            Arrival::Waiting { id, .. } => {
                self.requests[request] = Some(id);
                self.waiting.push(request);
            }
            Arrival::Rejected { reason, payload, .. } => {
                assert_eq!(reason, Rejection::QueueFull);
                assert_eq!(expected, [Happened::Rejected(payload)]);
                return;
            }
        }
        self.take_over(&expected, noted);
    }

    fn finish(&mut self) {
        let Some(request) = self.pick(|driver| &mut driver.running) else { return };
        let mut noted = Noted::default();
        let finish = self.set.finish(Instant::from_nanos(self.now), self.requests[request].unwrap(), &mut noted);
        let lingers = matches!(finish.expect("it runs"), Finish::Lingering { .. });
        if lingers {
            self.lingering.push(request);
        }
        let expected = self.plain.finish(self.now, request, lingers);
        self.take_over(&expected, noted);
    }

    /// One of the requests that run.
    fn pick_running(&mut self) -> Option<usize> {
        let request = self.pick(|driver| &mut driver.running)?;
        self.running.push(request);
        Some(request)
    }

    fn charge(&mut self) {
        let Some(request) = self.pick_running() else { return };
        let seat_time = i64::try_from(self.below(60)).unwrap() * self.load.tick - 20 * self.load.tick;
        let (id, mut noted) = (self.requests[request].unwrap(), Noted::default());
        assert!(self.set.charge(Instant::from_nanos(self.now), id, seat_time, &mut noted));
        self.plain.charge_more(request, seat_time);
        self.take_over(&[], noted);
    }

    fn resize(&mut self) {
        let Some(request) = self.pick_running() else { return };
        let seats = u32::try_from(1 + self.below(self.load.seats_max + 2)).unwrap();
        let (id, mut noted) = (self.requests[request].unwrap(), Noted::default());
        assert!(self.set.set_seats(Instant::from_nanos(self.now), id, seats, &mut noted).is_some());
        let expected = self.plain.resize(self.now, request, seats);
        self.take_over(&expected, noted);
    }

    fn release(&mut self) {
        let Some(request) = self.pick(|driver| &mut driver.lingering) else { return };
        let mut noted = Noted::default();
        let id = self.requests[request].unwrap();
        assert_eq!(self.set.release(Instant::from_nanos(self.now), id, &mut noted), Some(request));
        let expected = self.plain.release(self.now, request);
        self.take_over(&expected, noted);
    }

    fn cancel(&mut self) {
        let Some(request) = self.pick(|driver| &mut driver.waiting) else { return };
        let mut noted = Noted::default();
        let id = self.requests[request].unwrap();
        assert_eq!(self.set.cancel(Instant::from_nanos(self.now), id, &mut noted), Some(request));
        let expected = self.plain.cancel(self.now, request);
        self.take_over(&expected, noted);
    }

    fn set_seats(&mut self) {
        self.seats = self.load.seats + i64::try_from(self.below(3)).unwrap();
        let mut noted = Noted::default();
        self.set.configure(Instant::from_nanos(self.now), config(self.load, self.seats, self.flow_limits), &mut noted);
        let expected = self.plain.set_seats(self.now, self.seats);
        self.take_over(&expected, noted);
    }

    /// Other rules under load (BM-3).
    fn set_flow_limits(&mut self) {
        self.flow_limits = self.load.flow_limits[usize::try_from(self.below(2)).unwrap()];
        let mut noted = Noted::default();
        self.set.configure(Instant::from_nanos(self.now), config(self.load, self.seats, self.flow_limits), &mut noted);
        let expected = self.plain.set_flow_limits(self.now, self.flow_limits);
        self.take_over(&expected, noted);
    }

    fn take_over(&mut self, expected: &[Happened], noted: Noted) {
        let happened: Vec<_> = noted.0.iter().map(|(happened, _)| *happened).collect();
        assert_eq!(happened, expected, "at {} ns", self.now);
        self.rebased += noted.1;
        for (happened, id) in noted.0 {
            match happened {
                Happened::Started(request) => {
                    assert!(self.requests[request].is_none_or(|known| known == id));
                    self.waiting.retain(|&other| other != request);
                    self.running.push(request);
                }
                Happened::Rejected(request) => {
                    assert_eq!(self.requests[request], Some(id));
                    assert_eq!(self.set.phase(id), None);
                    self.waiting.retain(|&other| other != request);
                }
            }
        }
    }

    fn check(&mut self, event: usize) {
        assert_eq!(self.set.waiting(), self.waiting.len(), "event {event}");
        assert_eq!(self.set.waiting(), self.plain.waiting(), "event {event}");
        assert_eq!(self.set.executing(), self.running.len(), "event {event}");
        assert_eq!(self.set.seats_in_use(), self.plain.seats_in_use(), "event {event}: seats are conserved");
        assert!(!self.plain.wastes_seats(), "event {event}: somebody waits although seats are free");
        assert_eq!(self.set.kept_seats(), self.plain.kept_seats(), "event {event}");
        self.kept += usize::from(self.set.kept_seats() > 0 && self.set.waiting() > 0);
        // After a change of the limits, what runs goes on.
        let is_limited =
            self.load.flow_limits[0] == self.load.flow_limits[1] && self.load.limits_stay() && !self.load.changes;
        assert!(!is_limited || self.plain.keeps_flow_limits(), "event {event}: a flow holds more than it may");
        let (waiting, seats) =
            self.set.queues().fold((0, 0), |sum, queue| (sum.0 + queue.waiting, sum.1 + queue.seats_in_use));
        assert_eq!((waiting, seats), (self.set.waiting(), self.set.seats_in_use()), "event {event}: sums over flows");
    }
}

pub(crate) fn config(load: Load, seats: i64, flow_limits: FlowLimits) -> QueueSetConfig {
    let (queues, hand, length) = load.limits;
    let [queues, hand, length] = [queues, hand, length].map(|number| i64::try_from(number).unwrap());
    let mode = Mode::queue(queues, hand, length).unwrap().with_discipline(QueuingDiscipline::PerFlow);
    let mode = mode.with_flow_limits(flow_limits);
    QueueSetConfig { mode, concurrency_limit: seats }
}

// === impl Load ===

impl Load {
    /// Whether the most seats of one flow are the same however many seats the level has.
    fn limits_stay(&self) -> bool {
        !matches!(self.flow_limits[0].flow_seats_max, Some(SeatShare::Percent(_)))
    }
}

// === impl Noted ===

impl Effects<usize> for Noted {
    fn started(&mut self, id: RequestId, request: &mut usize) {
        self.0.push((Happened::Started(*request), id));
    }

    fn epoch_advanced(&mut self, clean: bool) {
        assert!(clean);
        self.1 += 1;
    }

    fn displaced(&mut self, ended: Ended<usize>) {
        assert_eq!((ended.phase, ended.started), (Phase::Waiting, None));
        self.0.push((Happened::Rejected(ended.payload), ended.id));
    }
}
