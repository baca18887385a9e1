//! Any bytes are a chunked body or rejected, however they arrive.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| evenkeel_any_input::http1_chunks(input));
