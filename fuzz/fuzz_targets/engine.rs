//! Whatever happens to an engine, its sums are right and every payload comes back at most once.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| evenkeel_any_input::engine(input));
