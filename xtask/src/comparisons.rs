//! How much the tests compared with the recordings of a real Kubernetes: each says it, and here it is added up.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::{fs, io};

use anyhow::{Context, Result};

use crate::run::{CommandLine, target_folder};

/// Names the file to which each test adds a line, `520 flow hashes`.
const VARIABLE: &str = "EVENKEEL_COMPARED";

/// A run's comparisons.
pub(crate) struct Comparisons {
    file: PathBuf,
}

// === impl Comparisons ===

impl Comparisons {
    /// Forgets those of the run before.
    pub(crate) fn start() -> Result<Self> {
        let file = target_folder()?.join("compared.txt");
        match fs::remove_file(&file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove {}", file.display()))
            }
            _ => Ok(Self { file }),
        }
    }

    pub(crate) fn noted_by(&self, command: CommandLine) -> CommandLine {
        command.env(VARIABLE, self.file.to_string_lossy())
    }

    /// A table, or nothing if nothing was compared.
    pub(crate) fn summary(&self) -> Result<Option<String>> {
        match fs::read_to_string(&self.file) {
            Ok(lines) => Ok(Some(table(&lines))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", self.file.display())),
        }
    }
}

fn table(lines: &str) -> String {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for (count, what) in lines.lines().filter_map(|line| line.split_once(' ')) {
        *sums.entry(what).or_default() += count.parse().unwrap_or(0);
    }
    let mut text = "=== compared with a real Kubernetes ===\n".to_owned();
    for (what, count) in sums {
        let _ = writeln!(text, "{count:>7} {what}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_one_kind_are_added_up() {
        let expected = ["=== compared with a real Kubernetes ===", "    233 conversations", "    520 flow hashes"];
        let text = table("200 conversations\n520 flow hashes\n33 conversations\n");
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn tests_are_told_where_to_note() {
        let comparisons = Comparisons { file: PathBuf::from("noted.txt") };
        assert_eq!(comparisons.noted_by(CommandLine::new("cargo")).to_string(), "EVENKEEL_COMPARED=noted.txt cargo");
        assert_eq!(comparisons.summary().unwrap(), None);
    }
}
