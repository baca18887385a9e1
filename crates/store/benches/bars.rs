//! The bars of the store.

fn main() {}
