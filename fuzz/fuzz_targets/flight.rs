//! Dumps of the flight recorder are refused with the place of their damage, or replayed to their end.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| evenkeel_any_input::flight(input));
