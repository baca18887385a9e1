//! FR-2: damaged dumps of the flight recorder.

use evenkeel_any_input::{corpus, flight, try_mutations};

#[test]
fn the_corpus_holds() {
    for input in corpus("flight") {
        flight(&input);
    }
}

/// `FLIGHT_ROUNDS` says how many damaged dumps are tried.
#[test]
fn fr_2_damaged_dumps_are_refused_or_replayed() {
    let rounds = std::env::var("FLIGHT_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(3_000);
    try_mutations("flight", 0xf119_4701, rounds, flight);
}
