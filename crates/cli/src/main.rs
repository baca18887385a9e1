//! The `evenkeel` binary.

#[cfg(all(target_env = "gnu", target_feature = "crt-static"))]
mod static_names;

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    #[cfg(all(target_env = "gnu", target_feature = "crt-static"))]
    static_names::use_built_in_services();
    evenkeel_cli::run(std::env::args_os())
}
