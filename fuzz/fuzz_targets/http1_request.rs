//! Any bytes of a client are requests of HTTP/1.1 or rejected, however they arrive.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| evenkeel_any_input::http1_request(input));
