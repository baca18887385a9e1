//! What a real Kubernetes decided and answered, for tests to compare with.
//!
//! The data lies beside the repository, in `../shared`, and is not part of it. On a machine without it the
//! functions answer `None` and say on standard error that the test was skipped. Whoever names a folder by a variable wants
//! the tests to run: if that folder is not there, they fail.

#![allow(clippy::print_stderr, reason = "a skipped test has to say so")]
#![allow(clippy::expect_used, reason = "a fault in the recorded data is a fault of the test")]

mod encodings;
mod expectation;
mod golden;
mod rows;
mod side_by_side;
mod transcript;

pub use encodings::{Encoding, encodings};
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
    let beside_repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(name);
    existing(variable, std::env::var_os(variable).map(PathBuf::from), beside_repository)
}

/// The folder that the variable names, or else the usual one, if there is one.
fn existing(variable: &str, named: Option<PathBuf>, usual: PathBuf) -> Option<PathBuf> {
    if let Some(folder) = named {
        assert!(folder.is_dir(), "{variable} names {}, which is no folder", folder.display());
        return Some(folder);
    }
    if usual.is_dir() {
        return Some(usual);
    }
    eprintln!("skipped: no recorded data in {} (set {variable} to the folder that holds it)", usual.display());
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here() -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR"))
    }

    #[test]
    fn without_a_name_the_usual_folder_is_taken_if_it_is_there() {
        assert_eq!(existing("X", None, here()), Some(here()));
        assert_eq!(existing("X", None, here().join("absent")), None);
        assert_eq!(existing("X", Some(here()), here().join("absent")), Some(here()));
    }

    #[test]
    #[should_panic(expected = "which is no folder")]
    fn a_named_folder_that_is_not_there_is_a_fault() {
        existing("X", Some(here().join("absent")), here());
    }
}
