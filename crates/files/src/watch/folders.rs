//! The folders in which something happens when a file or a folder of files changes.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

/// Links may lead to many folders; whoever has more of them is told of changes there a little later.
const FOLDERS_MAX: usize = 64;

/// The folders to watch for the sake of a file, or of a folder and its files: where its name is, where it really is, and
/// where those of its files are that are links. A folder comes after the one that tells of its exchange.
pub(super) fn folders_of(path: &Path) -> Vec<PathBuf> {
    let mut folders = vec![parent(path)];
    if let Ok(target) = path.canonicalize() {
        folders.push(parent(&target));
        if target.is_dir() {
            folders.push(path.to_owned());
            folders.extend(link_targets(path).map(|target| parent(&target)).collect::<BTreeSet<_>>());
        }
    }
    let mut known = HashSet::new();
    folders.retain(|folder| known.insert(folder.clone()));
    folders.truncate(FOLDERS_MAX);
    folders
}

fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        // The parent of a bare name is the current folder, and is written as nothing.
        Some(parent) if parent.as_os_str().is_empty() => PathBuf::from("."),
        Some(parent) => parent.to_owned(),
        None => path.to_owned(),
    }
}

fn link_targets(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = folder.read_dir().into_iter().flatten().filter_map(Result::ok);
    let links = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
    links.filter_map(|link| link.path().canonicalize().ok())
}
