//! Every link in a Markdown file leads to a file of the repository that exists, and to a heading that it has.

use std::collections::{BTreeMap, BTreeSet};

use crate::markdown::{LinkTarget, lines_outside_fences, links, resolve};
use crate::offence::{Offence, has_extension};

/// The targets that links can have.
pub(crate) struct Destinations {
    /// All files, and the folders that they are in.
    paths: BTreeSet<String>,
    /// The anchors of each page.
    anchors: BTreeMap<String, BTreeSet<String>>,
}

// === impl Destinations ===

impl Destinations {
    /// All files by path, and the texts of those that are texts.
    pub(crate) fn new<'a>(
        paths: impl Iterator<Item = &'a str>,
        texts: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        let ends = |path: &str| path.match_indices('/').map(|(end, _)| end).chain([path.len()]).collect::<Vec<_>>();
        let paths = paths.flat_map(|path| ends(path).into_iter().map(|end| path[..end].to_owned())).collect();
        let pages = texts.filter(|(path, _)| has_extension(path, "md"));
        Self { paths, anchors: pages.map(|(path, text)| (path.to_owned(), anchors(text))).collect() }
    }

    pub(crate) fn check(&self, page: &str, text: &str) -> Vec<Offence> {
        if !has_extension(page, "md") {
            return Vec::new();
        }
        let links = links(text).into_iter();
        links
            .filter_map(|link| {
                let fault = match resolve(page, link.target) {
                    LinkTarget::Elsewhere | LinkTarget::RustItem => return None,
                    LinkTarget::Outside => "is outside of the repository",
                    LinkTarget::Inside { path, .. } if !self.paths.contains(&path) => "does not exist",
                    LinkTarget::Inside { path, anchor } => {
                        let known = |anchor| self.anchors.get(&path).is_some_and(|anchors| anchors.contains(anchor));
                        // In a source file, an anchor is a line.
                        if !has_extension(&path, "md") || anchor.is_none_or(known) {
                            return None;
                        }
                        "has no such heading"
                    }
                };
                Some(Offence::new(page, link.line, format!("link to `{}`, which {fault}", link.target)))
            })
            .collect()
    }
}

/// The anchors that GitHub gives to headings, and those that the page sets itself.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut anchors = BTreeSet::new();
    for (_, _, line) in lines_outside_fences(text) {
        if let Some(id) = line.split_once("<a id=\"").and_then(|(_, rest)| rest.split('"').next()) {
            anchors.insert(id.to_owned());
        }
        let title = line.trim_start_matches('#');
        if title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let anchor = anchor(title.trim());
        let times = seen.entry(anchor.clone()).or_default();
        anchors.insert(if *times == 0 { anchor } else { format!("{anchor}-{times}") });
        *times += 1;
    }
    anchors
}

/// GitHub's name for a heading.
fn anchor(title: &str) -> String {
    let title: String = match title.split_once("](") {
        // `[text](target)`: the text counts.
        Some((before, after)) => [before, after.split_once(')').map_or("", |(_, rest)| rest)].concat(),
        None => title.to_owned(),
    };
    let kept = title.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offence::assert_offences;

    #[test]
    fn anchors_as_on_github() {
        let text = "# How large should `a_b` be?\n## Twice\n## Twice\n```\n# no\n```\n#no\n### [A link](x.md), 2\n<a id=\"own\"></a>\n";
        let expected = ["a-link-2", "how-large-should-a_b-be", "own", "twice", "twice-1"];
        assert_eq!(anchors(text).iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn broken_links() {
        let files = [("README.md", "# One\n"), ("docs/a.md", "# Two\n"), ("crates/x/src/lib.rs", "")];
        let destinations = Destinations::new(files.iter().map(|(path, _)| *path), files.into_iter());
        let good =
            "[1](../README.md#one) [2](#two) [3](../crates/x) [4](../crates/x/src/lib.rs#L1) [5](https://a.example)\n";
        assert_offences(&destinations.check("docs/a.md", good), &[]);
        assert_offences(
            &destinations.check("docs/a.md", "fine\n[1](b.md) [2](../README.md#two)\n[3](../../x)\n"),
            &[
                "docs/a.md:2: link to `b.md`, which does not exist",
                "docs/a.md:2: link to `../README.md#two`, which has no such heading",
                "docs/a.md:3: link to `../../x`, which is outside of the repository",
            ],
        );
    }
}
