//! Files that only their owner can read, written as a whole or not at all.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use super::DataDirError;

/// The users who can read a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Everybody,
    OwnerOnly,
}

/// Makes a folder for its owner only, unless it is there.
pub(super) fn make_folder(path: &Path) -> Result<(), DataDirError> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|source| DataDirError::File {
        action: "make",
        path: path.to_owned(),
        source,
    })
}

/// The text of a file, if it is there.
pub(super) fn read_if_there(path: &Path) -> Result<Option<String>, DataDirError> {
    match evenkeel_files::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(DataDirError::File { action: "read", path: path.to_owned(), source }),
    }
}

/// Writes a file beside it first, so that there is never half of it.
pub(super) fn write(path: &Path, content: &[u8], access: Access) -> Result<(), DataDirError> {
    write_by(path, access, |file| file.write_all(content))
}

/// The same for content that `content` writes piece by piece.
pub(super) fn write_by(
    path: &Path,
    access: Access,
    content: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<(), DataDirError> {
    let mode = match access {
        Access::Everybody => 0o644,
        Access::OwnerOnly => 0o600,
    };
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let written = (|| {
        let _ = fs::remove_file(&beside);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&beside)?;
        content(&mut file)?;
        file.sync_all()?;
        fs::rename(&beside, path)
    })();
    if written.is_err() {
        // An incomplete file is useless, and takes room on a disk that may be full.
        let _ = fs::remove_file(&beside);
    }
    written.map_err(|source| DataDirError::File { action: "write", path: path.to_owned(), source })
}
