//! `SocketFile`: the file of a Unix socket, which is removed with the gateway that made it.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// The file of a Unix socket. It is removed when this is dropped, unless another process has made it anew by then.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    /// `None` if the file is left to another process.
    identity: Option<(u64, u64)>,
}

// === impl SocketFile ===

impl SocketFile {
    /// The file that a socket has just been bound to.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), identity: Some(identity(path)?) })
    }

    /// Another process listens on the socket now, and removes the file.
    pub(crate) fn leave(mut self) {
        self.identity = None;
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if let Some(own) = self.identity
            && identity(&self.path).is_ok_and(|found| found == own)
        {
            // If this fails, the next gateway finds a stale socket, and removes it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let found = fs::symlink_metadata(path)?;
    Ok((found.dev(), found.ino()))
}

/// Removes the file of a socket that a process has left behind. A socket that a process listens on is in use, and a file of
/// another kind is not touched.
pub(super) fn remove_stale(path: &Path) -> io::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !found.file_type().is_socket() {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, "the file exists and is not a socket"));
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        // A server may be there with a full backlog; without permission to connect that cannot be known.
        Ok(_) | Err(_) => Err(io::ErrorKind::AddrInUse.into()),
    }
}
