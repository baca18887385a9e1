//! Choosing a queue: of the queues dealt to a flow, the one with the least work waiting (FQ-15, FQ-16).

use crate::SeatSeconds;
use crate::deal::{DealSize, Dealer, Hand};

/// Chooses queues for arriving requests.
#[derive(Debug, Clone)]
pub(super) struct Placement {
    dealer: Option<Dealer>,
    /// How many requests have been placed, those rejected afterwards included.
    placed: u64,
    /// The number of hands dealt, modulo the size of a hand. Kept because a division takes longer than all the rest.
    offset: usize,
}

// === impl Placement ===

impl Placement {
    pub(super) fn new() -> Self {
        Self { dealer: None, placed: 0, offset: 0 }
    }

    /// From now on flows are dealt queues in this way; `None` if there are no queues.
    pub(super) fn deal(&mut self, size: Option<DealSize>) {
        self.dealer = size.map(Dealer::from);
        let hand_size = size.map_or(1, DealSize::hand);
        self.offset = usize::try_from(self.placed % hand_size as u64).unwrap_or(0);
    }

    /// How many requests have been placed.
    pub(super) fn placed(&self) -> u64 {
        self.placed
    }

    /// The queue for a request of the flow with that hash, given the work that waits in each queue, by its number; `None` if
    /// there are no queues.
    ///
    /// Where in the hand to look first moves on with every request, so that a flow is spread over queues that are
    /// equally full.
    #[inline]
    pub(super) fn choose(&mut self, hash: u64, waiting_work: impl Fn(usize) -> SeatSeconds) -> Option<usize> {
        let mut hand = Hand::EMPTY;
        self.dealer.as_ref()?.deal_into(&mut hand, hash);
        let cards = hand.cards();
        let offset = self.offset;
        self.offset = if offset + 1 < cards.len() { offset + 1 } else { 0 };
        self.placed += 1;
        let (before, after) = cards.split_at(offset);
        let (mut best, mut least) = (cards[offset] as usize, SeatSeconds::MAX);
        // Not a `for`, which would ask for each card whether it is one of the first or of the second.
        after.iter().chain(before).for_each(|&card| {
            let work = waiting_work(card as usize);
            if work < least {
                (best, least) = (card as usize, work);
            }
        });
        Some(best)
    }
}
