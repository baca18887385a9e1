//! Choosing a queue: of the queues dealt to a flow, the one with the least work waiting (FQ-15, FQ-16).

use crate::SeatSeconds;
use crate::deal::Dealer;

/// Chooses queues for arriving requests.
#[derive(Debug, Clone)]
pub(super) struct Placement {
    /// How many requests have been placed, those turned away afterwards included.
    placed: u64,
}

// === impl Placement ===

impl Placement {
    pub(super) fn new() -> Self {
        Self { placed: 0 }
    }

    /// How many requests have been placed.
    pub(super) fn placed(&self) -> u64 {
        self.placed
    }

    /// The queue for a request of the flow with that hash, given the work that waits in each queue.
    ///
    /// Where in the hand to look first moves on with every request, so that a flow is spread over queues that are
    /// equally full.
    #[inline]
    pub(super) fn choose(&mut self, dealer: Dealer, hash: u64, waiting_work: &[SeatSeconds]) -> usize {
        let hand = dealer.deal(hash);
        let cards = hand.cards();
        // A hand has few cards: the remainder fits.
        let offset = (self.placed % cards.len() as u64) as usize;
        self.placed = self.placed.wrapping_add(1);
        let (before, after) = cards.split_at(offset);
        let (mut best, mut least) = (cards[offset] as usize, SeatSeconds::MAX);
        for &card in after.iter().chain(before) {
            let work = waiting_work[card as usize];
            if work < least {
                (best, least) = (card as usize, work);
            }
        }
        best
    }
}
