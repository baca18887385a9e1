//! Any bytes give an object or an error, and what was read is written and read back.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| evenkeel_any_input::protobuf(input));
