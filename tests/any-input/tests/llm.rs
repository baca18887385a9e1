//! A bounded run of the fuzz target of language models, over the corpus and mutations of it.

use evenkeel_any_input::{corpus, llm, try_mutations};

#[test]
fn the_corpus_is_read() {
    for input in corpus("llm") {
        llm(&input);
    }
}

#[test]
fn mutations_of_the_corpus_are_read() {
    try_mutations("llm", 0x11e4_0a5d, 5_000, llm);
}
