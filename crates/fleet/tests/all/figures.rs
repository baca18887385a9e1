//! Figures beside their bars: printed, and kept for the table of `cargo xtask fleet`.

#![allow(clippy::print_stdout, reason = "people run these tests to read the figures")]

use std::io::Write;

/// Prints a figure beside its bar. If `FLEET_FIGURES` names a file, the row is added to it: measure, figure, bar and verdict, with tabs
/// between them.
pub(crate) fn figure(measure: &str, figure: &str, bar: &str, is_met: bool) {
    add_row(measure, figure, bar, if is_met { "met" } else { "missed" });
}

/// The same for a figure that is only told.
pub(crate) fn told(measure: &str, figure: &str) {
    add_row(measure, figure, "", "");
}

fn add_row(measure: &str, figure: &str, bar: &str, verdict: &str) {
    match bar {
        "" => println!("{measure}: {figure}"),
        bar => println!("{measure}: {figure}, bar {bar}: {verdict}"),
    }
    if let Some(path) = std::env::var_os("FLEET_FIGURES") {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
        // In one write, so that tests do not get into each other's rows.
        let row = format!("{measure}\t{figure}\t{bar}\t{verdict}\n");
        file.and_then(|mut file| file.write_all(row.as_bytes())).expect("the file of FLEET_FIGURES can be written");
    }
}
