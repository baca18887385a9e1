//! Notices when files change, whatever way they are changed in.
//!
//! Folders are watched, not files: an editor writes a new file and renames it, and a `ConfigMap` in a pod is a link to a
//! folder that is exchanged as a whole. What a change was is not asked; whoever is told looks at the files again.

mod file;
mod folders;

use std::path::PathBuf;
use std::time::Duration;

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, PollWatcher, RecommendedWatcher, RecursiveMode, Watcher};

pub(crate) use file::WatchedFile;
pub(crate) use folders::folders_of;

/// Tells of changes in some folders.
pub(crate) struct Watch {
    watcher: Box<dyn Watcher + Send>,
    tell: Box<dyn Fn() -> Box<dyn Fn() + Send> + Send>,
    watched: Vec<PathBuf>,
    is_polling: bool,
}

/// Where the system tells of no changes, somebody has to look for them.
const POLL_PERIOD: Duration = Duration::from_millis(500);
/// Systems that tell of changes may lose some, or none may ever come from a file system of the network.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_secs(5);

// === impl Watch ===

impl Watch {
    /// Calls `changed` at every change, from a thread of its own.
    pub(crate) fn new(changed: impl Fn() + Clone + Send + 'static) -> Self {
        let tell = Box::new(move || Box::new(changed.clone()) as Box<dyn Fn() + Send>);
        let mut watch = Self { watcher: Box::new(notify::NullWatcher), tell, watched: Vec::new(), is_polling: false };
        match RecommendedWatcher::new(watch.handler(), notify::Config::default()) {
            Ok(watcher) => watch.watcher = Box::new(watcher),
            Err(error) => watch.poll(&error),
        }
        watch
    }

    /// Watches these folders, and no others. Those that do not exist are watched when they are named again and do.
    ///
    /// To be called at every look, before the files are read. All watches are made anew: a folder may have been exchanged
    /// for another of the same name, even of the same number, and the old watch tells nothing of the new folder.
    pub(crate) fn follow(&mut self, folders: Vec<PathBuf>) {
        for path in std::mem::replace(&mut self.watched, folders) {
            // The system has forgotten a folder that is gone.
            let _ = self.watcher.unwatch(&path);
        }
        if let Some(error) = self.watch_all().filter(|_| !self.is_polling) {
            self.poll(&error);
        }
    }

    /// Watches the folders, and tells why one that exists cannot be watched.
    fn watch_all(&mut self) -> Option<notify::Error> {
        let mut failure = None;
        for path in &self.watched {
            if let Err(error) = self.watcher.watch(path, RecursiveMode::NonRecursive) {
                failure = Some(error).filter(|_| path.is_dir()).or(failure);
            }
        }
        failure
    }

    /// Looks at the files from time to time instead.
    fn poll(&mut self, reason: &notify::Error) {
        self.is_polling = true;
        tracing::warn!(%reason, "the system does not tell of changes of files; they are looked at twice a second instead");
        let config = notify::Config::default().with_poll_interval(POLL_PERIOD).with_compare_contents(true);
        match PollWatcher::new(self.handler(), config) {
            Ok(watcher) => self.watcher = Box::new(watcher),
            Err(error) => tracing::warn!(%error, "changes of files are noticed late"),
        }
        let _ = self.watch_all();
    }

    fn handler(&self) -> impl Fn(notify::Result<Event>) + Send + use<> {
        let tell = (self.tell)();
        move |event: notify::Result<Event>| {
            // Reading a file is an event too, and telling of it would make the reader read again. An error may stand for
            // changes that were lost.
            let is_change = event.map_or(true, |event| match event.kind {
                EventKind::Access(access) => access == AccessKind::Close(AccessMode::Write),
                _ => true,
            });
            if is_change {
                tell();
            }
        }
    }
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").field("watched", &self.watched).finish_non_exhaustive()
    }
}
