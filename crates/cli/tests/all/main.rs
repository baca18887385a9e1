//! The tests of the `evenkeel` binary, in one program: each further program would have to be linked.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod check;
#[path = "../child/mod.rs"]
mod child;
mod convert;
mod deploy;
mod empty_root;
mod errors;
mod explain;
mod pages;
#[path = "../peer/mod.rs"]
mod peer;
mod reference;
mod replay;
mod serve;
mod simulate;
mod top;
