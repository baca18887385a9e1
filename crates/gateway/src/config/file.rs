//! `ConfigFile`: a file of settings that is watched for changes.

use std::path::Path;

use evenkeel_files::FileChanges;

/// A file of settings that is watched for changes.
#[derive(Debug)]
pub struct ConfigFile {
    changes: FileChanges,
    /// The content at the last look.
    last: Option<Result<Vec<u8>, String>>,
}

// === impl ConfigFile ===

impl ConfigFile {
    /// Watches this file. Has to be called, as `changed`, inside of a tokio runtime with its timer on.
    pub fn watch(path: &Path) -> Self {
        Self { changes: FileChanges::new(path), last: None }
    }

    /// Waits until the file says something else than at the last look. The first time it returns at once, so that no change
    /// between reading the file and watching it is lost. Dropping the future loses nothing.
    pub async fn changed(&mut self) {
        loop {
            if self.last.is_some() {
                self.changes.wait().await;
            }
            let look = self.changes.begin_look();
            let path = self.changes.path().to_owned();
            let reading =
                tokio::task::spawn_blocking(move || evenkeel_files::read(&path).map_err(|error| error.to_string()));
            let Ok(found) = reading.await else {
                // The runtime is shutting down, so that nobody waits for this any more.
                std::future::pending().await
            };
            self.changes.end_look(look);
            if self.last.as_ref() != Some(&found) {
                self.last = Some(found);
                return;
            }
        }
    }
}
