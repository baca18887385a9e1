//! Tokens of language models are counted in the same way however their bytes arrive.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| evenkeel_any_input::llm(input));
