//! A bounded run of the fuzz target of patches, over the corpus and mutations of it.

use evenkeel_any_input::{corpus, patch, try_mutations};

#[test]
fn the_corpus_is_applied_or_refused() {
    for input in corpus("patch") {
        patch(&input);
    }
}

#[test]
fn mutations_of_the_corpus_are_applied_or_refused() {
    try_mutations("patch", 0x5bd1_e995, 600, patch);
}
