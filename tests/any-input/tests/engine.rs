//! A bounded run of the engine's fuzz target, over the corpus and mutations of it.

use evenkeel_any_input::{corpus, engine, try_mutations};

#[test]
fn the_corpus_leaves_the_engine_in_order() {
    for input in corpus("engine") {
        engine(&input);
    }
}

#[test]
fn mutations_of_the_corpus_leave_the_engine_in_order() {
    try_mutations("engine", 0x2545_f491, 250, engine);
}
