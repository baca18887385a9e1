//! The text files of the repository: those that git tracks or would track, or all of them where there is no git.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

pub(crate) struct Tree {
    /// All files by path from the root, with `/` between its parts.
    paths: Vec<String>,
    /// The text of each file that is one.
    texts: BTreeMap<String, String>,
}

// === impl Tree ===

impl Tree {
    pub(crate) fn read() -> Self {
        let root = root();
        let paths = listed_by_git(&root).unwrap_or_else(|| walked(&root));
        // A file that git still lists may be gone.
        let paths: Vec<String> =
            paths.into_iter().filter(|path| fs::symlink_metadata(root.join(path)).is_ok()).collect();
        let texts = paths.iter().filter_map(|path| text(&root.join(path)).map(|text| (path.clone(), text))).collect();
        Self { paths, texts }
    }

    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.paths.iter().map(String::as_str)
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.texts.get(path).map(String::as_str)
    }
}

/// Asked for at run time, since a target directory may be shared by several checkouts.
fn root() -> PathBuf {
    let own = env::var_os("CARGO_MANIFEST_DIR").expect("the tests must be run by cargo");
    Path::new(&own).join("..")
}

fn listed_by_git(root: &Path) -> Option<Vec<String>> {
    let listing = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .ok()?;
    let paths = String::from_utf8(listing.stdout).ok()?;
    listing.status.success().then(|| paths.split_terminator('\0').map(str::to_owned).collect())
}

fn walked(root: &Path) -> Vec<String> {
    let mut paths = Vec::new();
    let mut pending = vec![String::new()];
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(root.join(&folder)).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && name != ".git" && name != "target" => {
                    pending.push(path);
                }
                Ok(kind) if kind.is_file() => paths.push(path),
                _ => {}
            }
        }
    }
    paths
}

/// The file's text; nothing for a binary file, a link, or one that git still lists but that is gone.
fn text(path: &Path) -> Option<String> {
    if !fs::symlink_metadata(path).ok()?.is_file() {
        return None;
    }
    let text = String::from_utf8(fs::read(path).ok()?).ok()?;
    (!text.contains('\0')).then_some(text)
}

#[test]
fn walking_finds_what_git_lists() {
    let root = root();
    // Listed before walking: a file that another test creates in between does no harm then.
    let listed = listed_by_git(&root).unwrap_or_default();
    let walked = walked(&root);
    for path in listed {
        let present = fs::symlink_metadata(root.join(&path)).is_ok_and(|data| data.is_file());
        assert!(!present || walked.contains(&path), "{path} was not found by walking");
    }
    assert!(walked.contains(&"xtask/tests/tidy/tree.rs".to_owned()));
    assert!(!walked.iter().any(|path| path.starts_with(".git/")));
}
