//! A bounded run of the fuzz targets of tokens, keys and certificates, over the corpus and mutations of it.

use evenkeel_any_input::{certificate, corpus, jwt, key_set, try_mutations};

#[test]
fn the_corpus_is_read_or_rejected() {
    for input in corpus("jwt") {
        jwt(&input);
    }
    for input in corpus("key_set") {
        key_set(&input);
    }
    for input in corpus("certificate") {
        certificate(&input);
    }
}

#[test]
fn mutations_of_tokens_are_accepted_or_rejected() {
    try_mutations("jwt", 0xcc9e_2d51, 500, jwt);
}

#[test]
fn mutations_of_keys_are_read_or_rejected() {
    try_mutations("key_set", 0xe654_6b64, 1_000, key_set);
}

#[test]
fn mutations_of_certificates_are_read_or_rejected() {
    try_mutations("certificate", 0x9e37_79b9, 2_500, certificate);
}
