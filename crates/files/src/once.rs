//! Reads for a program that runs once, and also reads what another program writes to a pipe, as in `--kubeconfig <(kind get
//! kubeconfig)`.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{BYTES_MAX, open_at_once, read};

/// How long to wait for the writer of a pipe in all.
const PATIENCE: Duration = Duration::from_secs(10);

/// The bytes of a file, or of a pipe that another program writes to: all of them must arrive within ten seconds.
pub fn read_once(path: &Path) -> io::Result<Vec<u8>> {
    if !path.metadata()?.file_type().is_fifo() {
        return read(path);
    }
    let pipe = open_at_once(OpenOptions::new().read(true), path)?;
    let until = Instant::now() + PATIENCE;
    // Until its writer has opened it, a pipe looks as if it had ended.
    wait(&pipe, until, "it is a pipe that no process writes to")?;
    read_pipe(&pipe, until)
}

fn read_pipe(mut pipe: &File, until: Instant) -> io::Result<Vec<u8>> {
    let (mut bytes, mut part) = (Vec::new(), [0; 4096]);
    loop {
        match pipe.read(&mut part) {
            Ok(0) => return Ok(bytes),
            Ok(length) if (bytes.len() + length) as u64 <= BYTES_MAX => bytes.extend_from_slice(&part[..length]),
            Ok(_) => {
                return Err(io::Error::new(
                    io::ErrorKind::FileTooLarge,
                    format!("there are more than {BYTES_MAX} bytes"),
                ));
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                wait(pipe, until, "it is a pipe whose writer does not finish")?;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Waits until there is something to read, or the writer has ended.
fn wait(pipe: &File, until: Instant, otherwise: &'static str) -> io::Result<()> {
    let left = until.saturating_duration_since(Instant::now());
    let left = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
    match poll(&mut [PollFd::new(pipe, PollFlags::IN)], Some(&left)) {
        Ok(0) => Err(io::Error::new(io::ErrorKind::TimedOut, otherwise)),
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::super::tests::fifo;
    use super::*;

    #[test]
    fn a_pipe_is_read_to_its_end() {
        let (_folder, path) = fifo();
        let writer = {
            let path = path.clone();
            std::thread::spawn(move || {
                // This one does wait, for the reader below.
                let mut writer = OpenOptions::new().write(true).open(path).unwrap();
                for _ in 0..100 {
                    writer.write_all(&[b'x'; 1000]).unwrap();
                }
            })
        };
        let bytes = read_once(&path).unwrap();
        writer.join().unwrap();
        assert_eq!(bytes.len(), 100_000);
    }

    #[test]
    fn a_writer_that_never_finishes_is_not_waited_for_for_ever() {
        let (_folder, path) = fifo();
        let pipe = open_at_once(OpenOptions::new().read(true), &path).unwrap();
        let _writer = OpenOptions::new().write(true).open(&path).unwrap();
        let error = read_pipe(&pipe, Instant::now() + Duration::from_millis(10)).unwrap_err();
        assert_eq!(error.to_string(), "it is a pipe whose writer does not finish");
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(read_once(file.path()).unwrap().is_empty(), "a file may be empty");
    }
}
