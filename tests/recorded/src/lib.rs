//! What a real Kubernetes decided and answered, for tests to compare with.
//!
//! The data lies beside the repository, in `../shared`, and is not part of it. On a machine without it the
//! functions answer `None` and say on standard error that the test was skipped.

#![allow(clippy::print_stderr, reason = "a skipped test has to say so")]
#![allow(clippy::expect_used, reason = "a fault in the recorded data is a fault of the test")]

mod expectation;
mod golden;
mod rows;
mod side_by_side;
mod transcript;

pub use expectation::{Mismatch, compare, compare_subset};
pub use golden::{Golden, golden_documents, golden_files, golden_rows};
pub use rows::{document, rows};
pub use side_by_side::SideBySide;
pub use transcript::{Body, Request, Response, Step, Transcript, transcripts};

use std::path::{Path, PathBuf};

/// The folder of recorded engine decisions: what `EVENKEEL_GOLDEN` names, or `../shared/golden`.
pub fn golden() -> Option<PathBuf> {
    folder("EVENKEEL_GOLDEN", "golden")
}

/// The folder of recorded API conversations: what `EVENKEEL_CONFORMANCE` names, or `../shared/conformance`.
pub fn conformance() -> Option<PathBuf> {
    folder("EVENKEEL_CONFORMANCE", "conformance")
}

fn folder(variable: &str, name: &str) -> Option<PathBuf> {
    let beside_repository = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(name);
    let folder = std::env::var_os(variable).map_or_else(beside_repository, PathBuf::from);
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("skipped: no recorded data in {} (set {variable} to the folder that holds it)", folder.display());
    None
}
