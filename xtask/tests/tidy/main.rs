//! Reads the source tree and fails on what no other tool catches: long files, empty words, machine paths,
//! rules that do not exist and the like.
//!
//! Each check is a pure function of a file's path and text, and has a test with a fault in it.

mod dependency;
mod host;
mod length;
mod machine;
mod name;
mod offence;
mod opening;
mod package;
mod rule;
mod tree;
mod whitespace;
mod word;

use offence::Offence;
use rule::Rules;
use tree::Tree;

type Check = fn(path: &str, text: &str) -> Vec<Offence>;

const CHECKS: [Check; 8] = [
    host::check,
    length::check,
    machine::check,
    name::check,
    opening::check,
    package::check,
    whitespace::check,
    word::check,
];

#[test]
fn the_tree_is_tidy() {
    let tree = Tree::read();
    // A listing that went wrong must not pass for a tidy tree.
    assert!(tree.text("xtask/tests/tidy/main.rs").is_some(), "this file is not among those found");

    let mut offences: Vec<Offence> =
        tree.files().flat_map(|(path, text)| CHECKS.iter().flat_map(move |check| check(path, text))).collect();
    let manifest = tree.text("Cargo.toml").unwrap();
    let register = tree.text(dependency::REGISTER).unwrap_or_default();
    offences.extend(dependency::check(manifest, register));
    let specification = tree.files().filter(|(path, _)| path.starts_with(rule::SPECIFICATION));
    let rules = Rules::defined_in(specification.map(|(_, text)| text));
    assert!(!rules.is_empty(), "no rules were found in {}", rule::SPECIFICATION);
    offences.extend(tree.files().flat_map(|(path, text)| rules.check(path, text)));
    offences.sort();

    let lines: Vec<String> = offences.iter().map(ToString::to_string).collect();
    assert!(lines.is_empty(), "{} offences:\n{}", lines.len(), lines.join("\n"));
}

#[test]
fn file_lengths_are_shown() {
    let tree = Tree::read();
    println!("{}", length::summary(tree.files()));
}
