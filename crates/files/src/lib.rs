//! Reads the files that operators name, and never waits for one.
//!
//! Opening a FIFO waits for a process at its other end, and so does reading from it. A server that finds a FIFO in the place
//! of a file, even for a moment while the file is replaced, would hang. Everything here returns at once, with one exception
//! that has a limit: [`read_once`], for commands that a user waits for.
//!
//! ```
//! use std::path::Path;
//!
//! let error = evenkeel_files::read(Path::new("/dev")).unwrap_err();
//! assert_eq!(error.to_string(), "it is a folder, not a regular file");
//! ```
//!
//! With the feature `watch`, [`WatchedFile`] is a value that is read from a file again when the file changes, and [`FileChanges`] waits
//! for changes of a file or a folder.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod access;
mod append;
mod not_regular;
mod once;
#[cfg(feature = "watch")]
mod watch;

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

#[cfg(feature = "watch")]
pub use access::warn_if_open_to_others;
pub use access::{advice, is_open_to_others};
pub use append::open_to_append;
pub use not_regular::NotRegular;
pub use once::read_once;
#[cfg(feature = "watch")]
pub use watch::{FileChanges, Look, ReadFile, WatchedFile};

/// The largest file that is read. Files of settings, keys and objects are smaller.
const BYTES_MAX: u64 = 64 << 20;

/// Opens a file for reading. Anything but a regular file or a device is rejected, with [`NotRegular`] inside of the error.
///
/// Reading from the file does not wait either: a device that has nothing to read is an error.
pub fn open(path: &Path) -> io::Result<File> {
    // Checked before opening, since opening a FIFO wakes its writer; and after, since the file may have been replaced.
    NotRegular::check(path.metadata()?.file_type())?;
    let file = open_at_once(OpenOptions::new().read(true), path)?;
    NotRegular::check(file.metadata()?.file_type())?;
    Ok(file)
}

/// The bytes of a file, see [`open`].
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_all(open(path)?)
}

/// The text of a file, see [`open`].
pub fn read_to_string(path: &Path) -> io::Result<String> {
    text(read(path)?)
}

/// Opens without waiting for anybody.
fn open_at_once(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    // The bits of flags are the same in either type.
    options.custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)
}

fn read_all(file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it has more than {BYTES_MAX} bytes")));
    }
    Ok(bytes)
}

fn text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not valid UTF-8"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::net::UnixListener;
    use std::path::PathBuf;

    use rustix::fs::{CWD, FileType, Mode, mknodat};
    use tempfile::TempDir;

    use super::*;

    pub(super) fn fifo() -> (TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fifo");
        mknodat(CWD, &path, FileType::Fifo, Mode::RWXU, 0).unwrap();
        (folder, path)
    }

    #[test]
    fn a_file_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "text").unwrap();
        assert_eq!(read(&path).unwrap(), b"text");
        assert_eq!(read_to_string(&path).unwrap(), "text");
        fs::write(&path, [0xff]).unwrap();
        assert_eq!(read_to_string(&path).unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(read(&folder.path().join("absent")).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(read(Path::new("/dev/null")).unwrap(), b"");
    }

    #[test]
    fn what_is_no_file_is_refused_at_once() {
        let (folder, fifo) = fifo();
        let socket = folder.path().join("socket");
        let _listener = UnixListener::bind(&socket).unwrap();
        for (path, what) in [(fifo.as_path(), "a FIFO"), (&socket, "a socket"), (folder.path(), "a folder")] {
            for error in [open(path).unwrap_err(), read(path).unwrap_err(), read_to_string(path).unwrap_err()] {
                assert_eq!(error.to_string(), format!("it is {what}, not a regular file"));
                assert!(error.get_ref().unwrap().is::<NotRegular>());
            }
        }
    }

    #[test]
    fn a_file_without_end_is_too_large() {
        assert_eq!(read(Path::new("/dev/zero")).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }
}
