//! Lengths of source files: none may be too long, and the tree's figures are shown beside our aims.

use crate::offence::{Offence, has_extension};

const LINES_MAX: usize = 800;

pub(crate) fn check(path: &str, text: &str) -> Vec<Offence> {
    let lines = text.lines().count();
    if has_extension(path, "rs") && lines > LINES_MAX {
        let fault = format!("{lines} lines; a source file has {LINES_MAX} at most");
        vec![Offence::new(path, lines, fault)]
    } else {
        Vec::new()
    }
}

/// Median and 90th percentile of the lengths of all Rust files.
pub(crate) fn summary<'a>(files: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let sources = files.filter(|(path, _)| has_extension(path, "rs"));
    let mut lengths: Vec<usize> = sources.map(|(_, text)| text.lines().count()).collect();
    lengths.sort_unstable();
    format!(
        "{} Rust files: median {} lines (aim: 150), 90th percentile {} (aim: 400), longest {} (limit: {LINES_MAX})",
        lengths.len(),
        percentile(&lengths, 50),
        percentile(&lengths, 90),
        percentile(&lengths, 100),
    )
}

/// The smallest length that at least so many per cent of the files do not exceed.
fn percentile(sorted: &[usize], percent: usize) -> usize {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offence::assert_offences;

    #[test]
    fn too_long() {
        let longest = "//! A file.\n".repeat(800);
        let too_long = "//! A file.\n".repeat(801);
        assert_offences(&check("a.rs", &longest), &[]);
        assert_offences(&check("a.md", &too_long), &[]);
        assert_offences(&check("a.rs", &too_long), &["a.rs:801: 801 lines; a source file has 800 at most"]);
    }

    #[test]
    fn figures() {
        let texts: Vec<String> = (1..=10).map(|lines| "x\n".repeat(lines)).collect();
        let files = texts.iter().map(|text| ("a.rs", text.as_str())).chain([("a.md", "x\n")]);
        assert_eq!(
            summary(files),
            "10 Rust files: median 5 lines (aim: 150), 90th percentile 9 (aim: 400), longest 10 (limit: 800)"
        );
        assert_eq!(percentile(&[], 50), 0);
    }
}
