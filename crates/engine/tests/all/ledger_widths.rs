//! Wide requests and exempt ones under borrowing at once (LB-1, LB-2, LB-6), on a ledger alone.

use std::collections::VecDeque;

use evenkeel_engine::borrowing::{Granted, Ledger, Stake, Wish};

const STAKE: Stake = Stake { floor: 0, nominal: 0, max: 0, weight: 1, is_exempt: false };

/// A small generator of random numbers: the same run for the same seed everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, end: i64) -> i64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        i64::try_from(self.0 >> 33).unwrap() % end
    }

    fn index(&mut self, end: usize) -> usize {
        usize::try_from(self.below(i64::try_from(end).unwrap())).unwrap()
    }
}

/// A ledger, and what its levels have.
struct Levels {
    ledger: Ledger,
    stakes: Vec<Stake>,
    running: Vec<Vec<i64>>,
    waiting: Vec<VecDeque<Wish>>,
}

impl Levels {
    fn new(random: &mut Random) -> Self {
        let stakes: Vec<_> = (0..5)
            .map(|level| {
                let nominal = 1 + random.below(12);
                let (floor, max) = (random.below(nominal + 1), nominal + random.below(20));
                Stake { floor, nominal, max, weight: 1 + random.below(9), is_exempt: level == 4 }
            })
            .collect();
        let seats = stakes.iter().map(|stake| stake.nominal).sum();
        let ledger = Ledger::new(seats, stakes.iter().copied().enumerate());
        let count = stakes.len();
        Self { ledger, stakes, running: vec![Vec::new(); count], waiting: vec![VecDeque::new(); count] }
    }

    fn arrive(&mut self, level: usize, seats: i64) {
        if self.stakes[level].is_exempt {
            self.ledger.take(level, seats);
            self.running[level].push(seats);
            return;
        }
        let wish = Wish::new(seats.min(self.ledger.widest(level)));
        if self.waiting[level].is_empty() && self.ledger.try_start(level, wish) {
            self.started(level, wish.seats);
        } else {
            self.waiting[level].push_back(wish);
        }
    }

    fn end(&mut self, level: usize, index: usize) {
        let seats = self.running[level].swap_remove(index);
        self.ledger.give_back(level, seats);
    }

    fn settle(&mut self, level: usize) {
        self.ledger.set_wish(level, self.waiting[level].front().copied());
        while let Some((granted, Granted { seats, .. })) = self.ledger.grant_next() {
            self.waiting[granted].pop_front();
            self.started(granted, seats);
            self.ledger.set_wish(granted, self.waiting[granted].front().copied());
        }
        for (level, stake) in self.stakes.iter().enumerate() {
            let Some(wish) = self.waiting[level].front() else { continue };
            let is_within_floor = self.ledger.in_use(level) + wish.seats <= stake.floor;
            assert!(!is_within_floor || self.ledger.free() < wish.seats, "level {level} is below its floor and waits");
        }
    }

    /// LB-2: no start takes a level above its limit, or uses a seat of another level's floor.
    fn started(&mut self, level: usize, seats: i64) {
        self.running[level].push(seats);
        let (in_use, stake) = (self.ledger.in_use(level), self.stakes[level]);
        assert!(in_use <= stake.max, "level {level} uses {in_use} seats: {stake:?}");
        let others = self.stakes.iter().enumerate().filter(|(other, _)| *other != level);
        let reserve: i64 = others.map(|(other, stake)| (stake.floor - self.ledger.in_use(other)).max(0)).sum();
        assert!(in_use <= stake.floor || self.ledger.free() >= reserve, "level {level} uses the floor of another");
    }
}

/// Widths 1 to 10. `cargo xtask bench modes` does the same ten million times.
#[test]
fn lb_2_no_start_takes_a_level_above_its_limit_or_uses_the_floor_of_another() {
    for seed in 0..40 {
        let mut random = Random(seed);
        let mut levels = Levels::new(&mut random);
        for _ in 0..2_500 {
            let level = random.index(5);
            if random.below(2) == 0 {
                let seats = 1 + random.below(10);
                levels.arrive(level, seats);
            } else if !levels.running[level].is_empty() {
                let index = random.index(levels.running[level].len());
                levels.end(level, index);
            }
            levels.settle(level);
        }
        // LB-6: nobody waits for ever, however wide, while what runs ends in any order.
        while let Some(level) =
            (0..5).filter(|&level| !levels.running[level].is_empty()).max_by_key(|_| random.below(9))
        {
            levels.end(level, 0);
            levels.settle(level);
        }
        assert!(levels.waiting.iter().all(VecDeque::is_empty), "seed {seed}: {:?}", levels.waiting);
    }
}

#[test]
fn lb_2_a_wide_request_that_would_cross_the_floor_keeps_to_the_limit() {
    let stake = Stake { floor: 5, nominal: 5, max: 5, ..STAKE };
    let mut ledger = Ledger::new(10, [(0, stake), (1, stake)]);
    assert!(ledger.try_start(0, Wish::new(4)));
    // One seat of its floor is left: four more would be 8 of 5, on seats of the other level's floor.
    assert!(!ledger.try_start(0, Wish::new(4)));
    for _ in 0..5 {
        assert!(ledger.try_start(1, Wish::new(1)), "a level gets its floor");
    }
    assert!(ledger.try_start(0, Wish::new(1)));
}

#[test]
fn lb_6_a_request_wider_than_its_levels_own_seats_is_not_starved() {
    let narrow = Stake { floor: 0, nominal: 2, max: 10, ..STAKE };
    let busy = Stake { floor: 0, nominal: 8, max: 10, ..STAKE };
    let mut ledger = Ledger::new(10, [(0, narrow), (1, busy)]);
    assert!((0..8).all(|_| ledger.try_start(1, Wish::new(1))));
    ledger.set_wish(0, Some(Wish::new(6)));
    assert_eq!(ledger.grant_next(), None);
    for ended in 1..=4 {
        // The other level always has a request for the seat that it gives back, within its own seats.
        ledger.give_back(1, 1);
        ledger.set_wish(1, Some(Wish::new(1)));
        let granted = ledger.grant_next().map(|(level, granted)| (level, granted.seats));
        assert_eq!(granted, (ended == 4).then_some((0, 6)), "seats are kept for the wide request");
    }
}

#[test]
fn lb_1_exempt_requests_count_with_the_seats_of_their_level_at_most() {
    let limited = Stake { floor: 4, nominal: 8, max: 10, ..STAKE };
    for (own, left) in [(0, 10), (2, 8)] {
        let exempt = Stake { nominal: own, max: own, is_exempt: true, ..STAKE };
        let mut ledger = Ledger::new(10, [(0, exempt), (1, limited)]);
        ledger.take(0, 12);
        assert_eq!(ledger.free(), left, "an exempt level with {own} seats of its own");
        assert_eq!((0..12).filter(|_| ledger.try_start(1, Wish::new(1))).count(), usize::try_from(left).unwrap());
        ledger.give_back(0, 12);
        assert_eq!((ledger.free(), ledger.in_use(0)), (10 - left, 0));
        ledger.configure(10, [(0, exempt), (1, limited)]);
        assert_eq!(ledger.free(), 10 - left);
    }
}
