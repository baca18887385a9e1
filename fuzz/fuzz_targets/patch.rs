//! Any bytes, taken for a patch, give an object or a refusal.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| evenkeel_any_input::patch(input));
