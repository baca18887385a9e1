//! Shuffle sharding: which queues a flow may use (SS-1 to SS-5).
//!
//! The hash of a flow is taken apart into the digits of a mixed-radix number, and each digit picks one of the queues
//! that are left. Two flows rarely get the same hand, so that a greedy one rarely blocks all queues of another.

/// The most cards in a hand. More would need more than the 60 bits of hash that are made use of.
pub const HAND_SIZE_MAX: usize = 15;
/// The most queues to deal from.
pub const DECK_SIZE_MAX: u32 = 1 << 26;
/// How many different hands there may be, at most.
const HANDS_MAX: u128 = 1 << 60;

/// Deals hands of a fixed size from a deck of a fixed size.
///
/// Dividing is most of the work, and the divisors never change: their reciprocals are computed once.
///
/// ```
/// use evenkeel_engine::deal::Dealer;
///
/// let dealer = Dealer::new(128, 6)?;
/// assert_eq!(dealer.deal(u64::MAX).cards(), [127, 1, 7, 56, 91, 6]);
/// # Ok::<(), evenkeel_engine::deal::InvalidDeal>(())
/// ```
#[derive(Debug, Clone)]
pub struct Dealer {
    size: DealSize,
    divisors: [Divisor; HAND_SIZE_MAX],
}

/// Sizes of deck and hand that go together (SS-1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DealSize {
    deck: u32,
    hand: u8,
}

/// A number that is divided by again and again.
#[derive(Debug, Clone, Copy)]
struct Divisor {
    number: u64,
    reciprocal: u64,
}

/// The queues that were dealt to a flow, in the order of dealing.
#[derive(Debug, Clone, Copy)]
pub struct Hand {
    cards: [u32; HAND_SIZE_MAX],
    size: u8,
}

/// Sizes of deck and hand that do not go together (SS-1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot deal hands of {hand_size} from {deck_size} queues: both must be positive, the hand not larger than the deck, \
     the deck not larger than 2^26, and deck^hand not larger than 2^60"
)]
pub struct InvalidDeal {
    deck_size: i64,
    hand_size: i64,
}

// === impl DealSize ===

impl DealSize {
    /// Hands of that many cards from that many queues.
    pub fn new(deck_size: i64, hand_size: i64) -> Result<Self, InvalidDeal> {
        let invalid = InvalidDeal { deck_size, hand_size };
        let deck = u32::try_from(deck_size).ok().filter(|deck| (1..=DECK_SIZE_MAX).contains(deck)).ok_or(invalid)?;
        let hand = u8::try_from(hand_size).ok().filter(|&hand| hand >= 1 && u32::from(hand) <= deck).ok_or(invalid)?;
        let hands = u128::from(deck).checked_pow(u32::from(hand)).ok_or(invalid)?;
        if hands > HANDS_MAX {
            return Err(invalid);
        }
        // 16 cards need at least 16 queues, and 16^16 is more than the limit.
        debug_assert!(usize::from(hand) <= HAND_SIZE_MAX);
        Ok(Self { deck, hand })
    }

    /// How many queues there are.
    pub fn deck(self) -> usize {
        self.deck as usize
    }

    /// How many cards are in a hand.
    pub fn hand(self) -> usize {
        usize::from(self.hand)
    }
}

// === impl Dealer ===

impl Dealer {
    /// A dealer for that many queues and cards in a hand.
    pub fn new(deck_size: i64, hand_size: i64) -> Result<Self, InvalidDeal> {
        DealSize::new(deck_size, hand_size).map(Self::from)
    }

    /// The hand of the flow with that hash (SS-2, SS-3).
    #[inline]
    pub fn deal(&self, hash: u64) -> Hand {
        let mut hand = Hand::EMPTY;
        self.deal_into(&mut hand, hash);
        hand
    }

    /// Deals a hand into the place of one that is not wanted any more, without moving it.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "a remainder is below the deck's size, which is 32 bits")]
    pub(crate) fn deal_into(&self, hand: &mut Hand, hash: u64) {
        let mut digits = [0; HAND_SIZE_MAX];
        let mut rest = hash;
        for (dealt, divisor) in self.divisors[..self.size.hand()].iter().enumerate() {
            let (quotient, remainder) = divisor.divide(rest);
            rest = quotient;
            let digit = remainder as u32;
            // The digit counts only the cards that are left: step over those dealt before, last one first.
            let card = digits[..dealt].iter().rev().fold(digit, |card, &earlier| card + u32::from(card >= earlier));
            digits[dealt] = digit;
            hand.cards[dealt] = card;
        }
        hand.size = self.size.hand;
    }
}

impl From<DealSize> for Dealer {
    fn from(size: DealSize) -> Self {
        let divisors =
            std::array::from_fn(|dealt| Divisor::new(u64::from(size.deck).saturating_sub(dealt as u64).max(1)));
        Self { size, divisors }
    }
}

// === impl Divisor ===

impl Divisor {
    fn new(number: u64) -> Self {
        // 2^64 divided by the number, cut off; for 1 that would be one too large for 64 bits.
        let reciprocal = u64::try_from((1_u128 << 64) / u128::from(number)).unwrap_or(u64::MAX);
        Self { number, reciprocal }
    }

    /// Quotient and remainder. The product with the reciprocal, cut off, is the quotient or one less.
    #[inline]
    fn divide(self, dividend: u64) -> (u64, u64) {
        let quotient = ((u128::from(dividend) * u128::from(self.reciprocal)) >> 64) as u64;
        let remainder = dividend - quotient * self.number;
        if remainder >= self.number { (quotient + 1, remainder - self.number) } else { (quotient, remainder) }
    }
}

// === impl Hand ===

impl Hand {
    /// No cards.
    pub(crate) const EMPTY: Self = Self { cards: [0; HAND_SIZE_MAX], size: 0 };

    /// The cards, in the order of dealing.
    pub fn cards(&self) -> &[u32] {
        &self.cards[..usize::from(self.size)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    #[test]
    fn ss_1_largest_deck_of_each_hand() {
        let largest = [
            (3, 1_048_576),
            (4, 32_768),
            (5, 4096),
            (6, 1024),
            (7, 380),
            (8, 181),
            (9, 101),
            (10, 64),
            (11, 43),
            (12, 32),
            (13, 24),
            (14, 19),
            (15, 16),
        ];
        for (hand, deck) in largest {
            assert!(Dealer::new(deck, hand).is_ok() && Dealer::new(deck + 1, hand).is_err(), "hand {hand} of {deck}");
        }
        assert!(Dealer::new(1 << 26, 1).is_ok() && Dealer::new((1 << 26) + 1, 1).is_err());
        for (deck, hand) in [(0, 0), (0, 1), (1, 0), (-1, -1), (4, 5), (16, 16), (i64::MAX, i64::MAX)] {
            assert!(Dealer::new(deck, hand).is_err(), "hand {hand} of {deck}");
        }
    }

    proptest! {
        #[test]
        fn reciprocals_divide_as_division_does(dividend: u64, number in 1_u64..=1 << 26) {
            for dividend in [dividend, dividend / number * number, (dividend / number * number).wrapping_sub(1), u64::MAX] {
                prop_assert_eq!(Divisor::new(number).divide(dividend), (dividend / number, dividend % number));
            }
            prop_assert_eq!(Divisor::new(1).divide(dividend), (dividend, 0));
        }
    }

    #[test]
    fn ss_6_golden_hands() {
        let table: [(u64, i64, &[u32]); 12] = [
            (0, 1, &[0]),
            (0, 6, &[0, 1, 2, 3, 4, 5]),
            (1, 6, &[1, 0, 2, 3, 4, 5]),
            (719, 6, &[5, 4, 3, 2, 1, 0]),
            (720, 6, &[0, 1, 2, 3, 4, 5]),
            (u64::MAX, 64, &[63, 15, 55, 23, 31, 2]),
            (u64::MAX, 128, &[127, 1, 7, 56, 91, 6]),
            (1_001_001_001, 9, &[4, 6, 0]),
            (2_002_002_002, 9, &[8, 2, 1]),
            (123_456_789_012_345_678, 1024, &[846, 726, 668, 913, 745, 110]),
            (u64::MAX, 15, &[0, 2, 1, 3, 4, 5, 11, 8, 6, 7, 12, 10, 13, 9, 14]),
            (987_654_321, 16, &[1, 6, 12, 2, 5, 7, 3, 15, 4, 0, 8, 9, 10, 11, 13]),
        ];
        for (hash, deck, cards) in table {
            let dealer = Dealer::new(deck, i64::try_from(cards.len()).unwrap()).unwrap();
            assert_eq!(dealer.deal(hash).cards(), cards, "hash {hash}, deck {deck}");
        }
    }

    #[test]
    fn ss_7_every_ordered_hand_comes_once() {
        for (deck, hand) in [(5, 1), (5, 2), (6, 3), (7, 4), (6, 6)] {
            let dealer = Dealer::new(deck, hand).unwrap();
            let hands: u64 = (0..hand).map(|dealt| u64::try_from(deck - dealt).unwrap()).product();
            let dealt: HashSet<Vec<u32>> = (0..hands).map(|hash| dealer.deal(hash).cards().to_vec()).collect();
            assert_eq!(dealt.len() as u64, hands);
            for cards in dealt {
                assert_eq!(cards.iter().collect::<HashSet<_>>().len(), cards.len(), "{cards:?} has a card twice");
            }
        }
    }
}
