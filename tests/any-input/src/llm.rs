//! Bodies of language models: what is counted does not depend on how the bytes arrive, and is a number that makes sense.

use evenkeel_gateway::fuzzing;
use serde_json::Value;

/// Takes the input for a body, as a stream of events and as lines of JSON.
///
/// # Panics
/// If what is counted or passed on depends on how the bytes arrive, if anything else is passed on than lines of the stream, if a request that asks
/// for usage is JSON and no longer is, if a count is below zero or no number, or if the name of a model could not be
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
    let passed = fuzzing::without_usage([input].into_iter());
    for size in [1, 2, 7, 64] {
        assert_eq!(fuzzing::without_usage(input.chunks(size)), passed, "in pieces of {size} bytes");
    }
    let mut lines = input.split_inclusive(|byte| *byte == b'\n');
    for line in passed.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n")) {
        assert!(lines.any(|own| own == line), "{:?}", String::from_utf8_lossy(line));
    }
    if let Some(asking) = fuzzing::asking_for_usage(input)
        && let Ok(body) = serde_json::from_slice::<Value>(input)
    {
        let mut asked: Value = serde_json::from_slice(&asking).expect("it was JSON");
        assert_eq!(asked["stream_options"], serde_json::json!({"include_usage": true}));
        asked.as_object_mut().expect("an object").remove("stream_options");
        assert_eq!(asked, body);
    }
}
