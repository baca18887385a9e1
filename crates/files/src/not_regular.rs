//! `NotRegular`: the error for a path that is not a regular file.

use std::fs::FileType;
use std::{fmt, io};

use super::FileTypeExt;

/// The path is not a regular file or a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotRegular(&'static str);

// === impl NotRegular ===

impl NotRegular {
    /// Refuses everything but regular files and devices such as `/dev/null`.
    pub(crate) fn check(found: FileType) -> io::Result<()> {
        if found.is_fifo() {
            Err(Self("a FIFO").into())
        } else if found.is_socket() {
            Err(Self("a socket").into())
        } else if found.is_dir() {
            Err(Self("a folder").into())
        } else {
            Ok(())
        }
    }
}

impl fmt::Display for NotRegular {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it is {}, not a regular file", self.0)
    }
}

impl std::error::Error for NotRegular {}

impl From<NotRegular> for io::Error {
    fn from(found: NotRegular) -> Self {
        Self::new(io::ErrorKind::InvalidInput, found)
    }
}
