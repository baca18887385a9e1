//! The hands that Kubernetes dealt, and the sizes that it refused to deal (SS-1 to SS-5).

use evenkeel_engine::deal::Dealer;
use evenkeel_recorded::{Golden, SideBySide, compared, golden_rows};
use serde::Deserialize;

/// A hand, or sizes that are refused: these have neither hash nor cards.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    deck: i64,
    hand: i64,
    #[serde(default)]
    error: bool,
    hash: Option<String>,
    cards: Option<Vec<u32>>,
}

#[test]
fn ss_1_to_ss_5_hands_are_those_of_kubernetes() {
    let recorded = golden_rows::<Row>(Golden::Deal);
    for (file, rows) in &recorded {
        for (row, recorded) in rows.iter().enumerate() {
            let Row { deck, hand, error, hash, cards } = recorded;
            let place = format!("{}, row {}: {hand} of {deck}, hash {hash:?}", file.display(), row + 1);
            assert_eq!((hash.is_none(), cards.is_none()), (*error, *error), "{place}: the row is not well-formed");
            let hash = hash.as_ref().map_or(0, |hash| hash.parse().expect("a hash"));
            let dealt = Dealer::new(*deck, *hand).ok().map(|dealer| dealer.deal(hash).cards().to_vec());
            let mut comparison = SideBySide::default();
            comparison.same("cards", cards, &dealt);
            comparison.assert(place);
        }
    }
    compared("hands", recorded.iter().map(|(_, rows)| rows.len()).sum());
}
