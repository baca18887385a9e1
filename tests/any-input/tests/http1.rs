//! A bounded run of the fuzz targets of the HTTP/1.1 codec, over the corpus and mutations of it.

use evenkeel_any_input::{corpus, http1_chunks, http1_request, http1_response, try_mutations};

#[test]
fn the_corpus_is_read_or_rejected() {
    for input in corpus("http1_request") {
        http1_request(&input);
    }
    for input in corpus("http1_response") {
        http1_response(&input);
    }
    for input in corpus("http1_chunks") {
        http1_chunks(&input);
    }
}

#[test]
fn mutations_of_requests_are_read_or_rejected() {
    try_mutations("http1_request", 0x1b87_3593, 1_000, http1_request);
}

#[test]
fn mutations_of_responses_are_read_or_rejected() {
    try_mutations("http1_response", 0x85eb_ca6b, 1_000, http1_response);
}

#[test]
fn mutations_of_chunks_are_read_or_rejected() {
    try_mutations("http1_chunks", 0xc2b2_ae35, 1_000, http1_chunks);
}
