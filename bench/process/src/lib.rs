//! Programs that benchmarks and attacks start, and the figures that are taken of them.

mod figures;
mod many_files;
mod process;
mod roles;

pub use figures::{load_average, median, p99_ms};
pub use process::{Memory, Process, free_address, is_installed};
pub use roles::Roles;
