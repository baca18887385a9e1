//! A bounded run of the fuzz target of paths, over the corpus and mutations of it.

use evenkeel_any_input::{corpus, path, try_mutations};

#[test]
fn the_corpus_leads_past_no_rule() {
    for input in corpus("path") {
        path(&input);
    }
}

#[test]
fn mutations_of_paths_lead_past_no_rule() {
    try_mutations("path", 0x27d4_eb2f, 20_000, path);
}
