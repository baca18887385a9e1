//! An upstream that costs as little as possible: nginx with one worker and one short answer.

use std::io;

use evenkeel_process::{Process, free_address};
use tempfile::TempDir;

use crate::nginx;

/// What it answers.
pub(crate) const BODY: &str = "hello, world";

/// An upstream that runs. Its folder goes with it.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) process: Process,
    _folder: TempDir,
}

// === impl Upstream ===

impl Upstream {
    pub(crate) fn start() -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("evenkeel-bench-").tempdir()?;
        let address = free_address()?;
        let server = format!(
            "server {{ listen {address} backlog=4096; keepalive_requests 100000000; keepalive_timeout 1h;
                location / {{ return 200 '{BODY}'; }} }}"
        );
        let process = nginx::run("1", &server, address, folder.path())?;
        Ok(Self { process, _folder: folder })
    }
}
