//! Opens a file to which lines are appended, or a FIFO that has a reader.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;

use super::open_at_once;

/// Opens a file to append to it, and creates it if it does not exist. A FIFO must have a reader: waiting for one could take
/// for ever.
///
/// Writes to the file wait for room as usual.
pub fn open_to_append(path: &Path) -> io::Result<File> {
    let file = open_at_once(OpenOptions::new().create(true).append(true), path).map_err(|error| {
        let is_fifo = || path.metadata().is_ok_and(|found| found.file_type().is_fifo());
        if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) && is_fifo() {
            return io::Error::new(error.kind(), "it is a FIFO that no process reads; start its reader first");
        }
        error
    })?;
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::super::tests::fifo;
    use super::*;

    #[test]
    fn lines_are_appended() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        for line in ["a\n", "b\n"] {
            open_to_append(&path).unwrap().write_all(line.as_bytes()).unwrap();
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "a\nb\n");
    }

    #[test]
    fn a_fifo_is_written_to_if_somebody_reads_it() {
        let (_folder, path) = fifo();
        let error = open_to_append(&path).unwrap_err();
        assert_eq!(error.to_string(), "it is a FIFO that no process reads; start its reader first");
        let mut reader = open_at_once(OpenOptions::new().read(true), &path).unwrap();
        let mut writer = open_to_append(&path).unwrap();
        assert!(!fcntl_getfl(&writer).unwrap().contains(OFlags::NONBLOCK), "writing waits for room");
        writer.write_all(b"line\n").unwrap();
        let mut line = [0; 5];
        reader.read_exact(&mut line).unwrap();
        assert_eq!(&line, b"line\n");
    }
}
