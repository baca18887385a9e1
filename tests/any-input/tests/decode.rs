//! A bounded run of the decoder's fuzz target, over the corpus and mutations of it.

use evenkeel_any_input::{corpus, decode, try_mutations};

#[test]
fn the_corpus_is_decoded() {
    for input in corpus("decode") {
        decode(&input);
    }
}

#[test]
fn mutations_of_the_corpus_are_decoded_or_refused() {
    try_mutations("decode", 0x9e37_79b9, 2_500, decode);
}
