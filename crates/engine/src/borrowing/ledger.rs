//! Borrowing at once: who may start a request now, given the seats that all levels use at this moment (LB-1 to LB-7).
//!
//! A [`Ledger`] counts the seats in use of every level and knows the request that is next in each level in which requests
//! wait. There is no control loop: every start asks the ledger, and every seat that becomes free goes to the level that
//! the ledger names.
//!
//! ```
//! use evenkeel_engine::borrowing::{Ledger, Stake, Wish};
//!
//! let stake = Stake { floor: 2, nominal: 5, max: 10, weight: 1, is_exempt: false };
//! let mut ledger = Ledger::new(10, [(0, stake), (1, stake)]);
//!
//! // One level borrows what the other does not use, but not its floor (LB-2).
//! let one_seat = Wish::new(1);
//! assert_eq!((0..10).filter(|_| ledger.try_start(0, one_seat)).count(), 8);
//! assert!(ledger.try_start(1, one_seat) && ledger.try_start(1, one_seat));
//!
//! // Both wait. The first seat that becomes free goes to the level that is below its nominal seats (LB-3).
//! ledger.set_wish(0, Some(one_seat));
//! ledger.set_wish(1, Some(one_seat));
//! assert_eq!(ledger.grant_next(), None);
//! ledger.give_back(0, 1);
//! let (level, granted) = ledger.grant_next().unwrap();
//! assert_eq!((level, granted.seats), (1, 1));
//! ```

use std::cmp::Ordering;
use std::num::NonZeroI64;

use crate::queue_set::Recipient;

/// The seats that a level may use under borrowing at once (LB-1).
///
/// Not `#[non_exhaustive]`: callers make it, and have to give all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stake {
    /// The seats that nobody can take from it.
    pub floor: i64,
    /// The seats that it has of its own.
    pub nominal: i64,
    /// The seats that it can have at most.
    pub max: i64,
    /// The level's weight beside other levels that borrow.
    pub weight: i64,
    /// Whether it limits nothing: its requests start whatever there is.
    pub is_exempt: bool,
}

/// The request that is next in a level.
///
/// Not `#[non_exhaustive]`: callers make it, and have to give all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wish {
    /// The seats that it takes.
    pub seats: i64,
    /// For a long-running request: the seats that all such requests of its level would hold if it started. They do not
    /// borrow, so that is at most the nominal seats (LB-5). `None` for any other request.
    pub held_for_long: Option<NonZeroI64>,
    /// How many of the seats that its level could use have to stay free if it starts: they are kept for newcomers of the level (PF-10).
    pub kept: i64,
}

/// Seats that a level is granted for a request that waits.
///
/// Not `#[non_exhaustive]`: it is passed on to the level as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Granted {
    /// How many.
    pub seats: i64,
    /// For whom.
    pub to: Recipient,
}

/// The seats of a server, and who uses them. Levels go by small numbers that the caller gives out.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    seats: i64,
    members: Vec<Option<Member>>,
    /// The seats that all levels use, as far as they count (LB-1).
    in_use: i64,
    /// The seats that levels are short of their floors (`R` of LB-1, for all levels).
    reserved: i64,
    wishes: usize,
    grants: u64,
}

#[derive(Debug, Clone, Copy)]
struct Member {
    stake: Stake,
    in_use: i64,
    wish: Option<Wish>,
    /// The request that is next among those that need not leave any seats free, if the first one has to.
    newcomer: Option<Wish>,
    /// When it was last granted seats, as a number that grows: of two levels that are equal otherwise, the one that has
    /// waited longer for a grant is first.
    served: u64,
}

/// By which rule of LB-2 a request may start, in the order in which they are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    BelowFloor,
    BelowNominal,
    Borrowing,
}

/// The place of a level among those that wait: the least is first (LB-3).
#[derive(Debug, Clone, Copy)]
struct Rank {
    class: Class,
    numerator: i64,
    denominator: i64,
    served: u64,
}

// === impl Wish ===

impl Wish {
    /// An ordinary request of that many seats.
    pub const fn new(seats: i64) -> Self {
        Self { seats, held_for_long: None, kept: 0 }
    }

    /// A long-running request of that many seats, in a level whose long-running requests hold `held` already.
    pub const fn long_running(seats: i64, held: i64) -> Self {
        Self { seats, held_for_long: NonZeroI64::new(held.saturating_add(seats)), kept: 0 }
    }

    /// The same, but that many seats have to stay free for newcomers of the level (PF-10).
    #[must_use]
    pub const fn keeping(self, kept: i64) -> Self {
        Self { kept, ..self }
    }

    /// Whether it may start while its level uses more than its nominal seats.
    ///
    /// A long-running request may, as long as such requests alone would not use more: then it is the short ones that
    /// borrow, and they give their seats back soon. If it had to wait for those to end, nobody else of the level could
    /// borrow meanwhile.
    #[inline]
    pub fn may_borrow(self, nominal: i64) -> bool {
        self.held_for_long.is_none_or(|held| held.get() <= nominal)
    }
}

// === impl Ledger ===

impl Ledger {
    /// A server with that many seats, and its levels.
    pub fn new(seats: i64, stakes: impl IntoIterator<Item = (usize, Stake)>) -> Self {
        let mut ledger = Self::default();
        ledger.configure(seats, stakes);
        ledger
    }

    /// The server has so many seats and these levels from now on (LB-7). What is in use stays in use: a level above its limit
    /// starts nothing until enough of its requests have ended. Levels that are not among them are forgotten.
    pub fn configure(&mut self, seats: i64, stakes: impl IntoIterator<Item = (usize, Stake)>) {
        self.seats = seats.max(0);
        let mut before = std::mem::take(&mut self.members);
        for (level, stake) in stakes {
            if self.members.len() <= level {
                self.members.resize(level + 1, None);
            }
            let known = before.get_mut(level).and_then(Option::take);
            let new = Member { stake, in_use: 0, wish: None, newcomer: None, served: 0 };
            self.members[level] = Some(known.map_or(new, |known| Member { stake, ..known }));
        }
        let members = || self.members.iter().flatten();
        self.in_use = members().map(Member::counted).sum();
        self.reserved = members().map(Member::lack).fold(0, i64::saturating_add);
        self.wishes = members().filter(|member| member.wish.is_some()).count();
    }

    /// A request arrives at a level in which nobody waits. Takes its seats if it may start (LB-2).
    pub fn try_start(&mut self, level: usize, wish: Wish) -> bool {
        let Some(member) = self.member(level) else { return false };
        let may_start = if self.wishes == 0 {
            self.leaves_kept(&member, wish)
                && member.class(wish).is_some_and(|class| self.has_seats(&member, class, wish))
        } else {
            self.set_wish(level, Some(wish));
            let is_next = self.next().is_some_and(|(next, _)| next == level);
            self.set_wish(level, None);
            is_next
        };
        if may_start {
            self.take(level, wish.seats);
        }
        may_start
    }

    /// Requests of the level use more seats, whatever there is.
    pub fn take(&mut self, level: usize, seats: i64) {
        self.change(level, seats);
    }

    /// Seats of the level are free again. [`grant_next`](Self::grant_next) says who gets them.
    pub fn give_back(&mut self, level: usize, seats: i64) {
        self.change(level, -seats);
    }

    /// Tells the ledger which request is next in the level; `None` if none waits there.
    pub fn set_wish(&mut self, level: usize, wish: Option<Wish>) {
        self.set_wishes(level, wish, None);
    }

    /// The same, and the request that is next among those that need not leave any seats free: it may start while the first one
    /// would take the seats that are kept for it (PF-10).
    pub fn set_wishes(&mut self, level: usize, wish: Option<Wish>, newcomer: Option<Wish>) {
        let Some(member) = self.members.get_mut(level).and_then(Option::as_mut) else { return };
        self.wishes -= usize::from(member.wish.is_some());
        self.wishes += usize::from(wish.is_some());
        (member.wish, member.newcomer) = (wish, newcomer);
    }

    /// The level whose next request may start now, and the seats that it is granted. They count as used, and the level has
    /// no wish any more until it says so. To be called until there is nobody left, after every event.
    pub fn grant_next(&mut self) -> Option<(usize, Granted)> {
        if self.wishes == 0 {
            return None;
        }
        let (level, granted) = self.next()?;
        self.set_wish(level, None);
        self.grants += 1;
        if let Some(member) = self.members.get_mut(level).and_then(Option::as_mut) {
            member.served = self.grants;
        }
        self.take(level, granted.seats);
        Some((level, granted))
    }

    /// The level is gone, and with it the seats that it used.
    pub fn remove(&mut self, level: usize) {
        self.set_wish(level, None);
        self.set_in_use(level, 0);
        if let Some(member) = self.members.get_mut(level).and_then(Option::take) {
            self.reserved = self.reserved.saturating_sub(member.lack());
        }
    }

    /// The seats that the level uses, as somebody else has counted them.
    pub fn set_in_use(&mut self, level: usize, in_use: i64) {
        if let Some(member) = self.member(level) {
            self.change(level, in_use - member.in_use);
        }
    }

    /// The seats that the level uses.
    pub fn in_use(&self, level: usize) -> i64 {
        self.member(level).map_or(0, |member| member.in_use)
    }

    /// The seats that nobody uses; below zero if more are in use than there are (LB-7).
    pub fn free(&self) -> i64 {
        self.seats.saturating_sub(self.in_use)
    }

    /// The free seats that are not kept for a level below its floor; below zero if not all floors can be kept.
    pub fn unreserved(&self) -> i64 {
        self.free().saturating_sub(self.reserved)
    }

    /// Whether requests wait anywhere.
    pub fn has_wishes(&self) -> bool {
        self.wishes > 0
    }

    /// The seats that the level uses, and those that it could use now in addition.
    pub fn usable(&self, level: usize) -> i64 {
        let Some(member) = self.member(level) else { return 0 };
        if member.stake.is_exempt {
            return member.stake.floor.max(member.in_use);
        }
        member.in_use + self.usable_more(&member)
    }

    /// The most seats that one request of the level can wait for: those that it gets for certain when others keep to their
    /// floors. A wider request has to do with these (LB-6).
    pub fn widest(&self, level: usize) -> i64 {
        let Some(member) = self.member(level) else { return 1 };
        let others = self.members.iter().flatten().fold(0, |sum: i64, other| sum.saturating_add(other.stake.floor));
        let certain = self.seats.saturating_sub(others.saturating_sub(member.stake.floor));
        certain.min(member.stake.max).max(1)
    }

    fn member(&self, level: usize) -> Option<Member> {
        self.members.get(level).copied().flatten()
    }

    fn change(&mut self, level: usize, seats: i64) {
        let Some(member) = self.members.get_mut(level).and_then(Option::as_mut) else { return };
        let (lack, counted) = (member.lack(), member.counted());
        member.in_use += seats;
        self.in_use += member.counted() - counted;
        self.reserved = self.reserved.saturating_add(member.lack() - lack);
    }

    /// Whether there are seats for a request of that class. Beyond its floor, a level uses no seat of another level's floor; what
    /// is reserved for the level itself it may use.
    fn has_seats(&self, member: &Member, class: Class, wish: Wish) -> bool {
        match class {
            Class::BelowFloor => self.free() >= wish.seats,
            Class::BelowNominal | Class::Borrowing => self.unreserved().saturating_add(member.lack()) >= wish.seats,
        }
    }

    /// The seats that a level could use now in addition.
    fn usable_more(&self, member: &Member) -> i64 {
        let Stake { floor, max, .. } = member.stake;
        let base = member.in_use.max(floor);
        let borrowable = self.unreserved().clamp(0, max.saturating_sub(base).max(0));
        self.free().clamp(0, (base - member.in_use).saturating_add(borrowable))
    }

    /// Whether the seats that are kept for newcomers of a level stay free if a request of the level starts (PF-10).
    fn leaves_kept(&self, member: &Member, wish: Wish) -> bool {
        wish.kept == 0 || self.usable_more(member) >= wish.seats.saturating_add(wish.kept)
    }

    /// The request of a level that may be next, and for whom its seats would be granted.
    fn candidate(&self, member: &Member) -> Option<(Wish, Recipient)> {
        let wish = member.wish?;
        if member.stake.is_exempt || self.leaves_kept(member, wish) {
            return Some((wish, Recipient::Anybody));
        }
        member.newcomer.map(|wish| (wish, Recipient::Newcomer))
    }

    /// The level whose request may start next, and what it is granted (LB-3).
    ///
    /// A request that lacks seats keeps all others of its class and of later classes waiting, so that a wide one is not
    /// starved (LB-6). The exception are levels below their floors: none waits while there are seats for it.
    fn next(&self) -> Option<(usize, Granted)> {
        let mut first: Option<(Rank, usize, Granted, bool)> = None;
        for (level, member) in self.members.iter().enumerate() {
            let Some(member) = member else { continue };
            let Some((wish, to)) = self.candidate(member) else { continue };
            let granted = Granted { seats: wish.seats, to };
            if member.stake.is_exempt {
                return Some((level, granted));
            }
            let Some(rank) = member.rank(wish) else { continue };
            let has_seats = self.has_seats(member, rank.class, wish);
            let is_before = first.is_none_or(|(best, _, _, best_has_seats)| {
                let by_seats = match (rank.class, best.class) {
                    (Class::BelowFloor, Class::BelowFloor) => best_has_seats.cmp(&has_seats),
                    _ => Ordering::Equal,
                };
                by_seats.then_with(|| rank.compare(best)).is_lt()
            });
            if is_before {
                first = Some((rank, level, granted, has_seats));
            }
        }
        first.filter(|(.., has_seats)| *has_seats).map(|(_, level, granted, _)| (level, granted))
    }
}

// === impl Member ===

impl Member {
    /// The seats that it is short of its floor.
    fn lack(&self) -> i64 {
        (self.stake.floor - self.in_use).max(0)
    }

    /// The seats that it uses, as far as they count: requests of an exempt level take nothing away from other levels but the
    /// seats that the level has of its own (LB-1).
    fn counted(&self) -> i64 {
        if self.stake.is_exempt { self.in_use.min(self.stake.nominal.max(0)) } else { self.in_use }
    }

    /// By which rule the request may start if there are seats; `None` if the level is at its limit.
    fn class(&self, wish: Wish) -> Option<Class> {
        let Stake { floor, nominal, max, .. } = self.stake;
        let then = self.in_use.saturating_add(wish.seats);
        // A request that is wider than the level's own seats is served like one within them when nothing else of its level
        // runs: it would wait for ever otherwise while other levels use their own seats (LB-6).
        let is_alone = self.in_use == 0 && nominal > 0;
        if then <= floor {
            Some(Class::BelowFloor)
        } else if then <= nominal {
            Some(Class::BelowNominal)
        } else if then > max {
            None
        } else if is_alone {
            Some(Class::BelowNominal)
        } else {
            wish.may_borrow(nominal).then_some(Class::Borrowing)
        }
    }

    fn rank(&self, wish: Wish) -> Option<Rank> {
        let Stake { floor, nominal, weight, .. } = self.stake;
        let class = self.class(wish)?;
        let (numerator, denominator) = match class {
            Class::BelowFloor => (self.in_use, floor),
            Class::BelowNominal => (self.in_use, nominal),
            Class::Borrowing => (self.in_use.saturating_sub(nominal), weight),
        };
        Some(Rank { class, numerator, denominator: denominator.max(1), served: self.served })
    }
}

// === impl Rank ===

impl Rank {
    fn compare(self, other: Self) -> Ordering {
        let product = |one: i64, other: i64| i128::from(one) * i128::from(other);
        let part = || product(self.numerator, other.denominator).cmp(&product(other.numerator, self.denominator));
        self.class.cmp(&other.class).then_with(part).then(self.served.cmp(&other.served))
    }
}
