//! A bounded run of the fuzz target of patches, over the corpus and mutations of it.

use evenkeel_any_input::{Mutator, corpus, patch};

#[test]
fn the_corpus_is_applied_or_refused() {
    for input in corpus("patch") {
        patch(&input);
    }
}

#[test]
fn mutations_of_the_corpus_are_applied_or_refused() {
    let corpus = corpus("patch");
    for seed in 0..4 {
        let mut mutator = Mutator::new(&corpus, 0x5bd1_e995 + seed);
        for round in 0..600 {
            let input = mutator.next_input();
            let outcome = std::panic::catch_unwind(|| patch(&input));
            assert!(outcome.is_ok(), "seed {seed}, round {round}: {:?}", String::from_utf8_lossy(&input));
        }
    }
}
