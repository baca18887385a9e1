//! Replaces the content of a file as a whole: a reader sees the old content or the new one.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// Writes a file beside this one and gives it its name. The mode stays, and a link stays a link.
pub(super) fn replace(path: &Path, text: &str) -> io::Result<()> {
    // A new name would otherwise take the place of a link, and not of what it leads to.
    let path = fs::canonicalize(path)?;
    let mode = fs::metadata(&path)?.permissions();
    let folder = path.parent().ok_or_else(|| io::Error::other("it is in no folder"))?;
    let mut file = tempfile::Builder::new().prefix(".evenkeel-").tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().set_permissions(mode)?;
    file.as_file().sync_all()?;
    file.persist(&path).map_err(|error| error.error)?;
    Ok(())
}
