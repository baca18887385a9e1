//! Finding the recorded engine decisions, whatever their files are called and however many there are.

use std::fs;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use crate::{document, golden, rows};

/// What is recorded. The name of a kind is what its files or folders start with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Golden {
    /// Allocation problems.
    Allocate,
    /// The objects that exist in every cluster.
    Bootstrap,
    /// Limits that follow the demand for seats.
    Borrowing,
    /// Choices of flow schema and flow.
    Classify,
    /// Shuffle sharding.
    Deal,
    /// Estimates of work.
    Estimate,
    /// The parameters of these estimates.
    EstimateConfig,
    /// Hashes of flows.
    FlowHash,
    /// Limits that follow from configurations.
    Limits,
    /// Events of one queue set.
    QueueSet,
    /// Events that show defects of the recorded server.
    QueueSetDefects,
    /// Attributes of requests.
    RequestInfo,
    /// Suggestions to rejected clients.
    RetryAfter,
}

/// What a file of a kind looks like, and where its kind is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// One value a line; the file starts with the name of the kind, or else its folder does.
    Rows,
    /// One value a file, which starts with the name of the kind.
    Document,
    /// One value a file, in a folder that starts with the name of the kind.
    Traces,
}

/// All files of a kind, in the order of their names.
///
/// # Panics
/// If there are none of that kind: a test would pass without testing.
pub fn golden_files(kind: Golden) -> Vec<PathBuf> {
    let folder = golden();
    let engine = folder.join("engine");
    let folder = if engine.is_dir() { engine } else { folder };
    let files = files_below(&folder, kind);
    assert!(!files.is_empty(), "no file of the kind `{}` below {}", kind.name(), folder.display());
    files
}

/// The rows of all files of a kind.
///
/// # Panics
/// If there is no such file, or one has no rows or rows of another type.
pub fn golden_rows<T: DeserializeOwned>(kind: Golden) -> Vec<(PathBuf, Vec<T>)> {
    let read = |file: PathBuf| {
        let rows = rows(&file);
        (file, rows)
    };
    golden_files(kind).into_iter().map(read).collect()
}

/// All files of a kind that have one value each.
///
/// # Panics
/// If there is no such file, or one has a value of another type.
pub fn golden_documents<T: DeserializeOwned>(kind: Golden) -> Vec<(PathBuf, T)> {
    let read = |file: PathBuf| {
        let document = document(&file);
        (file, document)
    };
    golden_files(kind).into_iter().map(read).collect()
}

fn files_below(folder: &Path, kind: Golden) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(inner) = folders.pop() {
        let entries = fs::read_dir(&inner).unwrap_or_else(|error| panic!("{}: {error}", inner.display()));
        for entry in entries {
            let path = entry.unwrap_or_else(|error| panic!("{}: {error}", inner.display())).path();
            if path.is_dir() {
                folders.push(path);
            } else if path.strip_prefix(folder).is_ok_and(|below| Golden::of(below) == Some(kind)) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

// === impl Golden ===

impl Golden {
    /// All kinds.
    const ALL: [Self; 13] = [
        Self::Allocate,
        Self::Bootstrap,
        Self::Borrowing,
        Self::Classify,
        Self::Deal,
        Self::Estimate,
        Self::EstimateConfig,
        Self::FlowHash,
        Self::Limits,
        Self::QueueSet,
        Self::QueueSetDefects,
        Self::RequestInfo,
        Self::RetryAfter,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Allocate => "allocate",
            Self::Bootstrap => "bootstrap",
            Self::Borrowing => "borrowing",
            Self::Classify => "classify",
            Self::Deal => "deal",
            Self::Estimate => "estimate",
            Self::EstimateConfig => "estimate_config",
            Self::FlowHash => "flow_hash",
            Self::Limits => "limits",
            Self::QueueSet => "queueset",
            Self::QueueSetDefects => "queueset_defects",
            Self::RequestInfo => "request_info",
            Self::RetryAfter => "retry_after",
        }
    }

    fn form(self) -> Form {
        match self {
            Self::Bootstrap | Self::EstimateConfig => Form::Document,
            Self::QueueSet | Self::QueueSetDefects => Form::Traces,
            _ => Form::Rows,
        }
    }

    /// What a file is of, by its path below the folder of engine decisions.
    fn of(path: &Path) -> Option<Self> {
        let file = path.file_name()?.to_str()?;
        let extension = Path::new(file.strip_suffix(".gz").unwrap_or(file)).extension()?;
        let mut folders = path.parent()?.iter().rev().filter_map(|name| name.to_str());
        let of_form = |name: &str, form| Self::longest(name, |kind| kind.form() == form);
        if extension == "jsonl" {
            of_form(file, Form::Rows).or_else(|| folders.find_map(|name| of_form(name, Form::Rows)))
        } else if extension == "json" {
            folders.find_map(|name| of_form(name, Form::Traces)).or_else(|| of_form(file, Form::Document))
        } else {
            None
        }
    }

    /// The kind that a name starts with; the longest, where one kind starts as another.
    fn longest(name: &str, is_wanted: impl Fn(Self) -> bool) -> Option<Self> {
        let fits = |kind: &Self| is_wanted(*kind) && name.starts_with(kind.name());
        Self::ALL.into_iter().filter(fits).max_by_key(|kind| kind.name().len())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::{Compression, write::GzEncoder};
    use serde_json::Value;

    use super::*;

    /// A folder that goes when the test ends.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("evenkeel-recorded-{}-{name}", std::process::id()));
            fs::create_dir_all(&folder).unwrap();
            Self(folder)
        }

        fn write(&self, file: &str, content: &[u8]) -> PathBuf {
            let path = self.0.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, content).unwrap();
            path
        }

        fn files(&self, kind: Golden) -> Vec<String> {
            let below = |file: PathBuf| file.strip_prefix(&self.0).unwrap().to_str().unwrap().to_owned();
            files_below(&self.0, kind).into_iter().map(below).collect()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    #[test]
    fn files_are_found_by_kind_whatever_else_they_are_called() {
        let folder = Folder::new("kinds");
        for file in [
            "README.md",
            "estimate.jsonl",
            "estimate_config.json",
            "estimate-of-lists.jsonl.gz",
            "more/deep/estimate_2.jsonl",
            "estimate/lists.jsonl",
            "estimates/lists.jsonl",
            "estimate.json",
            "estimate.txt",
            "limits.jsonl.gz",
            "deal.jsonl.bak",
            "bootstrap.json",
            "bootstrap/objects.json",
            "queueset/01.json",
            "queueset/estimate_config.json",
            "queueset-long/02.json.gz",
            "queueset/deeper/03.json",
            "queueset/notes.md",
            "queueset_defects/04.json",
            "queueset_defects-new/05.json",
        ] {
            folder.write(file, b"");
        }
        for (kind, files) in [
            (
                Golden::Estimate,
                &[
                    "estimate/lists.jsonl",
                    "estimate-of-lists.jsonl.gz",
                    "estimate.jsonl",
                    "estimates/lists.jsonl",
                    "more/deep/estimate_2.jsonl",
                ][..],
            ),
            (Golden::EstimateConfig, &["estimate_config.json"]),
            (Golden::Limits, &["limits.jsonl.gz"]),
            (Golden::Deal, &[]),
            (Golden::Bootstrap, &["bootstrap.json"]),
            (
                Golden::QueueSet,
                &[
                    "queueset/01.json",
                    "queueset/deeper/03.json",
                    "queueset/estimate_config.json",
                    "queueset-long/02.json.gz",
                ],
            ),
            (Golden::QueueSetDefects, &["queueset_defects/04.json", "queueset_defects-new/05.json"]),
        ] {
            assert_eq!(folder.files(kind), files, "{kind:?}");
        }
    }

    #[test]
    fn the_longest_kind_wins() {
        let longest = |name| Golden::longest(name, |_| true);
        assert_eq!(longest("estimate_config-2"), Some(Golden::EstimateConfig));
        assert_eq!(longest("estimate_conf"), Some(Golden::Estimate));
        assert_eq!(longest("queueset_defects"), Some(Golden::QueueSetDefects));
        assert_eq!(longest("queueset_defect"), Some(Golden::QueueSet));
        assert_eq!(longest("deals"), Some(Golden::Deal));
        assert_eq!(longest("a-deal"), None);
    }

    #[test]
    fn packed_files_are_unpacked() {
        let folder = Folder::new("packed");
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(b"[1]\n\n[2]\n").unwrap();
        let file = folder.write("deal.jsonl.gz", &packed.finish().unwrap());
        assert_eq!(rows::<Vec<u8>>(&file), [[1], [2]]);
        let file = folder.write("bootstrap.json", b"{\n}\n");
        assert_eq!(document::<Value>(&file), serde_json::json!({}));
    }

    #[test]
    #[should_panic(expected = "deal.jsonl, line 2: ")]
    fn a_row_of_another_form_is_a_fault() {
        let folder = Folder::new("fault");
        rows::<u8>(&folder.write("deal.jsonl", b"1\n{}\n"));
    }

    #[test]
    #[should_panic(expected = "has no rows")]
    fn a_file_without_rows_is_a_fault() {
        let folder = Folder::new("empty");
        rows::<u8>(&folder.write("deal.jsonl", b"\n"));
    }
}
