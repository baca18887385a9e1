//! Any bytes are the keys of an issuer or rejected, and no other issuer's tokens are good with them.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| evenkeel_any_input::key_set(input));
