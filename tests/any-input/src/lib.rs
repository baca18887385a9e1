//! What must hold for any input.
//!
//! Each property is a function of bytes that panics when it does not hold. The fuzz targets (folder `fuzz/` of the
//! repository) call them with whatever libFuzzer finds; the ordinary tests call them with the files of `corpus/` and
//! with a bounded number of mutations of those.

mod certificate;
mod decode;
mod engine;
mod ext_proc;
mod flight;
mod http1;
mod jwt;
mod llm;
mod mutate;
mod patch;
mod path;
mod protobuf;
mod proxy_header;
mod request;

pub use certificate::certificate;
pub use decode::decode;
pub use engine::engine;
pub use ext_proc::ext_proc;
pub use flight::flight;
pub use http1::{
    Reading, http1_chunks, http1_differential, http1_request, http1_response, requests_by_gateway, requests_by_hyper,
};
pub use jwt::{jwt, key_set};
pub use llm::llm;
pub use mutate::{Mutator, try_mutations};
pub use patch::patch;
pub use path::path;
pub use protobuf::protobuf;
pub use proxy_header::proxy_header;
pub use request::request;

use std::fs;
use std::path::{Path, PathBuf};

/// The inputs that a property starts from, in the order of their file names.
///
/// # Panics
/// If there are none, or if one cannot be read.
pub fn corpus(property: &str) -> Vec<Vec<u8>> {
    named_corpus(property).into_iter().map(|(_, input)| input).collect()
}

/// The same, with the names of the files.
///
/// # Panics
/// If there are none, or if one cannot be read.
pub fn named_corpus(property: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(property);
    let mut files: Vec<_> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap_or_else(|error| panic!("{}: {error}", folder.display())).path())
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{} holds no input", folder.display());
    let read = |file: PathBuf| {
        let input = fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        (file.file_name().unwrap_or_default().to_string_lossy().into_owned(), input)
    };
    files.into_iter().map(read).collect()
}
