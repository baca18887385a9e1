//! How much was compared with the recordings: said by each test, and added up by `cargo xtask test`.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

/// Names the file that `cargo xtask test` adds up.
const FILE: &str = "EVENKEEL_COMPARED";

/// Says how many things of a kind were compared, such as 520 `flow hashes`.
///
/// # Panics
/// If nothing was compared: the test would pass without testing.
pub fn compared(what: &str, count: usize) {
    assert!(count > 0, "no {what} were compared");
    eprintln!("compared {count} {what}");
    if let Some(file) = std::env::var_os(FILE) {
        note(Path::new(&file), what, count);
    }
}

/// Adds a line. Many processes do so at once, each line with one write.
fn note(file: &Path, what: &str, count: usize) {
    let written = OpenOptions::new()
        .create(true)
        .append(true)
        .open(file)
        .and_then(|mut file| file.write_all(format!("{count} {what}\n").as_bytes()));
    written.unwrap_or_else(|error| panic!("{FILE} names {}: {error}", file.display()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_comparison_is_a_line() {
        let file = std::env::temp_dir().join(format!("evenkeel-compared-{}", std::process::id()));
        note(&file, "flow hashes", 520);
        note(&file, "hands", 7);
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        assert_eq!(text, "520 flow hashes\n7 hands\n");
    }

    #[test]
    #[should_panic(expected = "no hands were compared")]
    fn comparing_nothing_is_a_fault() {
        compared("hands", 0);
    }
}
