//! `cargo xtask record FOLDER`: takes recordings of a real Kubernetes over into `tests/recorded`, each file packed with gzip.
//!
//! The same content gives the same bytes, and a file whose content is already there is left as it is, so that taking a
//! folder over again changes nothing.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use flate2::{Compression, GzBuilder, read::MultiGzDecoder};

use crate::run::root;

/// The folder of the recordings in the repository.
const RECORDED: &str = "tests/recorded";

/// The parts of a folder of recordings, and of [`RECORDED`].
const PARTS: [&str; 2] = ["golden", "conformance"];

/// The types of files in recordings, once they are unpacked.
const DATA: [&str; 3] = ["json", "jsonl", "txt"];

/// Files beside the recordings that are ours to write: descriptions and the replayer.
const NOT_DATA: [&str; 2] = ["md", "py"];

/// More than this makes a clone slow.
const BYTES_MAX: u64 = 8 << 20;

/// The outcome for the files.
#[derive(Debug, Default, PartialEq, Eq)]
struct FileCounts {
    added: usize,
    changed: usize,
    unchanged: usize,
}

pub(crate) fn record(folder: &str) -> Result<()> {
    let target = root()?.join(RECORDED);
    let tally = take_over(Path::new(folder), &target)?;
    let bytes = packed_bytes(&target)?;
    println!(
        "{RECORDED}: {} files added, {} changed, {} unchanged; {bytes} bytes packed",
        tally.added, tally.changed, tally.unchanged
    );
    if bytes > BYTES_MAX {
        bail!("{RECORDED} has {bytes} bytes of recordings; {BYTES_MAX} is the limit: take some of them out");
    }
    Ok(())
}

fn take_over(folder: &Path, target: &Path) -> Result<FileCounts> {
    let mut tally = FileCounts::default();
    let mut found = false;
    for part in PARTS {
        let source = folder.join(part);
        if source.is_dir() {
            found = true;
            for file in files_below(&source)? {
                take_over_file(&file, &source, &target.join(part), &mut tally)?;
            }
        }
    }
    if !found {
        bail!("{} has neither of the folders `{}` and `{}`", folder.display(), PARTS[0], PARTS[1]);
    }
    Ok(tally)
}

fn take_over_file(file: &Path, source: &Path, target: &Path, tally: &mut FileCounts) -> Result<()> {
    let below = file.strip_prefix(source).context("a file outside its folder")?;
    let plain = if has_extension(below, &["gz"]) { below.with_extension("") } else { below.to_owned() };
    if has_extension(&plain, &NOT_DATA) {
        return Ok(());
    }
    if !has_extension(&plain, &DATA) {
        bail!("{}: recordings are files that end in .{}, packed with gzip or not", file.display(), DATA.join(", ."));
    }
    let content = unpacked(file)?;
    let mut name = plain.into_os_string();
    name.push(".gz");
    let packed = target.join(name);
    match packed.exists().then(|| unpacked(&packed)).transpose()? {
        Some(present) if present == content => {
            tally.unchanged += 1;
            return Ok(());
        }
        Some(_) => tally.changed += 1,
        None => tally.added += 1,
    }
    if let Some(parent) = packed.parent() {
        fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
    }
    fs::write(&packed, pack(&content)?).with_context(|| format!("cannot write {}", packed.display()))
}

/// Without a name and a time, so that the same content gives the same bytes.
pub(crate) fn pack(content: &[u8]) -> Result<Vec<u8>> {
    let mut packed = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    packed.write_all(content)?;
    Ok(packed.finish()?)
}

/// A file's content; that of one whose name ends in `.gz` is unpacked.
fn unpacked(file: &Path) -> Result<Vec<u8>> {
    let content = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    if !has_extension(file, &["gz"]) {
        return Ok(content);
    }
    let mut unpacked = Vec::new();
    let packed = MultiGzDecoder::new(content.as_slice()).read_to_end(&mut unpacked);
    packed.with_context(|| format!("cannot unpack {}", file.display()))?;
    Ok(unpacked)
}

/// The size of all packed files.
fn packed_bytes(target: &Path) -> Result<u64> {
    let mut bytes = 0;
    for part in PARTS.iter().map(|part| target.join(part)).filter(|part| part.is_dir()) {
        for file in files_below(&part)?.iter().filter(|file| has_extension(file, &["gz"])) {
            bytes += fs::metadata(file)?.len();
        }
    }
    Ok(bytes)
}

fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))? {
            let path = entry?.path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    Ok(files)
}

fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    path.extension().and_then(|extension| extension.to_str()).is_some_and(|found| extensions.contains(&found))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder that goes when the test ends.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("evenkeel-record-{}-{name}", std::process::id()));
            fs::create_dir_all(&folder).unwrap();
            Self(folder)
        }

        fn write(&self, file: &str, content: &[u8]) {
            let path = self.0.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }

        fn files(&self) -> Vec<String> {
            let below = |file: PathBuf| file.strip_prefix(&self.0).unwrap().to_str().unwrap().to_owned();
            files_below(&self.0).unwrap().into_iter().map(below).collect()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    #[test]
    fn recordings_are_packed_once() {
        let (source, target) = (Folder::new("source"), Folder::new("target"));
        source.write("golden/engine/deal.jsonl", b"{}\n");
        source.write("golden/more/borrowing.jsonl.gz", &pack(b"[]\n").unwrap());
        source.write("golden/README.md", b"not data");
        source.write("conformance/replay.py", b"not data");
        source.write("conformance/transcripts/crud.json", b"{}");
        source.write("elsewhere/notes.json", b"{}");
        let all_added = FileCounts { added: 3, ..FileCounts::default() };
        assert_eq!(take_over(&source.0, &target.0).unwrap(), all_added);
        assert_eq!(
            target.files(),
            ["conformance/transcripts/crud.json.gz", "golden/engine/deal.jsonl.gz", "golden/more/borrowing.jsonl.gz"]
        );
        assert_eq!(unpacked(&target.0.join("golden/more/borrowing.jsonl.gz")).unwrap(), b"[]\n");

        // Packed by another program: the content counts, not the bytes.
        let mut otherwise = GzBuilder::new().mtime(7).filename("deal").write(Vec::new(), Compression::none());
        otherwise.write_all(b"{}\n").unwrap();
        let otherwise = otherwise.finish().unwrap();
        target.write("golden/engine/deal.jsonl.gz", &otherwise);
        source.write("conformance/transcripts/crud.json", b"{\n}");
        let tally = FileCounts { changed: 1, unchanged: 2, ..FileCounts::default() };
        assert_eq!(take_over(&source.0, &target.0).unwrap(), tally);
        assert_eq!(fs::read(target.0.join("golden/engine/deal.jsonl.gz")).unwrap(), otherwise);
        assert!(packed_bytes(&target.0).unwrap() > otherwise.len() as u64);
    }

    #[test]
    fn the_same_content_gives_the_same_bytes() {
        assert_eq!(pack(b"text").unwrap(), pack(b"text").unwrap());
        assert_eq!(pack(b"text").unwrap()[4..8], [0; 4], "no time");
    }

    #[test]
    fn what_the_repository_has_is_packed_and_small() {
        let recorded = root().unwrap().join(RECORDED);
        for part in PARTS {
            let files = files_below(&recorded.join(part)).unwrap();
            assert!(files.iter().any(|file| has_extension(file, &["gz"])), "no recordings in {part}");
            let plain: Vec<_> = files.iter().filter(|file| has_extension(file, &DATA)).collect();
            assert!(plain.is_empty(), "not packed; run `cargo xtask record`: {plain:?}");
        }
        assert!(packed_bytes(&recorded).unwrap() <= BYTES_MAX);
    }

    #[test]
    fn other_files_are_named() {
        let (source, target) = (Folder::new("other"), Folder::new("none"));
        let error = take_over(&source.0, &target.0).unwrap_err().to_string();
        assert!(error.ends_with("has neither of the folders `golden` and `conformance`"), "{error}");
        source.write("golden/program.exe", b"");
        let error = take_over(&source.0, &target.0).unwrap_err().to_string();
        assert!(
            error.ends_with(
                "program.exe: recordings are files that end in .json, .jsonl, .txt, packed with gzip or not"
            ),
            "{error}"
        );
    }
}
