//! A bounded run of the fuzz target of requests to the API, over the corpus and mutations of it.

use evenkeel_any_input::{Mutator, corpus, request};

#[test]
fn the_corpus_is_answered() {
    for input in corpus("request") {
        request(&input);
    }
}

#[test]
fn mutations_of_the_corpus_are_answered() {
    let corpus = corpus("request");
    for seed in 0..4 {
        let mut mutator = Mutator::new(&corpus, 0x27d4_eb2f + seed);
        for round in 0..2_500 {
            let input = mutator.next_input();
            let outcome = std::panic::catch_unwind(|| request(&input));
            assert!(outcome.is_ok(), "seed {seed}, round {round}: {:?}", String::from_utf8_lossy(&input));
        }
    }
}
