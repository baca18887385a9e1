//! The `evenkeel` binary: one module for each command.

fn main() {}
