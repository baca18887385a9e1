//! `FlightFiles`: the folder in which dumps are kept, at most so many of them.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A folder of dumps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FlightFiles {
    pub(crate) directory: PathBuf,
    /// How many dumps are kept.
    pub(crate) files: usize,
}

const BEGIN: &str = "flight-";
const END: &str = ".ekf";

// === impl FlightFiles ===

impl FlightFiles {
    /// Writes a dump, removes the oldest ones if there are too many, and tells the new one's path. Dumps sort by the names that they get here: `time`
    /// is milliseconds since 1970, `word` says why.
    pub(crate) fn keep(&self, time: u64, word: &str, bytes: &[u8]) -> io::Result<PathBuf> {
        fs::create_dir_all(&self.directory)?;
        let path = self.directory.join(format!("{BEGIN}{time:014}-{word}{END}"));
        let new = path.with_extension("new");
        // Dumps tell which paths clients ask for.
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        let written = file.write_all(bytes).and_then(|()| file.sync_all()).and_then(|()| fs::rename(&new, &path));
        if written.is_err() {
            // A disk that is full must not be fuller than before.
            let _ = fs::remove_file(&new);
        }
        written?;
        self.remove_oldest()?;
        Ok(path)
    }

    fn remove_oldest(&self) -> io::Result<()> {
        let mut dumps = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let path = entry?.path();
            if is_dump(&path) {
                dumps.push(path);
            }
        }
        dumps.sort();
        let surplus = dumps.len().saturating_sub(self.files.max(1));
        dumps.iter().take(surplus).try_for_each(fs::remove_file)
    }
}

/// Whether it is one of ours.
fn is_dump(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(BEGIN) && name.ends_with(END))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fr_2_the_newest_dumps_are_kept() {
        let folder = tempfile::TempDir::new().unwrap();
        let files = FlightFiles { directory: folder.path().join("new"), files: 2 };
        let of_others = files.directory.join("incident.ekf");
        fs::create_dir_all(&files.directory).unwrap();
        fs::write(&of_others, "mine").unwrap();
        let paths: Vec<_> = [9, 10, 100].map(|time| files.keep(time, "rejections", b"dump").unwrap()).into();
        let left: Vec<bool> = paths.iter().map(|path| path.exists()).collect();
        assert_eq!(left, [false, true, true]);
        assert!(of_others.exists(), "files of others stay");
        assert_eq!(fs::read(&paths[2]).unwrap(), b"dump");
        assert_eq!(fs::read_dir(&files.directory).unwrap().count(), 3);
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_an_error() {
        let folder = tempfile::TempDir::new().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(FlightFiles { directory: file, files: 2 }.keep(1, "wait", b"").is_err());
    }
}
