//! The bars of `evenkeel check`.
fn main() {}
