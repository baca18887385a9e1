//! A folder for a test, which is removed when the test ends.

use std::path::{Path, PathBuf};
use std::{env, fs, process};

pub(crate) struct Scratch(PathBuf);

// === impl Scratch ===

impl Scratch {
    pub(crate) fn new(name: &str) -> Self {
        let folder = env::temp_dir().join(format!("evenkeel-dist-{}-{name}", process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.0
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.0.join(below)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
