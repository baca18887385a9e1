//! Nobody gets in but with a genuine token, whatever it says.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| evenkeel_any_input::jwt(input));
