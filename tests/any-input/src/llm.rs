//! Bodies of language models: what is counted does not depend on how the bytes arrive, and is a number that makes sense.

use evenkeel_gateway::fuzzing;

/// Takes the input for a body, as a stream of events and as lines of JSON.
///
/// # Panics
/// If what is counted depends on how the bytes arrive, if a count is below zero or no number, or if the name of a model could not be
/// written to a log.
pub fn llm(input: &[u8]) {
    for content_type in ["text/event-stream", "application/x-ndjson"] {
        let whole = fuzzing::tokens(content_type, [input].into_iter());
        for size in [1, 2, 7, 64] {
            assert_eq!(fuzzing::tokens(content_type, input.chunks(size)), whole, "in pieces of {size} bytes");
        }
        let (model, [prompt, cached, output]) = whole;
        assert!(model.len() <= 256 && !model.chars().any(char::is_control), "{model:?}");
        for count in [prompt, cached, output] {
            assert!(count.is_finite() && count >= 0.0, "{count}");
        }
    }
}
