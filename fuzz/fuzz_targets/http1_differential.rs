//! Whatever the gateway accepts as requests of HTTP/1.1, hyper reads in the same way.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| evenkeel_any_input::http1_differential(input));
