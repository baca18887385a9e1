//! No file may depend on where one machine keeps its things, or on what lies beside the repository.

use crate::offence::{Offence, numbered};

// In two halves, so that this file does not offend against itself.
const FOLDERS: [&str; 3] = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];

/// A folder beside the repository that a clone does not have.
const BESIDE: &str = concat!("../sha", "red");

pub(crate) fn check(path: &str, text: &str) -> Vec<Offence> {
    let found = numbered(text).flat_map(|(line, text)| {
        let folders = FOLDERS.iter().filter(move |folder| has_absolute(text, folder));
        folders.map(move |folder| (line, folder))
    });
    let found = found.map(|(line, folder)| Offence::new(path, line, format!("`{folder}` is a path of one machine")));
    let beside = numbered(text).filter(|(_, text)| text.contains(BESIDE));
    let beside = beside.map(|(line, _)| Offence::new(path, line, format!("`{BESIDE}` is not in the repository")));
    found.chain(beside).collect()
}

/// Whether the folder is named from the file system's root, and not inside a longer path such as `src/home/`.
fn has_absolute(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "_-.~".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offence::assert_offences;

    #[test]
    fn machine_paths() {
        for folder in FOLDERS {
            for text in [format!("cd {folder}x"), format!("{folder}x"), format!("\"file://{folder}x\"")] {
                let expected = format!("a.sh:2: `{folder}` is a path of one machine");
                assert_offences(&check("a.sh", &format!("fine\n{text}\n")), &[&expected]);
            }
        }
    }

    #[test]
    fn paths_inside_the_repository() {
        for folder in FOLDERS {
            assert_offences(&check("a.rs", &format!("src{folder}a.rs ..{folder}b")), &[]);
        }
    }

    #[test]
    fn what_lies_beside_the_repository() {
        let expected = format!("a.md:2: `{BESIDE}` is not in the repository");
        assert_offences(&check("a.md", &format!("fine\nsee {BESIDE}/golden\n")), &[&expected]);
    }
}
