//! Reading recorded data of one JSON value a line.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use flate2::read::GzDecoder;
use serde::de::DeserializeOwned;

/// Reads all rows of a `.jsonl` file, or of one that ends in `.gz`.
///
/// # Panics
/// If the file cannot be read, a row is not what the test expects, or there is none: a test would pass without testing.
pub fn rows<T: DeserializeOwned>(file: &Path) -> Vec<T> {
    let opened = File::open(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let zipped = file.extension().is_some_and(|extension| extension == "gz");
    let text: Box<dyn Read> = if zipped { Box::new(GzDecoder::new(opened)) } else { Box::new(opened) };
    let rows: Vec<T> = BufReader::new(text)
        .lines()
        .enumerate()
        .map(|(index, line)| {
            let line = line.unwrap_or_else(|error| panic!("{}:{}: {error}", file.display(), index + 1));
            serde_json::from_str(&line).unwrap_or_else(|error| panic!("{}:{}: {error}", file.display(), index + 1))
        })
        .collect();
    assert!(!rows.is_empty(), "no rows in {}", file.display());
    rows
}
