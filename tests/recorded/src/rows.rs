//! Files of recorded decisions: one JSON value a line or one in all, packed or not.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use serde::de::DeserializeOwned;

/// All rows of a file; one whose name ends in `.gz` is unpacked. Lines with nothing in them are no rows.
///
/// # Panics
/// If the file cannot be read or has no rows, or a row is not of that type: a test would pass without testing.
pub fn rows<T: DeserializeOwned>(file: &Path) -> Vec<T> {
    let mut rows = Vec::new();
    for (index, line) in BufReader::new(open(file)).lines().enumerate() {
        let fault = |error: &dyn std::fmt::Display| format!("{}, line {}: {error}", file.display(), index + 1);
        let line = line.unwrap_or_else(|error| panic!("{}", fault(&error)));
        if !line.trim().is_empty() {
            rows.push(serde_json::from_str(&line).unwrap_or_else(|error| panic!("{}", fault(&error))));
        }
    }
    assert!(!rows.is_empty(), "{} has no rows", file.display());
    rows
}

/// The only value of a file; one whose name ends in `.gz` is unpacked.
///
/// # Panics
/// If the file cannot be read, or the value is not of that type.
pub fn document<T: DeserializeOwned>(file: &Path) -> T {
    let fault = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let mut text = Vec::new();
    open(file).read_to_end(&mut text).unwrap_or_else(|error| panic!("{}", fault(&error)));
    serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}", fault(&error)))
}

fn open(file: &Path) -> Box<dyn Read> {
    let opened = File::open(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let is_packed = file.extension().is_some_and(|extension| extension == "gz");
    if is_packed { Box::new(MultiGzDecoder::new(opened)) } else { Box::new(opened) }
}
