//! A bounded run of the fuzz target of headers of the PROXY protocol, over the corpus and mutations of it.

use evenkeel_any_input::{corpus, proxy_header, try_mutations};

#[test]
fn the_corpus_is_read() {
    for input in corpus("proxy_header") {
        proxy_header(&input);
    }
}

#[test]
fn mutations_of_the_corpus_are_read() {
    try_mutations("proxy_header", 0x51ed_270b, 20_000, proxy_header);
}
