//! What an Envoy sends on a stream of external processing, or whoever connects in its place (EP-6).

use evenkeel_gateway::fuzzing;

const BYTES_MAX: usize = 4096;

/// Any bytes are read to the same messages however they arrive, and end with a status at the latest where they are none.
///
/// # Panics
/// If that does not hold.
pub fn ext_proc(input: &[u8]) {
    let whole = fuzzing::ext_proc(std::iter::once(input), BYTES_MAX);
    assert_eq!(fuzzing::ext_proc(input.chunks(1), BYTES_MAX), whole);
    assert_eq!(fuzzing::ext_proc(input.chunks(7), BYTES_MAX), whole);
    // A message has at least the five bytes of its frame.
    assert!(whole.len() <= input.len() / 5 + 1);
}
