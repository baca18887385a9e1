//! Recorded rows: files of one JSON object per line, compressed or not.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use serde::de::DeserializeOwned;

/// All rows of a file, which is compressed if its name ends in `.gz`.
///
/// # Panics
/// If the file cannot be read, has no rows, or has one of another form.
pub fn rows<T: DeserializeOwned>(file: &Path) -> Vec<T> {
    let name = file.display();
    let opened = File::open(file).unwrap_or_else(|error| panic!("{name}: {error}"));
    let text: Box<dyn Read> = match file.extension() {
        Some(extension) if extension == "gz" => Box::new(MultiGzDecoder::new(opened)),
        _ => Box::new(opened),
    };
    let rows: Vec<T> = BufReader::new(text)
        .lines()
        .enumerate()
        .map(|(index, line)| {
            let line = line.unwrap_or_else(|error| panic!("{name}:{}: {error}", index + 1));
            serde_json::from_str(&line).unwrap_or_else(|error| panic!("{name}:{}: {error}", index + 1))
        })
        .collect();
    assert!(!rows.is_empty(), "{name} has no rows");
    rows
}
