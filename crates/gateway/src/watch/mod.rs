//! Notices when files change, whatever way they are changed in.
//!
//! Folders are watched, not files: an editor writes a new file and renames it, and a ConfigMap in a pod is a link to a
//! folder that is exchanged as a whole. What a change was is not asked; whoever is told looks at the files again.

mod file;
mod folders;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, PollWatcher, RecommendedWatcher, RecursiveMode, Watcher};

pub(crate) use file::WatchedFile;
pub(crate) use folders::folders_of;

/// Tells of changes in some folders.
pub(crate) struct Watch {
    watcher: Box<dyn Watcher + Send>,
    tell: Box<dyn Fn() -> Box<dyn Fn() + Send> + Send>,
    /// Which folders are watched, and which folder it was when that began: a path may come to mean another one.
    watched: BTreeMap<PathBuf, Option<FolderId>>,
    is_polling: bool,
}

/// Which folder a path means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FolderId(u64, u64);

/// Where the system tells of no changes, somebody has to look for them.
const POLL_PERIOD: Duration = Duration::from_millis(500);
/// Systems that tell of changes may lose some, or none may ever come from a file system of the network.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_secs(5);

// === impl Watch ===

impl Watch {
    /// Calls `changed` at every change, from a thread of its own.
    pub(crate) fn new(changed: impl Fn() + Clone + Send + 'static) -> Self {
        let tell = Box::new(move || Box::new(changed.clone()) as Box<dyn Fn() + Send>);
        let mut watch =
            Self { watcher: Box::new(notify::NullWatcher), tell, watched: BTreeMap::new(), is_polling: false };
        match RecommendedWatcher::new(watch.handler(), notify::Config::default()) {
            Ok(watcher) => watch.watcher = Box::new(watcher),
            Err(error) => watch.poll(&error),
        }
        watch
    }

    /// Watches these folders, and no others. Those that do not exist are watched when they are named again and do.
    pub(crate) fn follow(&mut self, folders: Vec<PathBuf>) {
        let wanted: BTreeMap<_, _> =
            folders.into_iter().map(|path| (folder_id(&path), path)).map(|(id, path)| (path, id)).collect();
        if wanted == self.watched {
            return;
        }
        let is_same = |path: &PathBuf, id: &Option<FolderId>, other: &BTreeMap<_, _>| other.get(path) == Some(id);
        for (path, _) in self.watched.iter().filter(|(path, id)| !is_same(path, id, &wanted)) {
            // The system has forgotten a folder that is gone.
            let _ = self.watcher.unwatch(path);
        }
        let mut failure = None;
        for (path, _) in wanted.iter().filter(|(path, id)| id.is_some() && !is_same(path, id, &self.watched)) {
            if let Err(error) = self.watcher.watch(path, RecursiveMode::NonRecursive) {
                // A folder that has just gone is named again at the next look.
                if folder_id(path).is_some() {
                    failure = Some(error);
                }
            }
        }
        self.watched = wanted;
        if let Some(error) = failure.filter(|_| !self.is_polling) {
            self.poll(&error);
        }
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
        for path in self.watched.keys() {
            let _ = self.watcher.watch(path, RecursiveMode::NonRecursive);
        }
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

#[cfg(unix)]
fn folder_id(path: &Path) -> Option<FolderId> {
    use std::os::unix::fs::MetadataExt;
    let metadata = path.metadata().ok().filter(std::fs::Metadata::is_dir)?;
    Some(FolderId(metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn folder_id(path: &Path) -> Option<FolderId> {
    path.is_dir().then_some(FolderId(0, 0))
}
