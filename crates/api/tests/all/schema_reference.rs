//! The reference in the repository is the one that the schema table makes.

use std::fs;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference.md");

#[test]
fn the_committed_reference_is_up_to_date() {
    let generated = evenkeel_api::schema::markdown_reference();
    if std::env::var_os("EVENKEEL_UPDATE").is_some() {
        fs::write(FILE, &generated).unwrap();
    }
    // A checkout may have other line ends than the repository.
    let committed = fs::read_to_string(FILE).unwrap_or_default().replace("\r\n", "\n");
    let line = 1 + committed.lines().zip(generated.lines()).take_while(|(old, new)| old == new).count();
    assert!(
        committed == generated,
        "docs/reference.md is not what the schema table makes, from line {line} on; to update it, run\n\
         EVENKEEL_UPDATE=1 cargo test -p evenkeel-api --test all schema_reference"
    );
}

#[test]
fn every_link_has_its_heading() {
    let page = evenkeel_api::schema::markdown_reference();
    let anchors: Vec<_> = page
        .lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| line.trim_start_matches(['#', ' ']).to_lowercase().replace(' ', "-"))
        .collect();
    let links: Vec<_> = page.split("](#").skip(1).filter_map(|rest| rest.split(')').next()).collect();
    assert!(!links.is_empty());
    for link in links {
        assert_eq!(anchors.iter().filter(|anchor| *anchor == link).count(), 1, "headings for the link {link:?}");
    }
}
