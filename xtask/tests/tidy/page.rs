//! Every page of `docs` is in the table of contents of the site, once.

use std::collections::BTreeSet;

use crate::markdown::{LinkTarget, links, resolve};
use crate::offence::{Offence, has_extension};

pub(crate) const SUMMARY: &str = "docs/SUMMARY.md";

pub(crate) fn check<'a>(summary: &str, paths: impl Iterator<Item = &'a str>) -> Vec<Offence> {
    let mut listed = BTreeSet::new();
    let mut offences = Vec::new();
    for link in links(summary) {
        if let LinkTarget::Inside { path, .. } = resolve(SUMMARY, link.target)
            && !listed.insert(path)
        {
            offences.push(Offence::new(SUMMARY, link.line, format!("`{}` is listed twice", link.target)));
        }
    }
    let pages = paths.filter(|path| path.starts_with("docs/") && has_extension(path, "md") && *path != SUMMARY);
    let missing = pages.filter(|path| !listed.contains(*path));
    offences.extend(missing.map(|path| Offence::new(path, 1, format!("the page is not in {SUMMARY}"))));
    offences
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offence::assert_offences;

    #[test]
    fn pages_that_nobody_finds() {
        let paths = ["README.md", SUMMARY, "docs/a.md", "docs/b/c.md", "docs/images/d.svg"];
        let complete = "[Evenkeel](../README.md)\n- [A](a.md)\n  - [C](b/c.md)\n";
        assert_offences(&check(complete, paths.into_iter()), &[]);
        assert_offences(
            &check("- [A](a.md)\n- [Again](a.md)\n", paths.into_iter()),
            &["docs/SUMMARY.md:2: `a.md` is listed twice", "docs/b/c.md:1: the page is not in docs/SUMMARY.md"],
        );
    }
}
