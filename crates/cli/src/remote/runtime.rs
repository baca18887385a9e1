//! The runtime of a tool that asks servers: one thread, which is the tool's own.

use anyhow::{Context, Result};
use tokio::runtime::{Builder, Runtime};

/// A runtime that runs on the thread of its caller.
pub(crate) fn runtime() -> Result<Runtime> {
    Builder::new_current_thread().enable_all().build().context("cannot start the runtime for network I/O")
}
