//! `Output`: the destination of access log lines: a file that others may rename or delete, or standard output.

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::observe::log::Throttle;

/// A file or standard output.
#[derive(Debug)]
pub(super) struct Output {
    lines: LineWriter<File>,
    /// The path of the file; `None` for standard output.
    path: Option<PathBuf>,
    /// When it was last checked that the file is still there.
    checked: Instant,
    throttle: Throttle,
}

/// The outcome of writing some lines.
#[derive(Debug)]
pub(super) struct Written {
    /// How many lines were written as a whole.
    pub(super) lines: u64,
    /// The error for the other lines.
    pub(super) result: io::Result<()>,
}

/// Writes whole lines, and ends a line that it could only write in part before it writes another.
#[derive(Debug)]
struct LineWriter<W> {
    to: W,
    is_cut: bool,
}

/// How often it is checked that the file is still there.
pub(super) const CHECK_PERIOD: Duration = Duration::from_secs(1);

// === impl Output ===

impl Output {
    /// Opens the file, or standard output without one.
    pub(super) fn open(path: Option<&Path>) -> io::Result<Self> {
        let lines = match path {
            Some(path) => open(path)?,
            // The standard library would keep a part of a line in a buffer, so that it were not known how much was written.
            None => LineWriter { to: io::stdout().as_fd().try_clone_to_owned()?.into(), is_cut: false },
        };
        Ok(Self { lines, path: path.map(Path::to_owned), checked: Instant::now(), throttle: Throttle::default() })
    }

    /// Writes lines, as many as possible.
    pub(super) fn write(&mut self, lines: &[u8]) -> Written {
        match self.follow() {
            Ok(()) => self.lines.write(lines),
            Err(error) => Written { lines: 0, result: Err(error) },
        }
    }

    /// Opens the file again if it was renamed or deleted, as by tools that rotate logs. An error means that lines would be in no
    /// file.
    pub(super) fn follow(&mut self) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let opened = self.lines.to.metadata()?;
        let is_deleted = opened.nlink() == 0;
        if !is_deleted {
            if self.checked.elapsed() < CHECK_PERIOD {
                return Ok(());
            }
            self.checked = Instant::now();
            if path.metadata().is_ok_and(|named| is_same_file(&named, &opened)) {
                return Ok(());
            }
        }
        match open(path) {
            Ok(lines) => self.lines = lines,
            Err(error) if is_deleted => return Err(error),
            // The open file still exists under its new name, so lines go there until the old name can be used again: an
            // unexpected file is better than lost lines.
            Err(error) => {
                if self.throttle.may_log() {
                    let file = path.display();
                    tracing::error!(%error, %file, "the access log was renamed and cannot be created again; lines go to the renamed file");
                }
            }
        }
        Ok(())
    }
}

fn open(path: &Path) -> io::Result<LineWriter<File>> {
    let to = evenkeel_files::open_to_append(path)?;
    let is_cut = to.metadata()?.is_file() && is_last_line_cut(path).unwrap_or(false);
    Ok(LineWriter { to, is_cut })
}

/// Whether a file ends within a line, as it does if its disk was full when its writer stopped.
fn is_last_line_cut(path: &Path) -> io::Result<bool> {
    let (mut file, mut last) = (evenkeel_files::open(path)?, [0]);
    if file.metadata()?.len() == 0 {
        return Ok(false);
    }
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

fn is_same_file(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

// === impl LineWriter ===

impl<W: Write> LineWriter<W> {
    /// Writes lines, as many as possible.
    fn write(&mut self, lines: &[u8]) -> Written {
        if self.is_cut
            && let (_, Err(error)) = write_some(&mut self.to, b"\n")
        {
            return Written { lines: 0, result: Err(error) };
        }
        let (length, result) = write_some(&mut self.to, lines);
        let (written, rest) = lines.split_at(length);
        self.is_cut = written.last().is_some_and(|byte| *byte != b'\n');
        // A line that lacks only its end gets it before the next one.
        let is_nearly_whole = self.is_cut && rest.starts_with(b"\n");
        Written { lines: count_lines(written) + u64::from(is_nearly_whole), result }
    }
}

/// Writes as much as possible: how many bytes, and why not all.
fn write_some(to: &mut impl Write, bytes: &[u8]) -> (usize, io::Result<()>) {
    let mut length = 0;
    while length < bytes.len() {
        match to.write(&bytes[length..]) {
            Ok(0) => return (length, Err(ErrorKind::WriteZero.into())),
            Ok(more) => length += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return (length, Err(error)),
        }
    }
    (length, Ok(()))
}

fn count_lines(text: &[u8]) -> u64 {
    text.iter().map(|byte| u64::from(*byte == b'\n')).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A disk with so much room.
    #[derive(Debug, Default)]
    struct Disk {
        text: Vec<u8>,
        room: usize,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.room == 0 {
                return Err(ErrorKind::StorageFull.into());
            }
            // Never more than three bytes at once.
            let length = bytes.len().min(self.room).min(3);
            self.room -= length;
            self.text.extend_from_slice(&bytes[..length]);
            Ok(length)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn on_disk(room: usize) -> LineWriter<Disk> {
        LineWriter { to: Disk { text: Vec::new(), room }, is_cut: false }
    }

    #[test]
    fn a_line_that_was_cut_spoils_no_other() {
        for (room, whole, text) in [
            (0, 0, "next\n"),
            (2, 0, "fi\nnext\n"),
            // The line lacks only its end.
            (5, 1, "first\nnext\n"),
            (6, 1, "first\nnext\n"),
            (8, 1, "first\nse\nnext\n"),
            (12, 2, "first\nsecond\nnext\n"),
        ] {
            let mut writer = on_disk(room);
            let written = writer.write(b"first\nsecond\n");
            assert_eq!((written.lines, written.result.is_err()), (whole, true), "{room}");
            // The disk is still full at first, and then it is not.
            assert_eq!(writer.write(b"lost\n").lines, 0, "{room}");
            writer.to.room = 1000;
            let written = writer.write(b"next\n");
            assert_eq!((written.lines, written.result.is_ok()), (1, true), "{room}");
            assert_eq!(String::from_utf8_lossy(&writer.to.text), text, "{room}");
        }
    }

    proptest! {
        #[test]
        fn lines_that_count_as_written_are_those_in_the_output(rooms in prop::collection::vec(0_usize..40, 1..20)) {
            let mut writer = on_disk(0);
            let (mut counted, mut number) = (0, 0);
            for room in rooms {
                writer.to.room += room;
                let lines = [0, 1, 2].map(|more| format!("line {:03}.\n", number + more)).concat();
                number += 3;
                counted += writer.write(lines.as_bytes()).lines;
            }
            let text = String::from_utf8(writer.to.text).unwrap();
            let is_whole = |line: &&str| line.len() == 9 && line.starts_with("line ") && line.ends_with('.');
            prop_assert_eq!(text.lines().filter(is_whole).count() as u64, counted, "{}", text);
            prop_assert!(text.lines().all(|line| "line 000.".len() >= line.len()), "{}", text);
        }
    }

    #[test]
    fn a_file_that_ends_within_a_line_gets_a_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        std::fs::write(&path, "whole\ncu").unwrap();
        assert_eq!(Output::open(Some(&path)).unwrap().write(b"next\n").lines, 1);
        assert_eq!(Output::open(Some(&path)).unwrap().write(b"last\n").lines, 1);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "whole\ncu\nnext\nlast\n");
    }

    #[test]
    fn lines_are_lost_while_the_file_is_deleted_and_cannot_be_created() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("logs/access.log");
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        let mut output = Output::open(Some(&path)).unwrap();
        assert_eq!(output.write(b"a\n").lines, 1);
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
        for _ in 0..3 {
            let written = output.write(b"b\nc\n");
            assert_eq!((written.lines, written.result.unwrap_err().kind()), (0, ErrorKind::NotFound));
        }
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        assert_eq!(output.write(b"d\n").lines, 1);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "d\n");
    }

    #[test]
    fn lines_go_to_the_renamed_file_while_no_new_one_can_be_created() {
        let folder = tempfile::tempdir().unwrap();
        let (path, renamed) = (folder.path().join("logs/access.log"), folder.path().join("renamed.log"));
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        let mut output = Output::open(Some(&path)).unwrap();
        std::fs::rename(&path, &renamed).unwrap();
        std::fs::remove_dir(path.parent().unwrap()).unwrap();
        for _ in 0..2 {
            output.checked = Instant::now().checked_sub(CHECK_PERIOD).unwrap();
            assert_eq!(output.write(b"a\n").lines, 1);
        }
        assert_eq!(std::fs::read_to_string(&renamed).unwrap(), "a\na\n");
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        output.checked = Instant::now().checked_sub(CHECK_PERIOD).unwrap();
        assert_eq!(output.write(b"b\n").lines, 1);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "b\n");
    }
}
