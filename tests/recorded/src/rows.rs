//! Files of recorded decisions: one JSON value a line, packed or not.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use flate2::read::GzDecoder;
use serde::de::DeserializeOwned;

/// All rows of a file; one whose name ends in `.gz` is unpacked.
///
/// # Panics
/// If the file cannot be read or has no rows, or a row is not of that type: a test would pass without testing.
pub fn rows<T: DeserializeOwned>(file: &Path) -> Vec<T> {
    let opened = File::open(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let is_packed = file.extension().is_some_and(|extension| extension == "gz");
    let text: Box<dyn Read> = if is_packed { Box::new(GzDecoder::new(opened)) } else { Box::new(opened) };
    let rows: Vec<T> = BufReader::new(text)
        .lines()
        .enumerate()
        .map(|(index, line)| {
            let fault = |error: &dyn std::fmt::Display| format!("{}, line {}: {error}", file.display(), index + 1);
            let line = line.unwrap_or_else(|error| panic!("{}", fault(&error)));
            serde_json::from_str(&line).unwrap_or_else(|error| panic!("{}", fault(&error)))
        })
        .collect();
    assert!(!rows.is_empty(), "{} has no rows", file.display());
    rows
}
