//! Files and folders in memory, to be written as a tar archive or to a folder. The same files give the same bytes.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::record::pack;

/// By path from the root, without a slash at either end. Every file has its folders.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FileTree {
    entries: BTreeMap<String, TreeEntry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct TreeEntry {
    mode: u32,
    /// The number of its user and group. Only archives have it: who writes to a folder need not be root.
    owner: u32,
    /// None for a folder.
    content: Option<Vec<u8>>,
}

const FOLDER_MODE: u32 = 0o755;
const BLOCK: usize = 512;
/// Longer paths would need a second field.
const PATH_MAX: usize = 100;

// === impl FileTree ===

impl FileTree {
    pub(crate) fn file(&mut self, path: &str, mode: u32, content: impl Into<Vec<u8>>) -> &mut Self {
        self.add(path, TreeEntry { mode, owner: 0, content: Some(content.into()) })
    }

    pub(crate) fn folder(&mut self, path: &str, mode: u32) -> &mut Self {
        self.owned_folder(path, mode, 0)
    }

    pub(crate) fn owned_folder(&mut self, path: &str, mode: u32, owner: u32) -> &mut Self {
        self.add(path, TreeEntry { mode, owner, content: None })
    }

    /// All of another tree, below a folder.
    pub(crate) fn tree(&mut self, folder: &str, other: &Self) -> &mut Self {
        for (path, entry) in &other.entries {
            self.add(&format!("{folder}/{path}"), entry.clone());
        }
        self
    }

    fn add(&mut self, path: &str, entry: TreeEntry) -> &mut Self {
        for (end, _) in path.match_indices('/') {
            self.entries.entry(path[..end].to_owned()).or_insert(TreeEntry {
                mode: FOLDER_MODE,
                owner: 0,
                content: None,
            });
        }
        self.entries.insert(path.to_owned(), entry);
        self
    }

    /// Paths and contents of all files.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.entries.iter().filter_map(|(path, entry)| Some((path.as_str(), entry.content.as_deref()?)))
    }

    pub(crate) fn bytes(&self) -> usize {
        self.files().map(|(_, content)| content.len()).sum()
    }

    /// A tar archive (ustar) whose files have this time, in seconds since 1970.
    pub(crate) fn tar(&self, time: u64) -> Result<Vec<u8>> {
        let mut archive = Vec::new();
        for (path, entry) in &self.entries {
            let content = entry.content.as_deref().unwrap_or_default();
            archive.extend(header(path, entry, content.len(), time)?);
            archive.extend(content);
            archive.resize(archive.len().next_multiple_of(BLOCK), 0);
        }
        archive.resize(archive.len() + 2 * BLOCK, 0);
        Ok(archive)
    }

    pub(crate) fn tar_gz(&self, time: u64) -> Result<Vec<u8>> {
        pack(&self.tar(time)?)
    }

    /// Replaces a folder on disk.
    pub(crate) fn write_to(&self, folder: &Path) -> Result<()> {
        if folder.exists() {
            fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
        }
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        for (path, entry) in &self.entries {
            let path = folder.join(path);
            let written = match &entry.content {
                Some(content) => fs::write(&path, content),
                None => fs::create_dir(&path),
            };
            let set = written.and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(entry.mode)));
            set.with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }
}

/// The block before a file or folder.
fn header(path: &str, entry: &TreeEntry, size: usize, time: u64) -> Result<[u8; BLOCK]> {
    let (path, kind) = if entry.content.is_some() { (path.to_owned(), b'0') } else { (format!("{path}/"), b'5') };
    ensure!(path.len() <= PATH_MAX, "{path} is too long for an archive: {PATH_MAX} bytes are the limit");
    let mut block = [0; BLOCK];
    let mut put = |start: usize, bytes: &[u8]| block[start..start + bytes.len()].copy_from_slice(bytes);
    put(0, path.as_bytes());
    put(100, format!("{:07o}", entry.mode).as_bytes());
    put(108, format!("{:07o}", entry.owner).as_bytes());
    put(116, format!("{:07o}", entry.owner).as_bytes());
    put(124, format!("{size:011o}").as_bytes());
    put(136, format!("{time:011o}").as_bytes());
    // The sum is computed with spaces in its own place.
    put(148, b"        ");
    put(156, &[kind]);
    put(257, b"ustar\x0000");
    if entry.owner == 0 {
        put(265, b"root");
        put(297, b"root");
    }
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    Ok(block)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::dist::scratch::Scratch;

    fn tree() -> FileTree {
        let mut tree = FileTree::default();
        tree.file("usr/bin/evenkeel", 0o755, b"binary".to_vec())
            .folder("tmp", 0o1777)
            .owned_folder("data", 0o700, 65532)
            .file("empty", 0o600, "");
        tree
    }

    #[test]
    fn tar_reads_what_was_written() {
        let scratch = Scratch::new("tar");
        fs::write(scratch.path("a.tar"), tree().tar(1_000_000_000).unwrap()).unwrap();
        let output = Command::new("tar")
            .args(["--list", "--verbose", "--utc", "--file"])
            .arg(scratch.path("a.tar"))
            .output()
            .unwrap();
        assert!(output.status.success());
        let listing = String::from_utf8(output.stdout).unwrap();
        let listing: Vec<String> =
            listing.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(
            listing,
            [
                "drwx------ 65532/65532 0 2001-09-09 01:46 data/",
                "-rw------- root/root 0 2001-09-09 01:46 empty",
                "drwxrwxrwt root/root 0 2001-09-09 01:46 tmp/",
                "drwxr-xr-x root/root 0 2001-09-09 01:46 usr/",
                "drwxr-xr-x root/root 0 2001-09-09 01:46 usr/bin/",
                "-rwxr-xr-x root/root 6 2001-09-09 01:46 usr/bin/evenkeel",
            ]
        );
    }

    #[test]
    fn a_folder_on_disk_is_replaced() {
        let scratch = Scratch::new("folder");
        let root = scratch.path("root");
        fs::create_dir_all(root.join("old")).unwrap();
        tree().write_to(&root).unwrap();
        assert!(!root.join("old").exists());
        assert_eq!(fs::read(root.join("usr/bin/evenkeel")).unwrap(), b"binary");
        let mode = |path: &str| fs::metadata(root.join(path)).unwrap().permissions().mode() & 0o7777;
        assert_eq!([mode("usr/bin/evenkeel"), mode("tmp"), mode("empty")], [0o755, 0o1777, 0o600]);
    }

    #[test]
    fn long_paths_are_an_error() {
        let mut tree = FileTree::default();
        tree.file(&"x".repeat(101), 0o644, "");
        assert!(tree.tar(0).unwrap_err().to_string().ends_with("100 bytes are the limit"));
    }
}
