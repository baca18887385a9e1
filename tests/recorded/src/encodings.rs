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

/// All recorded encodings.
///
/// # Panics
/// If there are none, or a file cannot be read or has no rows.
pub fn encodings() -> Vec<Encoding> {
    #[derive(Deserialize)]
    struct Row {
        what: String,
        #[serde(default, rename = "type")]
        event: String,
        json: Value,
        protobuf: String,
    }

    let folder = golden().join("protobuf");
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
    files.iter().flat_map(|file| rows::<Row>(file)).map(encoding).collect()
}
