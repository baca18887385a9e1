//! A bounded run of the engine's fuzz target, over the corpus and mutations of it.

use evenkeel_any_input::{Mutator, corpus, engine};

#[test]
fn the_corpus_leaves_the_engine_in_order() {
    for input in corpus("engine") {
        engine(&input);
    }
}

#[test]
fn mutations_of_the_corpus_leave_the_engine_in_order() {
    let corpus = corpus("engine");
    for seed in 0..4 {
        let mut mutator = Mutator::new(&corpus, 0x2545_f491 + seed);
        for round in 0..250 {
            let input = mutator.next_input();
            let outcome = std::panic::catch_unwind(|| engine(&input));
            assert!(outcome.is_ok(), "seed {seed}, round {round}: {input:?}");
        }
    }
}
