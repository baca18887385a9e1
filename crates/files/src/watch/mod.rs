//! Notices when files change, however they are changed.
//!
//! Folders are watched, not files: an editor writes a new file and renames it, and a `ConfigMap` in a pod is a link to a
//! folder that is exchanged as a whole. What a change was is not asked; whoever is told looks at the files again.

mod changes;
mod file;
mod folders;

use std::path::{Path, PathBuf};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode, ModifyKind};
use notify::{Event, EventKind, PollWatcher, RecommendedWatcher, RecursiveMode, Watcher};

use folders::folders_of;

pub use changes::{FileChanges, Look};
pub use file::{ReadFile, WatchedFile};

/// Tells of changes in some folders.
pub(crate) struct FileWatcher {
    watcher: Box<dyn Watcher + Send>,
    tell: Box<dyn Fn() -> Box<dyn Fn() + Send> + Send>,
    watched: Vec<PathBuf>,
    is_polling: bool,
}

/// Where the system tells of no changes, somebody has to look for them.
const POLL_PERIOD: Duration = Duration::from_millis(500);
/// Linux tells when a file that was written is closed.
const TELLS_OF_CLOSED_FILES: bool = cfg!(any(target_os = "linux", target_os = "android"));
/// Systems that tell of changes may lose some, or none may ever come from a file system of the network.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_secs(5);

// === impl FileWatcher ===

impl FileWatcher {
    /// Calls `changed` at every change, from a thread of its own.
    pub(crate) fn new(changed: impl Fn() + Clone + Send + 'static) -> Self {
        let tell = Box::new(move || Box::new(changed.clone()) as Box<dyn Fn() + Send>);
        let mut watch = Self { watcher: Box::new(notify::NullWatcher), tell, watched: Vec::new(), is_polling: false };
        match RecommendedWatcher::new(watch.handler(TELLS_OF_CLOSED_FILES), notify::Config::default()) {
            Ok(watcher) => watch.watcher = Box::new(watcher),
            Err(error) => watch.poll(&error),
        }
        watch
    }

    /// Watches the folders in which something happens when this file, or this folder of files, changes, and no others.
    ///
    /// To be called at every look, before the files are read. All watches are made anew: a folder may have been exchanged
    /// for another of the same name, even of the same number, and the old watch tells nothing of the new folder.
    pub(crate) fn follow(&mut self, path: &Path) {
        for folder in std::mem::replace(&mut self.watched, folders_of(path)) {
            // The system has forgotten a folder that is gone.
            let _ = self.watcher.unwatch(&folder);
        }
        if let Some(error) = self.watch_all().filter(|_| !self.is_polling) {
            self.poll(&error);
        }
        // A folder that came to be since the folders were looked up, while nobody watched, was told to nobody.
        let is_missed = |folder: &PathBuf| !self.watched.contains(folder) && folder.exists();
        if folders_of(path).iter().any(is_missed) {
            (self.tell)()();
        }
    }

    /// Watches the folders, forgets those that do not exist, and tells why another cannot be watched.
    fn watch_all(&mut self) -> Option<notify::Error> {
        let mut failure = None;
        self.watched.retain(|folder| match self.watcher.watch(folder, RecursiveMode::NonRecursive) {
            Ok(()) => true,
            Err(error) if is_absence(&error) => false,
            Err(error) => {
                failure = Some(error);
                true
            }
        });
        failure
    }

    /// Looks at the files from time to time instead.
    fn poll(&mut self, reason: &notify::Error) {
        self.is_polling = true;
        tracing::warn!(%reason, "the system does not report file changes; files are polled twice a second instead");
        let config = notify::Config::default().with_poll_interval(POLL_PERIOD).with_compare_contents(true);
        match PollWatcher::new(self.handler(false), config) {
            Ok(watcher) => self.watcher = Box::new(watcher),
            Err(error) => tracing::warn!(%error, "cannot poll files either; changes are noticed late"),
        }
        let _ = self.watch_all();
    }

    fn handler(&self, tells_of_closed_files: bool) -> impl Fn(notify::Result<Event>) + Send + use<> {
        let tell = (self.tell)();
        move |event: notify::Result<Event>| {
            // Reading a file is an event too, and telling of it would make the reader read again. Where the end of writing
            // is told, each write before it is not: a log in the same folder is written all the time. An error may stand
            // for changes that were lost.
            let is_change = event.map_or(true, |event| match event.kind {
                EventKind::Access(access) => access == AccessKind::Close(AccessMode::Write),
                EventKind::Modify(ModifyKind::Data(_)) => !tells_of_closed_files,
                _ => true,
            });
            if is_change {
                tell();
            }
        }
    }
}

fn is_absence(error: &notify::Error) -> bool {
    match &error.kind {
        notify::ErrorKind::PathNotFound => true,
        notify::ErrorKind::Io(error) => error.kind() == std::io::ErrorKind::NotFound,
        _ => false,
    }
}

impl std::fmt::Debug for FileWatcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileWatcher").field("watched", &self.watched).finish_non_exhaustive()
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs::File;
    use std::io::Write;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_log_in_a_watched_folder_is_no_change_with_every_line() {
        let folder = tempfile::tempdir().unwrap();
        let settings = folder.path().join("settings.yaml");
        let mut log = File::create(folder.path().join("access.log")).unwrap();
        let changes = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&changes);
        let mut watcher = FileWatcher::new(move || {
            counter.fetch_add(1, Ordering::SeqCst);
        });
        watcher.follow(&settings);
        for _ in 0..1000 {
            log.write_all(b"a line\n").unwrap();
        }
        // Events come in order: once this is noticed, so were the lines.
        std::fs::write(&settings, "new").unwrap();
        let patience = Instant::now() + Duration::from_secs(60);
        while changes.load(Ordering::SeqCst) == 0 {
            assert!(Instant::now() < patience, "the new file was never noticed");
            std::thread::yield_now();
        }
        // To make a file, and to close it.
        let noticed = changes.load(Ordering::SeqCst);
        assert!(noticed <= 2, "{noticed}");
    }
}
