//! Paths as numbers: for each path that some rule mentions, the path itself and everything below it.
//!
//! Which entries cover a path depends only on the longest mentioned path that it is or lies below (FM-13). So two numbers for
//! each mentioned path are enough: one for the path itself, one for what is below it and below no longer one. In the order of
//! the tree, what an entry covers is one interval.

use std::collections::BTreeSet;

use evenkeel_api::annotations::PathMatch;

use super::Set;
use super::names::unused;

/// The entry that covers every path.
const EVERY: &str = "*";

/// The mentioned paths. Each is its segments; the first one is the root, which has none.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    /// In the order of the tree: a path, and then all that are below it. Path number `i` has the numbers `2 i` (itself) and
    /// `2 i + 1` (below it).
    mentioned: Vec<Vec<String>>,
    /// For each path, the first one behind it that is not below it.
    ends: Vec<u32>,
    /// A segment that nobody mentions.
    segment: String,
}

/// Collects the paths that rules mention.
#[derive(Debug, Default)]
pub(crate) struct PathsBuilder(BTreeSet<Vec<String>>);

/// An entry without a `*` at its end and a `/` before that, and whether it covers the path that remains, too.
fn stem(entry: &str) -> (&str, bool) {
    let prefix = entry.strip_suffix('*').unwrap_or(entry);
    match prefix.strip_suffix('/') {
        Some(stem) => (stem, false),
        // `/a*` is the path `/a*` and what is below `/a`: validation refuses it, so that it does not get here.
        None => (prefix, prefix == entry),
    }
}

fn segments(stem: &str) -> Vec<String> {
    let rest = stem.strip_prefix('/').unwrap_or(stem);
    if rest.is_empty() { Vec::new() } else { rest.split('/').map(str::to_owned).collect() }
}

/// Whether an entry stands for itself alone.
fn is_exact(entry: &str, matching: PathMatch) -> bool {
    matching == PathMatch::Exact && !entry.ends_with('*')
}

/// All segments of a path, also an empty one behind the last slash.
fn exact_segments(path: &str) -> Vec<String> {
    path.strip_prefix('/').unwrap_or(path).split('/').map(str::to_owned).collect()
}

// === impl PathsBuilder ===

impl PathsBuilder {
    pub(crate) fn add(&mut self, entry: &str, matching: PathMatch) {
        if is_exact(entry, matching) {
            self.0.insert(exact_segments(entry));
        } else if entry != EVERY {
            self.0.insert(segments(stem(entry).0));
        }
    }

    pub(crate) fn build(mut self) -> Paths {
        self.0.insert(Vec::new());
        let mentioned: BTreeSet<&String> = self.0.iter().flatten().collect();
        let segment = unused("some-path", |text| mentioned.contains(&text.to_owned()));
        // Lists of segments sort in the order of the tree.
        let paths: Vec<Vec<String>> = self.0.into_iter().collect();
        let mut ends = vec![0; paths.len()];
        let mut open: Vec<usize> = Vec::new();
        for index in 0..=paths.len() {
            let path = paths.get(index);
            while let Some(&above) = open.last() {
                let is_below = path.zip(paths.get(above)).is_some_and(|(path, above)| path.starts_with(above));
                if is_below {
                    break;
                }
                open.pop();
                if let Some(end) = ends.get_mut(above) {
                    *end = u32::try_from(index).unwrap_or(u32::MAX / 2);
                }
            }
            open.push(index);
        }
        Paths { mentioned: paths, ends, segment }
    }
}

// === impl Paths ===

impl Paths {
    pub(crate) fn all(&self) -> Set {
        Set::interval(0, u32::try_from(self.mentioned.len() * 2).unwrap_or(u32::MAX))
    }

    /// The paths that entries cover.
    pub(crate) fn covered(&self, entries: &[String], matching: PathMatch) -> Set {
        if entries.iter().any(|entry| entry == EVERY) {
            return self.all();
        }
        let covered = |entry: &String| {
            if is_exact(entry, matching) {
                self.number_of(entry).map(|number| (number, number + 1))
            } else {
                self.covered_by(entry)
            }
        };
        Set::union_of(entries.iter().filter_map(covered))
    }

    /// The number of one path.
    fn number_of(&self, path: &str) -> Option<u32> {
        let index = self.mentioned.binary_search(&exact_segments(path)).ok()?;
        u32::try_from(index * 2).ok()
    }

    fn covered_by(&self, entry: &str) -> Option<(u32, u32)> {
        let (stem, covers_itself) = stem(entry);
        let index = self.mentioned.binary_search(&segments(stem)).ok()?;
        let number = u32::try_from(index * 2).ok()?;
        let end = self.ends.get(index)? * 2;
        // The root itself is no path; its number is one more for what is below it, so that `/` covers everything.
        let from = if covers_itself || index == 0 { number } else { number + 1 };
        Some((from, end))
    }

    /// A path of that number.
    pub(crate) fn example(&self, number: u32) -> String {
        let index = usize::try_from(number / 2).unwrap_or_default();
        if number.is_multiple_of(2) && self.mentioned.get(index).is_some_and(|path| *path == exact_segments("/")) {
            return "/".to_owned();
        }
        let path = self.mentioned.get(index).map(|segments| segments.join("/")).unwrap_or_default();
        match (number.is_multiple_of(2), path.is_empty()) {
            (true, false) => format!("/{path}"),
            (_, true) => format!("/{}", self.segment),
            (false, false) => format!("/{path}/{}", self.segment),
        }
    }

    /// Describes a set of paths for people.
    pub(crate) fn describe(&self, set: &Set) -> String {
        const LISTED_MAX: usize = 6;
        if *set == self.all() {
            return "any".to_owned();
        }
        let mut listed = Vec::new();
        for number in set.iter() {
            // The paths below a path are only described once, with the path itself.
            let example = self.example(number);
            let below = example.strip_suffix(&self.segment).map(|folder| format!("{folder}*"));
            let text = below.unwrap_or(example);
            if !listed.contains(&text) {
                listed.push(text);
            }
            if listed.len() > LISTED_MAX {
                listed.truncate(LISTED_MAX);
                listed.push("…".to_owned());
                break;
            }
        }
        listed.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FM-13 as it is written.
    fn covers(entry: &str, path: &str) -> bool {
        let mut prefix = entry.strip_suffix('*').unwrap_or(entry).to_owned();
        if !prefix.ends_with('/') {
            prefix.push('/');
        }
        entry == "*" || entry == path || path.starts_with(&prefix)
    }

    #[test]
    fn fm_13_numbers_stand_for_the_paths_that_entries_cover() {
        let entries = ["*", "/", "/*", "/a", "/a/", "/a/*", "/a/b", "/a/b/c", "/ab", "/a-b", "/a/b/*", "/z/y/x"];
        let mut builder = PathsBuilder::default();
        for entry in entries {
            builder.add(entry, PathMatch::Below);
        }
        let paths = builder.build();
        assert_eq!(paths.all().iter().count(), 2 * 7);
        for number in paths.all().iter() {
            let example = paths.example(number);
            for entry in entries {
                let is_covered = paths.covered(&[entry.to_owned()], PathMatch::Below).contains(number);
                assert_eq!(is_covered, covers(entry, &example), "{entry} and {example}");
            }
        }
    }

    #[test]
    fn sets_of_paths_are_described() {
        let mut builder = PathsBuilder::default();
        for entry in ["/a/*", "/a/b"] {
            builder.add(entry, PathMatch::Below);
        }
        let paths = builder.build();
        let covered = |entry: &str| paths.covered(&[entry.to_owned()], PathMatch::Below);
        assert_eq!(paths.describe(&paths.all()), "any");
        assert_eq!(paths.describe(&covered("/a/b")), "/a/b, /a/b/*");
        assert_eq!(paths.describe(&paths.all().difference(&covered("/a/*"))), "/*, /a");
    }

    #[test]
    fn sf_2_exact_paths_stand_for_themselves() {
        let entries = ["/", "/a", "/a/", "/a/*", "/a/b"];
        let mut builder = PathsBuilder::default();
        for entry in entries {
            builder.add(entry, PathMatch::Exact);
        }
        let paths = builder.build();
        for number in paths.all().iter() {
            let example = paths.example(number);
            for entry in entries {
                let is_covered = paths.covered(&[entry.to_owned()], PathMatch::Exact).contains(number);
                let expected = entry.strip_suffix('*').map_or(entry == example, |prefix| example.starts_with(prefix));
                assert_eq!(is_covered, expected, "{entry} and {example}");
            }
        }
    }
}
