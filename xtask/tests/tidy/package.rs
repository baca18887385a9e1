//! No source of a published crate includes a file from outside of its package: `cargo install` would not find it.

use crate::offence::{Offence, has_extension, numbered};

const MACROS: [&str; 2] = ["include_str!(", "include_bytes!("];

pub(crate) fn check(path: &str, text: &str) -> Vec<Offence> {
    let parts: Vec<&str> = path.split('/').collect();
    // `crates/name/src/…/file.rs`
    if !has_extension(path, "rs") || parts.first() != Some(&"crates") || parts.get(2) != Some(&"src") {
        return Vec::new();
    }
    let folders_below_package = parts.len() - 3;
    let leaves = |line: &str| MACROS.iter().any(|name| line.contains(name)) && ups(line) > folders_below_package;
    let why = "includes a file from outside of its package, where `cargo install` does not find it";
    numbered(text).filter(|(_, line)| leaves(line)).map(|(line, _)| Offence::new(path, line, why.to_owned())).collect()
}

/// How many folders a path goes up.
fn ups(line: &str) -> usize {
    line.matches("../").count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offence::assert_offences;

    #[test]
    fn paths_that_leave_the_package() {
        let text = "a\n    include_str!(concat!(\"../../../docs/\", $name)),\n";
        let why = "includes a file from outside of its package, where `cargo install` does not find it";
        assert_offences(&check("crates/check/src/rule.rs", text), &[&format!("crates/check/src/rule.rs:2: {why}")]);
        assert_offences(&check("crates/check/src/a/b/rule.rs", text), &[]);
        assert_offences(&check("crates/check/tests/all.rs", text), &[]);
        assert_offences(&check("crates/check/src/rule.rs", "include_str!(\"../pages/a.md\")"), &[]);
    }
}
