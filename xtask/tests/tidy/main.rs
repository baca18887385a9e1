//! Reads the source tree and fails on what no other tool catches: long files, empty words, machine paths,
//! rules that do not exist and the like.
//!
//! Each check is a pure function of a file's path and text, and has a test with a fault in it.

mod decision;
mod dependency;
mod growth;
mod host;
mod length;
mod licence;
mod link;
mod machine;
mod manifest;
mod map;
#[path = "../../src/markdown.rs"]
mod markdown;
mod name;
mod offence;
mod opening;
mod package;
mod page;
mod rule;
mod tree;
mod whitespace;
mod word;
mod workflow;

use std::collections::BTreeSet;
use std::process::Command;

use link::Destinations;
use offence::Offence;
use rule::Rules;
use tree::Tree;

type Check = fn(path: &str, text: &str) -> Vec<Offence>;

const CHECKS: [Check; 9] = [
    growth::check,
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
    let destinations = Destinations::new(tree.paths(), tree.files());
    offences.extend(tree.files().flat_map(|(path, text)| destinations.check(path, text)));
    offences.extend(page::check(tree.text(page::SUMMARY).unwrap_or_default(), tree.paths()));
    offences.extend(decision::check(tree.text(decision::TABLE).unwrap_or_default(), tree.files()));
    offences.extend(map::check(tree.text(map::MAP).unwrap_or_default(), tree.paths()));
    let commands = commands(tree.text("xtask/src/main.rs").unwrap());
    assert!(commands.contains(&"test"), "the commands of xtask were not found: {commands:?}");
    offences.extend(tree.files().flat_map(|(path, text)| workflow::check(path, text, &commands)));
    offences.extend(workflow::check_fuzzing(tree.text(workflow::FUZZING).unwrap_or_default(), tree.paths()));
    fail_on(offences);
}

#[test]
fn packages_are_in_order() {
    let tree = Tree::read();
    let metadata = Command::new(env!("CARGO")).args(["metadata", "--format-version", "1", "--all-features"]).output();
    let metadata = serde_json::from_slice(&metadata.unwrap().stdout).expect("JSON of `cargo metadata`");
    let mut offences = manifest::check(&metadata, &tree.paths().collect::<BTreeSet<_>>());
    offences.extend(licence::check(tree.text(licence::LIST).unwrap_or_default(), &metadata));
    fail_on(offences);
}

/// The commands of `cargo xtask`, from the text that it shows.
fn commands(source: &str) -> Vec<&str> {
    let text = source.split_once("\nCommands:\n").map_or("", |(_, rest)| rest);
    let lines = text.lines().take_while(|line| !line.is_empty());
    lines.filter_map(|line| line.split_whitespace().next()).collect()
}

#[track_caller]
fn fail_on(mut offences: Vec<Offence>) {
    offences.sort();
    let lines: Vec<String> = offences.iter().map(ToString::to_string).collect();
    assert!(lines.is_empty(), "{} offences:\n{}", lines.len(), lines.join("\n"));
}

#[test]
fn file_lengths_are_shown() {
    let tree = Tree::read();
    println!("{}", length::summary(tree.files()));
}
