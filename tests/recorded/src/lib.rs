//! What a real Kubernetes decided and answered, for tests to compare with.
//!
//! The recordings are in `golden` and `conformance` beside this crate's sources, packed with gzip. `EVENKEEL_GOLDEN` and
//! `EVENKEEL_CONFORMANCE` name other folders with the same layout, packed or not. A test that finds no recordings fails.

#![allow(clippy::print_stderr, reason = "a test with nothing to compare has to say so")]
#![allow(clippy::expect_used, reason = "a fault in the recorded data is a fault of the test")]

mod comparisons;
mod encodings;
mod expectation;
mod golden;
mod replayer;
mod rows;
mod side_by_side;
mod transcript;

pub use comparisons::compared;
pub use encodings::{Encoding, encodings};
pub use expectation::{Mismatch, compare, compare_subset};
pub use golden::{Golden, golden_documents, golden_files, golden_rows};
pub use replayer::{replayed, replayer};
pub use rows::{document, rows};
pub use side_by_side::SideBySide;
pub use transcript::{Body, Request, Response, Step, Transcript, transcripts};

use std::path::{Path, PathBuf};

const CONFORMANCE: &str = "EVENKEEL_CONFORMANCE";

/// The folder of recorded decisions and encodings: what `EVENKEEL_GOLDEN` names, or the repository's own.
///
/// # Panics
/// If there is no such folder.
pub fn golden() -> PathBuf {
    folder("EVENKEEL_GOLDEN", "golden")
}

/// The folder of recorded conversations: what `EVENKEEL_CONFORMANCE` names, or the repository's own.
///
/// # Panics
/// If there is no such folder.
pub fn conformance() -> PathBuf {
    folder(CONFORMANCE, "conformance")
}

/// Whether the conversations are not the repository's own, so that they need not be about everything.
fn has_other_conversations() -> bool {
    std::env::var_os(CONFORMANCE).is_some()
}

fn folder(variable: &str, name: &str) -> PathBuf {
    existing(variable, std::env::var_os(variable).map(PathBuf::from), own_folder().join(name))
}

fn own_folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The folder that the variable names, or else the repository's own.
fn existing(variable: &str, named: Option<PathBuf>, own: PathBuf) -> PathBuf {
    let is_named = named.is_some();
    let folder = named.unwrap_or(own);
    if !folder.is_dir() {
        let remedy =
            if is_named { "correct the variable" } else { "restore it, or name another folder by the variable" };
        panic!("no recordings in {}, which is not a folder ({variable}): {remedy}", folder.display());
    }
    folder
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_folder_is_preferred() {
        assert_eq!(existing("X", None, own_folder().to_owned()), own_folder());
        assert_eq!(existing("X", Some(own_folder().to_owned()), own_folder().join("absent")), own_folder());
    }

    #[test]
    #[should_panic(expected = "absent, which is not a folder (X): restore it, or name another folder by the variable")]
    fn recordings_that_are_absent_are_a_fault() {
        existing("X", None, own_folder().join("absent"));
    }

    #[test]
    #[should_panic(expected = "absent, which is not a folder (X): correct the variable")]
    fn a_named_folder_that_is_absent_is_a_fault() {
        existing("X", Some(own_folder().join("absent")), own_folder().to_owned());
    }
}
