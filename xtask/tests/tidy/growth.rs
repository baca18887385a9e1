//! Public types of published crates: each says whether it may get further fields or variants.
//!
//! A struct that users can take apart, and an enum, cannot get a further field or variant without breaking programs, unless
//! they are `#[non_exhaustive]`. One that is not says in its documentation why.

use crate::offence::{Offence, numbered};

/// The beginning of the reason in the documentation of an exhaustive type.
const REASON: &str = "Not `#[non_exhaustive]`";

pub(crate) fn check(path: &str, text: &str) -> Vec<Offence> {
    if !path.starts_with("crates/") || path.starts_with("crates/cli/") || !path.contains("/src/") {
        return Vec::new();
    }
    let lines: Vec<&str> = text.split_terminator('\n').collect();
    let mut offences = Vec::new();
    for (number, line) in numbered(text) {
        let Some(name) = open_type(line, &lines[number..]) else { continue };
        // Attributes may go over several lines, so that all up to the end of what comes before count.
        let above = lines[..number - 1].iter().rev().take_while(|line| !line.is_empty() && **line != "}");
        if !above.clone().any(|line| line.contains("non_exhaustive")) {
            let fault =
                format!("{name} may need further parts: mark it `#[non_exhaustive]`, or document \"{REASON}: …\"");
            offences.push(Offence::new(path, number, fault));
        }
    }
    offences
}

/// The name of the type that is declared in a line, if programs can list all of its parts. The types of macros are indented,
/// and not looked at.
fn open_type<'a>(line: &'a str, rest: &[&str]) -> Option<&'a str> {
    let (kind, name) = line.strip_prefix("pub ")?.split_once(' ')?;
    let body = || rest.iter().take_while(|line| **line != "}").map(|line| line.trim_start());
    let is_field = |line: &str| !line.starts_with(['/', '#']) && line.contains(": ");
    let is_public = |line: &str| line.starts_with("pub ");
    let is_open = match kind {
        "enum" => line.ends_with('{') && body().any(|line| line.starts_with(|first: char| first.is_ascii_uppercase())),
        "struct" if line.ends_with(';') => line.contains("(pub "),
        "struct" => body().any(is_public) && body().filter(|line| is_field(line)).all(is_public),
        _ => false,
    };
    is_open.then(|| name.split(|other: char| !other.is_alphanumeric()).next().unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offence::assert_offences;

    #[test]
    fn types_that_cannot_grow() {
        let fault = |place: &str, name: &str| {
            format!("{place}: {name} may need further parts: mark it `#[non_exhaustive]`, or document \"{REASON}: …\"")
        };
        let faults = |text: &str, expected: &[String]| {
            let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
            assert_offences(&check("crates/svg/src/a.rs", text), &expected);
        };
        let open = "/// A.\n#[derive(Debug)]\npub struct A<'a> {\n    /// B.\n    pub b: &'a str,\n}\n";
        faults(open, &[fault("crates/svg/src/a.rs:3", "A")]);
        faults("pub enum A {\n    /// B.\n    B { c: u8 },\n}\n", &[fault("crates/svg/src/a.rs:1", "A")]);
        faults("pub struct A(pub u8);\n", &[fault("crates/svg/src/a.rs:1", "A")]);

        faults(&open.replace("#[derive", "#[non_exhaustive]\n#[derive"), &[]);
        faults(&open.replace("/// A.", "/// A.\n///\n/// Not `#[non_exhaustive]`: it is one text."), &[]);
        faults("pub struct A {\n    pub b: u8,\n    c: u8,\n}\n", &[]);
        faults("pub struct A {\n    b: u8,\n}\n\npub struct B(u8);\npub enum C {}\n", &[]);
        assert_offences(&check("crates/cli/src/a.rs", open), &[]);
        assert_offences(&check("crates/svg/tests/all/main.rs", open), &[]);
    }
}
