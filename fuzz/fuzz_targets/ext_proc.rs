//! Messages of Envoy's external processing are read in the same way however their bytes arrive.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| evenkeel_any_input::ext_proc(input));
