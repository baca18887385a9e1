//! What must hold for any input.
//!
//! Each property is a function of bytes that panics when it does not hold. The fuzz targets (folder `fuzz/` of the
//! repository) call them with whatever libFuzzer finds; the ordinary tests call them with the files of `corpus/` and
//! with a bounded number of mutations of those.

mod decode;
mod engine;
mod mutate;
mod patch;
mod protobuf;
mod request;

pub use decode::decode;
pub use engine::engine;
pub use mutate::{Mutator, try_mutations};
pub use patch::patch;
pub use protobuf::protobuf;
pub use request::request;

use std::fs;
use std::path::{Path, PathBuf};

/// The inputs that a property starts from, in the order of their file names.
///
/// # Panics
/// If there are none, or if one cannot be read.
pub fn corpus(property: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(property);
    let mut files: Vec<_> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap_or_else(|error| panic!("{}: {error}", folder.display())).path())
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{} holds no input", folder.display());
    let read = |file: PathBuf| fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    files.into_iter().map(read).collect()
}
