//! EP-6: messages of external processing that no Envoy sends.

use evenkeel_any_input::{corpus, ext_proc, try_mutations};

#[test]
fn the_corpus_holds() {
    for input in corpus("ext_proc") {
        ext_proc(&input);
    }
}

#[test]
fn ep_6_no_bytes_are_misread() {
    try_mutations("ext_proc", 0xe207_0c01, 5_000, ext_proc);
}
