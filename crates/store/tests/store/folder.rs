//! A folder for the files of a test, gone with it.

use tempfile::TempDir;

/// In memory where there is such a place: it is the process that ends in these tests and not the machine, and a busy disk
/// would only make them slow.
pub(crate) fn folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}
