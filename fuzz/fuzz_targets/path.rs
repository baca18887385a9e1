//! Any bytes, taken for the path of a request, lead past no rule.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| evenkeel_any_input::path(input));
