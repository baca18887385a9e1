//! Any bytes are a client certificate or rejected.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| evenkeel_any_input::certificate(input));
