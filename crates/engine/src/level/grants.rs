//! A level whose seats are granted by a ledger, one request at a time (LB-1 to LB-8).

use super::{Level, NewRequest, Observed, Observer};
use crate::borrowing::{Granted, Ledger, Wish};
use crate::queue_set::{Arrival, Effects, Head, Mode, Recipient};
use crate::time::Instant;

/// The ledger as one level sees it. [`LedgerAccount`] is the plain one; a server of many threads has one that is shared.
pub trait Account {
    /// A request arrives, and nobody of the level waits. Takes its seats if it may start.
    fn try_start(&mut self, wish: Wish) -> bool;

    /// Requests of the level use more seats, whatever there is.
    fn take(&mut self, seats: i64);

    /// Seats of the level are free again.
    fn give_back(&mut self, seats: i64);

    /// That request is next in the level, and the other one among those that need not leave any seats to newcomers, if the first one
    /// has to (PF-10); `None`: nobody waits there who may start.
    fn set_wishes(&mut self, wish: Option<Wish>, newcomer: Option<Wish>);
}

/// The account of a level in a ledger.
///
/// Not `#[non_exhaustive]`: callers make it.
#[derive(Debug)]
pub struct LedgerAccount<'a> {
    /// The ledger.
    pub ledger: &'a mut Ledger,
    /// The number of the level.
    pub level: usize,
}

// === impl Level ===

impl<T, O: Observer> Level<T, O> {
    /// From now on requests start only on seats that a ledger grants. One request gets at most that many.
    pub fn begin_grants(
        &mut self,
        now: Instant,
        widest: i64,
        effects: &mut impl Effects<T>,
        account: &mut impl Account,
    ) {
        self.queue_set.begin_grants(now, widest, effects);
        self.tell_wishes(now, account);
    }

    /// Ends the grants: once the level is [configured](Self::configure) with a limit, requests start by that.
    pub fn end_grants(&mut self, now: Instant, effects: &mut impl Effects<T>) {
        self.queue_set.end_grants(now, effects);
    }

    /// The same as [`arrive`](Self::arrive) where a ledger grants the seats.
    #[inline]
    pub fn arrive_by_grant(
        &mut self,
        now: Instant,
        request: NewRequest<'_>,
        payload: T,
        effects: &mut impl Effects<T>,
        account: &mut impl Account,
    ) -> Arrival<T> {
        let work = self.queue_set.fitted(request.work);
        let request = NewRequest { work, ..request };
        if request.is_seatless {
            return self.arrive(now, request, payload, effects);
        }
        let may_start = self.queue_set.waiting() == 0 && matches!(self.queue_set.mode(), Mode::Queue(_) | Mode::Reject);
        let mut granted = Granted::default();
        if may_start && let Some(kept) = self.queue_set.kept_from(request.flow, work) {
            let wish = self.wish_for(work.max_seats().into(), request.is_long_running).keeping(kept);
            granted.seats = if account.try_start(wish) { wish.seats } else { 0 };
        }
        self.by_grant(now, granted, account, |level| level.arrive(now, request, payload, effects))
    }

    /// Starts waiting requests on seats that the ledger has granted.
    pub fn start_granted(
        &mut self,
        now: Instant,
        granted: Granted,
        effects: &mut impl Effects<T>,
        account: &mut impl Account,
    ) {
        self.by_grant(now, granted, account, |level| level.dispatch(now, effects));
    }

    /// Lets an event happen, with so many seats granted for it, and tells the ledger what came of it.
    #[inline]
    pub fn by_grant<R>(
        &mut self,
        now: Instant,
        granted: Granted,
        account: &mut impl Account,
        event: impl FnOnce(&mut Self) -> R,
    ) -> R {
        let before = self.queue_set.seats_in_use();
        let has_waited = self.queue_set.waiting() > 0;
        // Without a grant the set stays closed: the seats that the event frees go back to the ledger.
        if granted.seats > 0 {
            self.queue_set.grant(granted.seats, granted.to);
        }
        let result = event(self);
        self.queue_set.close();
        let more = self.queue_set.seats_in_use() - before - granted.seats;
        if more < 0 {
            account.give_back(-more);
        } else if more > 0 {
            account.take(more);
        }
        if has_waited || self.queue_set.waiting() > 0 {
            self.tell_wishes(now, account);
        }
        result
    }

    fn dispatch(&mut self, now: Instant, effects: &mut impl Effects<T>) {
        let mut effects = Observed::new(now, &mut self.observer, &mut self.long_running, effects);
        self.queue_set.start_granted(now, &mut effects);
    }

    /// The request that is next, and the one that is next among those that need not leave any seats free, if the first one has to.
    pub fn heads(&mut self, now: Instant) -> [Option<Head>; 2] {
        let head = self.queue_set.head(now, Recipient::Anybody);
        let newcomer = match head {
            Some(Head { kept: 1.., .. }) => self.queue_set.head(now, Recipient::Newcomer),
            _ => None,
        };
        [head, newcomer]
    }

    /// Tells the ledger which requests are next.
    fn tell_wishes(&mut self, now: Instant, account: &mut impl Account) {
        let [head, newcomer] = self.heads(now);
        let [wish, newcomer] = [head, newcomer].map(|head| {
            let Head { id, seats, kept } = head?;
            Some(self.wish_for(seats, self.long_running.is_waiting(id)).keeping(kept))
        });
        account.set_wishes(wish, newcomer);
    }

    /// A request that takes no seats starts when one is free, and gives it back at once. Nothing starts on a grant of none.
    fn wish_for(&self, seats: i64, is_long_running: bool) -> Wish {
        let seats = seats.max(1);
        if is_long_running { Wish::long_running(seats, self.long_running.seats()) } else { Wish::new(seats) }
    }
}

// === impl LedgerAccount ===

impl Account for LedgerAccount<'_> {
    fn try_start(&mut self, wish: Wish) -> bool {
        self.ledger.try_start(self.level, wish)
    }

    fn take(&mut self, seats: i64) {
        self.ledger.take(self.level, seats);
    }

    fn give_back(&mut self, seats: i64) {
        self.ledger.give_back(self.level, seats);
    }

    fn set_wishes(&mut self, wish: Option<Wish>, newcomer: Option<Wish>) {
        self.ledger.set_wishes(self.level, wish, newcomer);
    }
}
