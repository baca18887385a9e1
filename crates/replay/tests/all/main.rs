//! The tests of the crate: the recorded log of a real server, hostile logs, and logs of our own.

mod hostile;
mod kinds;
mod logs;
mod recorded;
