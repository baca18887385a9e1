//! The tests of the simulator.

mod stream;
