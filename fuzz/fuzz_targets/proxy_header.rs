//! A header of the PROXY protocol says the same however it arrives, and in either version.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| evenkeel_any_input::proxy_header(input));
