//! Reads dumps of the flight recorder, for `replay` and `simulate`.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::Result;
use evenkeel::flight::{Flight, MAGIC};
use evenkeel_engine::controller::Objects;

use crate::exit::WrongUsage;

/// A dump is not longer.
const BYTES_MAX: u64 = 1 << 30;

/// Whether a file is a dump of a flight recorder, or has the name of one: then its faults are those of a dump.
pub(crate) fn is_dump(path: &Path) -> bool {
    if path.extension().is_some_and(|extension| extension == "ekf") {
        return true;
    }
    // A named pipe would wait for its writer, and cannot be read twice.
    if !path.is_file() {
        return false;
    }
    let mut first = [0; MAGIC.len()];
    File::open(path).and_then(|mut file| file.read_exact(&mut first)).is_ok() && first == MAGIC
}

pub(crate) fn read(path: &Path) -> Result<Flight> {
    let unreadable = |error: &dyn std::fmt::Display| WrongUsage(format!("cannot read {}: {error}", path.display()));
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| unreadable(&error))?;
    file.take(BYTES_MAX).read_to_end(&mut bytes).map_err(|error| unreadable(&error))?;
    Ok(Flight::from_bytes(&bytes).map_err(|damage| unreadable(&damage))?)
}

/// The objects in effect when a dump was made.
pub(crate) fn objects(path: &Path, flight: &Flight) -> Result<Objects> {
    let unreadable = |problems| WrongUsage(format!("{}: its objects cannot be read: {problems}", path.display()));
    Ok(evenkeel_replay::objects_of(flight).map_err(unreadable)?)
}
