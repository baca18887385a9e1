//! A bounded run of the decoder's fuzz target, over the corpus and mutations of it.

use evenkeel_any_input::{Mutator, corpus, decode};

#[test]
fn the_corpus_is_decoded() {
    for input in corpus("decode") {
        decode(&input);
    }
}

#[test]
fn mutations_of_the_corpus_are_decoded_or_refused() {
    let corpus = corpus("decode");
    for seed in 0..4 {
        let mut mutator = Mutator::new(&corpus, 0x9e37_79b9 + seed);
        for round in 0..2500 {
            let input = mutator.next_input();
            let outcome = std::panic::catch_unwind(|| decode(&input));
            assert!(outcome.is_ok(), "seed {seed}, round {round}: {:?}", String::from_utf8_lossy(&input));
        }
    }
}
