//! Any bytes give objects or errors, and what was written is read back.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| evenkeel_any_input::decode(input));
