//! A bounded run of the fuzz target of requests to the API, over the corpus and mutations of it.

use evenkeel_any_input::{corpus, request, try_mutations};

#[test]
fn the_corpus_is_answered() {
    for input in corpus("request") {
        request(&input);
    }
}

#[test]
fn mutations_of_the_corpus_are_answered() {
    try_mutations("request", 0x27d4_eb2f, 2_500, request);
}
