//! A bounded run of the protobuf fuzz target, over the corpus and mutations of it.

use evenkeel_any_input::{corpus, protobuf, try_mutations};

#[test]
fn the_corpus_is_read() {
    for input in corpus("protobuf") {
        protobuf(&input);
    }
}

#[test]
fn mutations_of_the_corpus_are_read_or_refused() {
    try_mutations("protobuf", 0x51ed_270b, 2_500, protobuf);
}
