//! Programs that benchmarks and attacks start, and the figures that are taken of them.

mod figures;
mod many_files;
mod process;

pub use figures::{load_average, median, p99_ms};
pub use many_files::restart_with_many_files;
pub use process::{Memory, Process, free_address, is_installed};
