//! The tests of the crate against logs.
