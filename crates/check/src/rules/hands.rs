//! `hand-collision`: how likely it is that a light flow shares all its queues with heavy ones.

use crate::analysis::{Analysis, Output};
use crate::finding::Finding;
use crate::rule::Rule;
use crate::rules::flows::{flow_count, is_per_flow, queues};

/// How many heavy flows are assumed, if so many can exist.
const HEAVY: u32 = 4;
/// A larger probability than this one is reported.
const PROBABILITY_MAX: f64 = 0.01;

pub(crate) fn run(analysis: &Analysis<'_>, output: &mut Output) {
    for (located, level) in &analysis.levels {
        let Some(queuing) = queues(level).filter(|_| !is_per_flow(level)) else { continue };
        let (Ok(queues), Ok(hand)) = (u32::try_from(queuing.queues), u32::try_from(queuing.hand_size)) else {
            continue;
        };
        // One of the flows is the light one.
        let others = flow_count(analysis, level.name())
            .map_or(HEAVY, |count| u32::try_from(count.saturating_sub(1)).unwrap_or(HEAVY).min(HEAVY));
        let probability = collision(queues, hand, others);
        if probability > PROBABILITY_MAX {
            let heavy = if others == 1 { "1 heavy flow".to_owned() } else { format!("{others} heavy flows") };
            let message = format!(
                "with {heavy}, a light one shares all its queues with them with a probability of {}",
                percent(probability)
            );
            let help = format!(
                "use more queues or another handSize ({queues} queues, hands of {hand} now), or one queue for each flow \
                 (`evenkeel.dev/queuing: per-flow`)"
            );
            let field = "spec.limited.limitResponse.queuing";
            output.accuse(analysis, located, Finding::new(Rule::HandCollision, located, field, message, help));
        }
    }
}

fn percent(probability: f64) -> String {
    let percent = probability * 100.0;
    if percent >= 99.995 { "100 %".to_owned() } else { format!("{percent:.2} %") }
}

/// The probability that all queues of one hand are among those of `heavy` other hands, all dealt at random.
///
/// The number of queues that the other hands have together grows hand by hand. From a number, each larger one has the
/// probability of a hypergeometric distribution.
pub(crate) fn collision(queues: u32, hand: u32, heavy: u32) -> f64 {
    let reached_max = (u64::from(hand) * u64::from(heavy)).min(u64::from(queues));
    let reached_max = u32::try_from(reached_max).unwrap_or(u32::MAX);
    // By the number of queues that are taken.
    let mut taken = vec![0.0; reached_max as usize + 1];
    taken[0] = 1.0;
    for _ in 0..heavy {
        let mut next = vec![0.0; taken.len()];
        for (before, probability) in (0_u32..).zip(&taken).filter(|(_, probability)| **probability > 0.0) {
            for new in 0..=hand.min(queues - before) {
                // `hand - new` of its queues are taken already.
                let ways = choose_ratio(queues, hand, before, hand - new);
                if let Some(after) = next.get_mut((before + new) as usize) {
                    *after += probability * ways;
                }
            }
        }
        taken = next;
    }
    let all_taken = |(count, probability): (u32, &f64)| probability * choose_ratio(queues, hand, count, hand);
    (0..).zip(&taken).map(all_taken).sum::<f64>().min(1.0)
}

/// The probability that exactly `hits` of a hand of `hand` out of `queues` queues are among `marked` ones.
fn choose_ratio(queues: u32, hand: u32, marked: u32, hits: u32) -> f64 {
    let misses = hand - hits;
    let unmarked = queues - marked;
    if hits > marked || misses > unmarked {
        return 0.0;
    }
    // C(marked, hits) * C(unmarked, misses) / C(queues, hand), multiplied out factor by factor, which stays near 1.
    let falling = |from: u32, index: u32| f64::from(from - index);
    let orders: f64 = (0..hits).map(|index| f64::from(hand - index) / f64::from(index + 1)).product();
    let drawn = (0..hits).map(|index| falling(marked, index)).chain((0..misses).map(|index| falling(unmarked, index)));
    let total = (0..hand).map(|index| falling(queues, index));
    orders * drawn.zip(total).map(|(drawn, total)| drawn / total).product::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All hands, one by one.
    fn counted(queues: u32, hand: u32, heavy: u32) -> f64 {
        fn hands(queues: u32, hand: u32) -> Vec<u32> {
            (0_u32..1 << queues).filter(|bits| bits.count_ones() == hand).collect()
        }
        let all = hands(queues, hand);
        let mut unions: std::collections::BTreeMap<u32, f64> = std::iter::once((0, 1.0)).collect();
        let part = 1.0 / f64::from(u32::try_from(all.len()).unwrap());
        for _ in 0..heavy {
            let mut next = std::collections::BTreeMap::new();
            for (union, probability) in &unions {
                for one in &all {
                    *next.entry(union | one).or_insert(0.0) += probability * part;
                }
            }
            unions = next;
        }
        let covered = |union: u32| all.iter().filter(|one| **one & union == **one).count();
        unions
            .iter()
            .map(|(union, probability)| probability * part * f64::from(u32::try_from(covered(*union)).unwrap()))
            .sum()
    }

    #[test]
    fn the_probability_is_that_of_counting_all_hands() {
        for (queues, hand) in [(1, 1), (2, 1), (4, 2), (6, 3), (8, 2), (8, 4), (5, 5)] {
            for heavy in [1, 2, 4] {
                let (exact, counted) = (collision(queues, hand, heavy), counted(queues, hand, heavy));
                assert!((exact - counted).abs() < 1e-9, "{queues} {hand} {heavy}: {exact} {counted}");
            }
        }
    }

    #[test]
    fn the_figures_of_the_design_document_of_kubernetes() {
        for (queues, hand, heavy, expected) in [
            (32, 12, 1, 4.428_838_398_950_118e-9),
            (32, 12, 4, 0.114_313_488_300_991_44),
            (64, 8, 1, 2.259_291_998_508_99e-10),
            (64, 8, 4, 0.000_488_669_705_304_044_6),
            (128, 8, 4, 3.405_579_016_162_086e-6),
            (256, 6, 4, 2.951_646_401_847_643_6e-7),
            (512, 6, 16, 2.260_257_643_434_13e-5),
            (1024, 6, 16, 4.517_408_062_903_668e-7),
        ] {
            let exact = collision(queues, hand, heavy);
            assert!((exact / expected - 1.0).abs() < 1e-6, "{queues} {hand} {heavy}: {exact}");
        }
        assert!(collision(10_000_000, 2, 4) < 1e-10);
    }
}
