//! Any bytes, taken for a request to the API, give an answer.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| evenkeel_any_input::request(input));
