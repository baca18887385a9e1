//! Borrowing at once in its plainest form: every sum is computed anew, word for word after LB-1 to LB-7. Each level is one
//! queue, first in, first out.

use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};

use evenkeel_engine::borrowing::Stake;

/// A request as the model knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PlainRequest {
    pub(crate) number: u64,
    pub(crate) seats: i64,
    /// The seats that it counts for among the long-running requests of its level: those that it arrived with, or none.
    pub(crate) long_seats: i64,
}

/// All levels, by name.
#[derive(Debug, Default)]
pub(crate) struct PlainLedger {
    pub(crate) seats: i64,
    pub(crate) levels: BTreeMap<String, PlainLevel>,
    grants: u64,
}

#[derive(Debug, Default)]
pub(crate) struct PlainLevel {
    /// The place of the level in the order of ties.
    pub(crate) index: usize,
    pub(crate) stake: Stake,
    pub(crate) queues: bool,
    pub(crate) running: Vec<PlainRequest>,
    pub(crate) waiting: VecDeque<PlainRequest>,
    pub(crate) served: u64,
}

impl PlainRequest {
    /// As it arrives where one request gets that many seats at most.
    fn at_most(self, widest: i64) -> Self {
        Self { seats: self.seats.min(widest), long_seats: self.long_seats.min(widest), ..self }
    }
}

impl PlainLevel {
    pub(crate) fn in_use(&self) -> i64 {
        self.running.iter().map(|request| request.seats).sum()
    }

    fn lack(&self) -> i64 {
        (self.stake.floor - self.in_use()).max(0)
    }

    /// The class of LB-2 that the request would start by, if there were seats.
    fn class(&self, request: PlainRequest) -> Option<u8> {
        let (u, w) = (self.in_use(), request.seats);
        let held_for_long: i64 = self.running.iter().map(|running| running.long_seats).sum();
        let may_borrow = request.long_seats == 0 || held_for_long + w <= self.stake.nominal;
        if u + w <= self.stake.floor {
            Some(1)
        } else if u + w <= self.stake.nominal {
            Some(2)
        } else if u == 0 && self.stake.nominal > 0 && w <= self.stake.max {
            // Wider than the level's own seats: alone, or perhaps never (LB-6).
            Some(2)
        } else if u + w <= self.stake.max && may_borrow {
            Some(3)
        } else {
            None
        }
    }

    /// What the levels of a class are ordered by (LB-3), as a fraction.
    fn part(&self, class: u8) -> (i64, i64) {
        let Stake { floor, nominal, weight, .. } = self.stake;
        match class {
            1 => (self.in_use(), floor),
            2 => (self.in_use(), nominal),
            _ => (self.in_use() - nominal, weight),
        }
    }
}

impl PlainLedger {
    /// `S − Σu` (LB-1): exempt levels are among those that use seats, but never more than their own.
    pub(crate) fn free(&self) -> i64 {
        let counted = |level: &PlainLevel| match level.stake {
            Stake { is_exempt: true, nominal, .. } => level.in_use().min(nominal),
            _ => level.in_use(),
        };
        self.seats - self.levels.values().map(counted).sum::<i64>()
    }

    /// `R(i)` (LB-1).
    fn reserve_of_others(&self, name: &str) -> i64 {
        self.levels.iter().filter(|(other, _)| *other != name).map(|(_, level)| level.lack()).sum()
    }

    /// Whether there are seats for a request of that class (LB-2).
    fn has_seats(&self, name: &str, class: u8, request: PlainRequest) -> bool {
        if class == 1 {
            self.free() >= request.seats
        } else {
            self.free() - request.seats >= self.reserve_of_others(name)
        }
    }

    /// The most seats of one request of a level: what it gets if all others keep to their floors.
    pub(crate) fn widest(&self, name: &str) -> i64 {
        let others: i64 = self.levels.iter().filter(|(other, _)| *other != name).map(|(_, l)| l.stake.floor).sum();
        (self.seats - others).min(self.levels[name].stake.max).max(1)
    }

    /// The request that is next in a level. One that is too wide by now is narrowed.
    fn head(&self, name: &str) -> Option<PlainRequest> {
        let head = *self.levels[name].waiting.front()?;
        Some(PlainRequest { seats: head.seats.min(self.widest(name)), ..head })
    }

    /// The level whose next request starts: class by class, and in a class the least part first (LB-3). Where the first of a
    /// class lacks seats nobody else gets them (LB-6), but for levels below their floors.
    fn next(&self) -> Option<String> {
        let heads = || self.levels.iter().filter_map(|(name, level)| Some((name, level, self.head(name)?)));
        if let Some((name, ..)) = heads().filter(|(_, level, _)| level.stake.is_exempt).min_by_key(|(_, l, _)| l.index)
        {
            return Some(name.clone());
        }
        for class in 1..=3 {
            let mut of_class: Vec<_> = heads().filter(|(_, level, head)| level.class(*head) == Some(class)).collect();
            if of_class.is_empty() {
                continue;
            }
            of_class.sort_by(|(_, one, _), (_, other, _)| {
                let ((a, b), (c, d)) = (one.part(class), other.part(class));
                let parts = (a * d.max(1)).cmp(&(c * b.max(1)));
                parts.then(one.served.cmp(&other.served)).then(one.index.cmp(&other.index))
            });
            let has_seats = |(name, _, head): &(&String, &PlainLevel, PlainRequest)| self.has_seats(name, class, *head);
            let chosen = if class == 1 { of_class.iter().find(|head| has_seats(head)) } else { of_class.first() };
            return chosen.filter(|head| has_seats(head)).map(|(name, ..)| (*name).clone());
        }
        None
    }

    /// A request arrives. Tells what starts; if it neither starts nor waits, it is rejected.
    pub(crate) fn arrive(&mut self, name: &str, request: PlainRequest) -> Vec<u64> {
        let widest = self.widest(name);
        let level = self.levels.get_mut(name).expect("a level");
        if level.stake.is_exempt {
            level.running.push(request.at_most(widest));
            return vec![request.number];
        }
        let (has_waited, served) = (!level.waiting.is_empty(), level.served);
        level.waiting.push_back(request.at_most(widest));
        let mut started = Vec::new();
        if !has_waited && self.next().as_deref() == Some(name) {
            self.start(name, &mut started);
            // Its place among equals is that of levels that had to wait.
            self.levels.get_mut(name).expect("a level").served = served;
            self.grants -= 1;
        }
        let level = self.levels.get_mut(name).expect("a level");
        if !level.queues && started.is_empty() {
            level.waiting.pop_back();
        }
        started.extend(self.settle());
        started
    }

    /// A request gives its seats back, or leaves its queue.
    pub(crate) fn end(&mut self, name: &str, number: u64) -> Vec<u64> {
        let level = self.levels.get_mut(name).expect("a level");
        level.running.retain(|request| request.number != number);
        level.waiting.retain(|request| request.number != number);
        self.settle()
    }

    /// Starts whatever may start.
    pub(crate) fn settle(&mut self) -> Vec<u64> {
        let mut started = Vec::new();
        while let Some(name) = self.next() {
            self.start(&name, &mut started);
        }
        started
    }

    fn start(&mut self, name: &str, started: &mut Vec<u64>) {
        self.grants += 1;
        let request = self.head(name).expect("it is next");
        let level = self.levels.get_mut(name).expect("a level");
        level.waiting.pop_front();
        level.served = self.grants;
        level.running.push(request);
        started.push(request.number);
        // LB-2: no start takes a level above its limit, or uses a seat of another level's floor.
        let (level, u) = (&self.levels[name], self.levels[name].in_use());
        assert!(level.stake.is_exempt || u <= level.stake.max, "{name} is above its limit: {self:?}");
        let reserve = self.reserve_of_others(name);
        assert!(
            level.stake.is_exempt || u <= level.stake.floor || self.free() >= reserve,
            "{name} uses a floor: {self:?}"
        );
    }

    /// A new ledger begins: nobody has been granted anything.
    pub(crate) fn forget_grants(&mut self) {
        self.grants = 0;
        self.levels.values_mut().for_each(|level| level.served = 0);
    }

    /// What must hold after every event, whatever happened.
    pub(crate) fn check(&self) {
        for (name, level) in &self.levels {
            let Some(head) = self.head(name) else { continue };
            let is_below_floor = level.in_use() + head.seats <= level.stake.floor;
            assert!(!is_below_floor || self.free() < head.seats, "{name} is below its floor and waits: {self:?}");
            // Work is conserved: one seat that is kept for nobody is used, unless a wide request is to have it (LB-6).
            let is_narrow = self.levels.keys().all(|name| self.head(name).is_none_or(|head| head.seats == 1));
            let could_start = level.class(head).is_some_and(|class| self.has_seats(name, class, head));
            assert!(!is_narrow || !could_start, "{name} waits although it may start: {self:?}");
        }
    }
}

/// Of two lists that should be equal: fails with what differs.
pub(crate) fn assert_same(found: &[u64], expected: &[u64], event: impl Fn() -> String) {
    assert_eq!(found.cmp(expected), Ordering::Equal, "{}: started {found:?}, the model {expected:?}", event());
}
