//! Objects as Kubernetes encodes them in protobuf, each beside the same object in JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::Value;

use crate::{golden, rows};

/// One recorded encoding.
#[derive(Debug)]
pub struct Encoding {
    /// What was encoded: `object`, `status`, `deleteOptions` or `watchEvent`.
    pub what: String,
    /// The type of a watch event; empty for anything else.
    pub event: String,
    /// The object in JSON; of a watch event, the object in it.
    pub json: Value,
    /// The bytes.
    pub protobuf: Vec<u8>,
}

/// All recorded encodings, or `None` on a machine without them.
///
/// # Panics
/// If a file cannot be read or has no rows, or if there are no files in the folder.
pub fn encodings() -> Option<Vec<Encoding>> {
    #[derive(Deserialize)]
    struct Row {
        what: String,
        #[serde(default, rename = "type")]
        event: String,
        json: Value,
        protobuf: String,
    }

    let folder = golden()?.join("protobuf");
    if !folder.is_dir() {
        eprintln!("skipped: no recorded encodings in {}", folder.display());
        return None;
    }
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|file| file.to_string_lossy().contains(".jsonl"));
    files.sort();
    assert!(!files.is_empty(), "{} has no encodings", folder.display());
    let encoding = |row: Row| Encoding {
        protobuf: STANDARD.decode(&row.protobuf).unwrap_or_else(|error| panic!("{}: {error}", row.protobuf)),
        what: row.what,
        event: row.event,
        json: row.json,
    };
    Some(files.iter().flat_map(|file| rows::<Row>(file)).map(encoding).collect())
}
