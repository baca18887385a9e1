//! The ledger of levels that borrow at once, shared by all threads (LB-8).
//!
//! The engine's [`Ledger`] decides, behind a lock. In front of it is a word with the seats that are free and not kept for any
//! level. While no request waits in any level, and every floor can be kept, the word is *open*: a request of a level below its
//! floor starts without changing it, and another takes its seats from the word by one atomic operation. As soon as a request
//! waits, the word is closed, and every decision is taken behind the lock.
//!
//! # Why no seat is counted twice or lost
//!
//! Each level counts its seats in use in a number of its own, which it changes *before* it looks at the word or changes it. A
//! thread that takes the lock closes the word *before* it reads those numbers. So either the lock's holder sees a change, or the
//! thread that made the change sees that the word is closed, takes its change back and asks for the lock. The word counts how
//! often it was closed, so that no thread relies on a word that was closed and opened again meanwhile.
//!
//! A level's number is written only while the lock of the level is held, so that writing it needs no atomic operation of its own:
//! a request takes one such operation when it starts, and one when it ends. Seats that the ledger has granted and that are on
//! their way to the level are counted apart, under the lock of the ledger.
//!
//! # The order of locks
//!
//! The lock of a level, then that of the ledger; never the other way round, and never those of two levels. A seat that goes to
//! another level is a [`Grant`]: it is carried out, and its request woken, after all locks have been given back
//! (`Wakers::wake`).

use std::sync::{Arc, Weak};

use evenkeel_engine::borrowing::{Granted, Ledger, Stake, Wish};
use evenkeel_engine::controller::LedgerTerms;
use evenkeel_engine::level::Account;
use evenkeel_engine::time::Instant;

use crate::control::level::Level;
use crate::control::rare_list::RareList;
use crate::sync::{AtomicI64, AtomicU64, Mutex, MutexGuard, Ordering, PoisonError};

/// The ledger of all levels.
#[derive(Debug)]
pub(crate) struct SharedLedger {
    word: Word,
    state: Mutex<LedgerState>,
}

/// What the lock guards.
#[derive(Debug, Default)]
struct LedgerState {
    ledger: Ledger,
    /// The members, by the indexes of their levels.
    members: Vec<Option<Member>>,
    /// Whether levels are told their new stakes one after the other, so that the word stays closed.
    is_changing: bool,
}

#[derive(Debug)]
struct Member {
    seats: Arc<SeatsInUse>,
    level: Weak<Level>,
    /// The grants that are on their way to the level. The level says what it wishes when they have arrived.
    pending: u32,
}

/// The seats that a level uses. Aligned, so that levels do not get into each other's way.
#[derive(Debug)]
#[repr(align(64))]
struct SeatsInUse {
    /// Written by the thread that holds the lock of the level.
    taken: AtomicI64,
    /// The seats that are on their way to the level. Written by the thread that holds the lock of the ledger. While the word is
    /// open, the number only falls, by the thread that holds the lock of the level.
    granted: AtomicI64,
}

/// The seats that are free and not kept for any level, whether the word is closed, and how often it was.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Word(AtomicU64);

/// A value of the word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Reading(u64);

/// A level's part of the ledger, behind the lock of the level.
#[derive(Debug)]
pub(crate) struct LevelGrants {
    ledger: Arc<SharedLedger>,
    seats: Arc<SeatsInUse>,
    index: usize,
    stake: Stake,
}

/// The account of a level during one event.
#[derive(Debug)]
pub(crate) struct SharedAccount<'a> {
    grants: &'a LevelGrants,
    pub(crate) handover: Handover,
}

/// The grants that an event brought about, to be carried out. Other levels are locked only after the lock of the event's own
/// level has been given back.
#[derive(Debug, Default)]
pub(crate) struct Handover {
    /// The time of the latest event that seats are granted because of. Requests of other levels start then: their own latest
    /// events were earlier.
    pub(crate) at: Instant,
    /// The ledger, if it still has to be asked whether a request may start now.
    unsettled: Option<Arc<SharedLedger>>,
    grants: RareList<Grant>,
}

/// Seats for a level in which requests wait.
#[derive(Debug)]
pub(crate) struct Grant {
    pub(crate) level: Arc<Level>,
    seats_in_use: Arc<SeatsInUse>,
    pub(crate) granted: Granted,
}

// === impl SharedLedger ===

impl SharedLedger {
    pub(crate) fn new() -> Self {
        Self { word: Word::default(), state: Mutex::default() }
    }

    /// The terms change. Until [`end_change`](Self::end_change), each level is to be told with [`join`](Self::join).
    pub(crate) fn begin_change(&self, terms: &LedgerTerms) {
        let mut state = self.enter();
        state.is_changing = true;
        let stakes = terms.stakes.iter().map(|(level, stake)| (level.index(), *stake));
        state.ledger.configure(terms.seats, stakes);
        let count = terms.stakes.iter().map(|(level, _)| level.index() + 1).max().unwrap_or(0);
        state.members.resize_with(count, || None);
        for index in 0..count {
            if terms.stakes.iter().all(|(level, _)| level.index() != index) {
                state.members[index] = None;
            }
        }
    }

    /// A level takes part from now on, by the new terms. Its lock is held. Tells the most seats of one request.
    pub(crate) fn join(
        self: &Arc<Self>,
        level: &Arc<Level>,
        stake: Stake,
        grants: &mut Option<LevelGrants>,
        in_use: i64,
    ) -> i64 {
        let index = level.id.index();
        let mut entered = self.enter();
        if let Some(known) = grants {
            known.stake = stake;
        } else {
            let seats = Arc::new(SeatsInUse { taken: AtomicI64::new(in_use), granted: AtomicI64::new(0) });
            let member = Member { seats: Arc::clone(&seats), level: Arc::downgrade(level), pending: 0 };
            entered.members[index] = Some(member);
            *grants = Some(LevelGrants { ledger: Arc::clone(self), seats, index, stake });
        }
        let widest = entered.ledger.widest(index);
        self.leave(&entered);
        widest
    }

    /// Ends a change of the terms: all levels go by the new ones.
    pub(crate) fn end_change(self: &Arc<Self>, now: Instant, handover: &mut Handover) {
        handover.at = handover.at.max(now);
        let mut state = self.enter();
        state.is_changing = false;
        self.settle(state, handover);
    }

    /// Removes all levels from the ledger.
    pub(crate) fn clear(&self) {
        *self.lock() = LedgerState::default();
    }

    /// The seats that a level uses, and those that it could use now in addition.
    pub(crate) fn usable(&self, index: usize) -> i64 {
        let state = self.enter();
        let usable = state.ledger.usable(index);
        self.leave(&state);
        usable
    }

    fn lock(&self) -> MutexGuard<'_, LedgerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the lock, closes the word, and brings the ledger up to what the levels use now.
    fn enter(&self) -> MutexGuard<'_, LedgerState> {
        let mut state = self.lock();
        self.word.close();
        let LedgerState { ledger, members, .. } = &mut *state;
        for (index, member) in members.iter().enumerate() {
            if let Some(member) = member {
                ledger.set_in_use(index, member.seats.all());
            }
        }
        state
    }

    /// Opens the word if no request waits and every floor can be kept. The lock is given back next.
    fn leave(&self, state: &LedgerState) {
        let unreserved = state.ledger.unreserved();
        if !state.is_changing && !state.ledger.has_wishes() && unreserved >= 0 {
            self.word.open(unreserved);
        }
    }

    /// Grants seats to the request that may start first, and gives the lock back.
    ///
    /// Only to one: who is next depends on what the level of that one wishes afterwards (LB-3). Whoever carries out the grant
    /// tells, and so grants to the next.
    fn settle(&self, mut state: MutexGuard<'_, LedgerState>, handover: &mut Handover) {
        while !state.is_changing
            && let Some((index, granted)) = state.ledger.grant_next()
        {
            let LedgerState { ledger, members, .. } = &mut *state;
            let member = members.get_mut(index).and_then(Option::as_mut);
            let found = member.and_then(|member| Some((member.level.upgrade()?, member)));
            let Some((level, member)) = found else {
                ledger.give_back(index, granted.seats);
                continue;
            };
            member.seats.granted.fetch_add(granted.seats, Ordering::SeqCst);
            member.pending += 1;
            handover.grants.push(Grant { level, seats_in_use: Arc::clone(&member.seats), granted });
            break;
        }
        self.leave(&state);
    }
}

// === impl SeatsInUse ===

impl SeatsInUse {
    /// The seats that the level has taken, and those that are on their way to it.
    #[inline]
    fn all(&self) -> i64 {
        self.taken.load(Ordering::SeqCst) + self.granted.load(Ordering::SeqCst)
    }

    /// The level takes more seats, or fewer. The lock of the level is held. To be followed by an atomic operation that changes the
    /// word: until then, others need not see it.
    #[inline]
    fn change(&self, seats: i64) {
        self.taken.store(self.taken.load(Ordering::Relaxed) + seats, Ordering::Relaxed);
    }

    /// The level takes more seats, or fewer, where no operation changes the word afterwards. Other threads see the change before this one reads the word again.
    #[inline]
    fn change_and_show(&self, seats: i64) {
        self.taken.swap(self.taken.load(Ordering::Relaxed) + seats, Ordering::SeqCst);
    }
}

// === impl Word ===

impl Word {
    #[inline]
    fn read(&self) -> Reading {
        Reading(self.0.load(Ordering::SeqCst))
    }

    /// Changes the unreserved seats, if the word is open and was not closed since it read like this.
    #[inline]
    fn change(&self, mut expected: Reading, seats: i64, least: i64) -> bool {
        loop {
            let unreserved = expected.unreserved() + seats;
            if !expected.is_open() || unreserved < least || unreserved > i64::from(i32::MAX) {
                return false;
            }
            // Both numbers fit into the lower half, so that nothing is carried over into the upper one.
            let wanted = Reading(expected.0.wrapping_add_signed(seats));
            match self.0.compare_exchange(expected.0, wanted.0, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => return true,
                Err(found) if Reading(found).times_closed() == expected.times_closed() => expected = Reading(found),
                Err(_) => return false,
            }
        }
    }

    fn close(&self) {
        self.0.fetch_or(Reading::CLOSED, Ordering::SeqCst);
    }

    /// The word is closed and opened only under the lock of the ledger.
    fn open(&self, unreserved: i64) {
        let next = Reading(self.read().0.wrapping_add(Reading::ONCE) & !Reading::CLOSED);
        self.0.store(next.with_unreserved(unreserved).0, Ordering::SeqCst);
    }
}

// === impl Reading ===

impl Reading {
    /// The lower half are the unreserved seats, the upper half a flag and a count.
    const CLOSED: u64 = 1 << 32;
    const ONCE: u64 = 1 << 33;
    const SEATS: u64 = (1 << 32) - 1;

    /// Whether requests may start without the lock.
    #[inline]
    fn is_open(self) -> bool {
        self.0 & Self::CLOSED == 0 && self.unreserved() >= 0
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "the lower half is what is wanted")]
    fn unreserved(self) -> i64 {
        i64::from(self.0 as u32 as i32)
    }

    /// More seats than fit are as many as fit: the others are found behind the lock.
    #[inline]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the number is clamped before")]
    fn with_unreserved(self, seats: i64) -> Self {
        let seats = seats.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32;
        Self(self.0 & !Self::SEATS | u64::from(seats as u32))
    }

    /// Whether the word is open, and was not closed since it read like that.
    #[inline]
    fn is_same_opening(self, before: Self) -> bool {
        self.is_open() && self.times_closed() == before.times_closed()
    }

    #[inline]
    fn times_closed(self) -> u64 {
        self.0 / Self::ONCE
    }
}

// === impl LevelGrants ===

impl LevelGrants {
    pub(crate) fn account(&self) -> SharedAccount<'_> {
        SharedAccount { grants: self, handover: Handover::default() }
    }

    /// The seats that the level uses, and those that it could use now in addition.
    pub(crate) fn usable(&self) -> i64 {
        self.ledger.usable(self.index)
    }

    /// The seats that the level may use, and those that it uses.
    pub(crate) fn stake_and_use(&self) -> (Stake, i64) {
        (self.stake, self.seats.all())
    }

    /// The seats that no level uses and that are not kept for one; below zero if more are in use than there are.
    pub(crate) fn unreserved(&self) -> i64 {
        let state = self.ledger.enter();
        let unreserved = state.ledger.unreserved();
        self.ledger.leave(&state);
        unreserved
    }

    /// The seats that the level uses, and those that are on their way to it.
    #[cfg(feature = "fleet")]
    pub(crate) fn seats_in_use(&self) -> i64 {
        self.seats.all()
    }

    /// Whether a grant is for this part in the ledger, and not for an earlier one.
    pub(crate) fn is_for(&self, grant: &Grant) -> bool {
        Arc::ptr_eq(&self.seats, &grant.seats_in_use)
    }

    /// A grant has arrived.
    pub(crate) fn receive(&self, grant: &Grant) {
        let mut state = self.ledger.lock();
        self.seats.granted.fetch_sub(grant.granted.seats, Ordering::SeqCst);
        self.seats.change(grant.granted.seats);
        if let Some(member) = state.members.get_mut(self.index).and_then(Option::as_mut) {
            member.pending = member.pending.saturating_sub(1);
        }
    }

    /// The seats above the floor when so many are in use. Of an exempt level, at most its own seats count (LB-1).
    #[inline]
    fn above_floor(&self, in_use: i64) -> i64 {
        let Stake { floor, nominal, is_exempt, .. } = self.stake;
        let counted = if is_exempt { in_use.min(nominal) } else { in_use };
        (counted - floor).max(0)
    }

    /// Takes seats for a request if the word is open.
    #[inline]
    fn try_start_open(&self, wish: Wish) -> bool {
        let (reading, before) = (self.ledger.word.read(), self.seats.all());
        let most = if wish.may_borrow(self.stake.nominal) { self.stake.max } else { self.stake.nominal };
        if before + wish.seats > most.max(self.stake.floor) || !self.leaves_kept(reading, before, wish) {
            return false;
        }
        let is_taken = self.change_open(reading, before, wish.seats);
        if !is_taken {
            self.seats.change(-wish.seats);
        }
        is_taken
    }

    /// Whether the seats that are kept for newcomers of the level stay free if a request starts (PF-10). The same as
    /// behind the lock, where the word is open: then every floor can be kept.
    #[inline]
    fn leaves_kept(&self, reading: Reading, before: i64, wish: Wish) -> bool {
        if wish.kept == 0 {
            return true;
        }
        let Stake { floor, max, .. } = self.stake;
        let base = before.max(floor);
        base - before + reading.unreserved().clamp(0, (max - base).max(0)) >= wish.seats + wish.kept
    }

    /// The level uses more or fewer seats. Returns whether that is all, and no other level is concerned.
    #[inline]
    fn change_in_use(&self, seats: i64) -> bool {
        let (reading, before) = (self.ledger.word.read(), self.seats.all());
        self.change_open(reading, before, seats)
    }

    /// [`change_in_use`](Self::change_in_use), given what the word read before the seats in use were read.
    #[inline]
    fn change_open(&self, reading: Reading, before: i64, seats: i64) -> bool {
        let beyond = self.above_floor(before + seats) - self.above_floor(before);
        if beyond == 0 {
            self.seats.change_and_show(seats);
            // Unless the word was closed since the first look, nothing was granted to the level between the two looks.
            reading.is_open() && self.ledger.word.read().is_same_opening(reading)
        } else {
            self.seats.change(seats);
            self.ledger.word.change(reading, -beyond, 0)
        }
    }
}

// === impl SharedAccount ===

impl SharedAccount<'_> {
    fn leave_unsettled(&mut self) {
        self.handover.unsettled = Some(Arc::clone(&self.grants.ledger));
    }

    #[cold]
    fn try_start_closed(&mut self, wish: Wish) -> bool {
        let LevelGrants { ledger, seats, index, .. } = self.grants;
        let mut state = ledger.enter();
        let may_start = state.ledger.try_start(*index, wish);
        if may_start {
            seats.change(wish.seats);
        }
        // Others may have been refused seats that were counted here for a moment.
        ledger.settle(state, &mut self.handover);
        may_start
    }
}

impl Account for SharedAccount<'_> {
    #[inline]
    fn try_start(&mut self, wish: Wish) -> bool {
        self.grants.try_start_open(wish) || self.try_start_closed(wish)
    }

    fn take(&mut self, seats: i64) {
        if !self.grants.change_in_use(seats) {
            self.leave_unsettled();
        }
    }

    #[inline]
    fn give_back(&mut self, seats: i64) {
        if !self.grants.change_in_use(-seats) {
            self.leave_unsettled();
        }
    }

    fn set_wishes(&mut self, wish: Option<Wish>, newcomer: Option<Wish>) {
        let LevelGrants { ledger, index, .. } = self.grants;
        let mut state = ledger.enter();
        let is_pending = state.members.get(*index).and_then(Option::as_ref).is_some_and(|member| member.pending > 0);
        let [wish, newcomer] = [wish, newcomer].map(|wish| wish.filter(|_| !is_pending));
        state.ledger.set_wishes(*index, wish, newcomer);
        self.handover.unsettled = None;
        ledger.settle(state, &mut self.handover);
    }
}

// === impl Handover ===

impl Handover {
    /// Adds the grants that an event of this time has brought about.
    #[inline]
    pub(crate) fn add(&mut self, now: Instant, other: Self) {
        // Nearly always there is nothing to be done.
        if !other.is_empty() {
            self.append(now, other);
        }
    }

    #[cold]
    fn append(&mut self, now: Instant, other: Self) {
        self.at = self.at.max(now);
        self.grants.extend(other.grants);
        self.unsettled = other.unsettled.or(self.unsettled.take());
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.unsettled.is_none() && self.grants.is_empty()
    }

    /// Whether there is nothing to be done, and no memory to give back.
    #[inline]
    pub(crate) fn is_unused(&self) -> bool {
        self.unsettled.is_none() && self.grants.is_unused()
    }

    /// A grant that is to be carried out. No lock may be held.
    pub(crate) fn next(&mut self) -> Option<Grant> {
        if self.grants.is_empty() {
            self.settle();
        }
        self.grants.pop()
    }

    /// A grant for this level, whose lock is held.
    pub(crate) fn next_for(&mut self, level: &LevelGrants) -> Option<Grant> {
        if self.grants.is_empty() {
            self.settle();
        }
        self.grants.take_last(|grant| level.is_for(grant))
    }

    /// A grant was not carried out, as its level has begun anew: somebody else may start instead.
    pub(crate) fn skip(&mut self, level: Option<&LevelGrants>) {
        self.unsettled = level.map(|level| Arc::clone(&level.ledger)).or(self.unsettled.take());
    }

    fn settle(&mut self) {
        if let Some(ledger) = self.unsettled.take() {
            ledger.settle(ledger.enter(), self);
        }
    }
}
