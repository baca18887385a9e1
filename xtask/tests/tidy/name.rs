//! Files and modules are named after the thing they are, not after a habit.

use crate::offence::{Offence, has_extension, numbered};

const EMPTY_NAMES: [&str; 5] = ["utils", "util", "helpers", "common", "misc"];

pub(crate) fn check(path: &str, text: &str) -> Vec<Offence> {
    let parts = path.split('/').map(|part| part.split('.').next().unwrap_or(part));
    let in_path = parts.filter(|part| says_nothing(part)).map(|part| offence(path, 1, part));

    let lines = numbered(text).filter(|_| has_extension(path, "rs"));
    let in_text = lines
        .filter_map(|(line, code)| module_opened_in(code).map(|module| (line, module)))
        .filter(|(_, module)| says_nothing(module))
        .map(|(line, module)| offence(path, line, module));

    in_path.chain(in_text).collect()
}

fn offence(path: &str, line: usize, name: &str) -> Offence {
    Offence::new(path, line, format!("`{name}` does not say what it is; name it after the thing that is in it"))
}

fn says_nothing(name: &str) -> bool {
    EMPTY_NAMES.contains(&name)
}

/// The module that the line declares: `mod name;`, `pub(crate) mod name {`.
fn module_opened_in(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace();
    let mut word = words.next()?;
    if word.starts_with("pub") {
        word = words.find(|word| *word == "mod")?;
    }
    (word == "mod").then(|| words.next())?.map(|name| name.trim_end_matches([';', '{', '}']))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offence::assert_offences;

    const FAULT: &str = "does not say what it is; name it after the thing that is in it";

    #[test]
    fn empty_names_in_paths() {
        for name in EMPTY_NAMES {
            let expected = format!("src/{name}.rs:1: `{name}` {FAULT}");
            assert_offences(&check(&format!("src/{name}.rs"), ""), &[&expected]);
        }
        assert_offences(&check("tests/common/mod.rs", ""), &[&format!("tests/common/mod.rs:1: `common` {FAULT}")]);
    }

    #[test]
    fn empty_names_of_modules() {
        let text = "//! A file.\nmod util;\n    pub(crate) mod misc {\npub(in crate::a) mod helpers {}\n";
        let expected = [
            format!("a.rs:2: `util` {FAULT}"),
            format!("a.rs:3: `misc` {FAULT}"),
            format!("a.rs:4: `helpers` {FAULT}"),
        ];
        assert_offences(&check("a.rs", text), &expected.each_ref().map(String::as_str));
    }

    #[test]
    fn good_names() {
        assert_offences(&check("src/commons/utilisation.rs", "mod commonly;\nuse a::common;\n"), &[]);
        assert_offences(&check("a.md", "mod util;\n"), &[]);
    }
}
