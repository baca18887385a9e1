//! The links of a Markdown file, as far as our files use Markdown. The tidy test uses this file too.

use std::ops::Range;

/// A link or an image.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Link<'a> {
    pub(crate) target: &'a str,
    /// The position of the target in the text.
    pub(crate) range: Range<usize>,
    pub(crate) line: usize,
}

/// The destination of a link.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LinkTarget<'a> {
    /// Another server.
    Elsewhere,
    /// A file or folder of the repository, with `/` between its parts, and perhaps a heading.
    Inside { path: String, anchor: Option<&'a str> },
    /// An item of the crate that the page documents, which rustdoc checks.
    RustItem,
    /// Above the root of the repository.
    Outside,
}

/// All links outside of code, in order: `[text](target)`, `![text](target)` and `[name]: target`.
pub(crate) fn links(text: &str) -> Vec<Link<'_>> {
    let mut found = Vec::new();
    for (number, start, line) in lines_outside_fences(text) {
        let mut at = 0;
        while let Some(offset) = line[at..].find(['`', ']']) {
            let position = at + offset;
            let rest = &line[position..];
            if rest.starts_with('`') {
                let ticks = rest.len() - rest.trim_start_matches('`').len();
                // A code span that goes on in the next line has no links in our files.
                let end = rest[ticks..].find(&rest[..ticks]).map_or(rest.len(), |end| end + 2 * ticks);
                at = position + end;
                continue;
            }
            at = position + 1;
            let is_definition = line.starts_with('[') && rest.starts_with("]: ") && !line[..position].contains(']');
            let skipped = match rest.as_bytes().get(1) {
                Some(b'(') => 2,
                Some(b':') if is_definition => 3,
                _ => continue,
            };
            let target = &rest[skipped..];
            let end = target.find([')', ' ', '"']).unwrap_or(target.len());
            let begin = start + position + skipped;
            found.push(Link { target: &target[..end], range: begin..begin + end, line: number });
        }
    }
    found
}

/// The destination of a target on a page of the repository.
pub(crate) fn resolve<'a>(page: &str, target: &'a str) -> LinkTarget<'a> {
    if target.contains("://") || target.starts_with("mailto:") {
        return LinkTarget::Elsewhere;
    }
    let (path, anchor) = match target.split_once('#') {
        Some((path, anchor)) => (path, Some(anchor)),
        None => (target, None),
    };
    if path.is_empty() {
        return LinkTarget::Inside { path: page.to_owned(), anchor };
    }
    let names_item = !path.contains(['/', '.']) && path.chars().all(|c| c.is_alphanumeric() || "_:()!@".contains(c));
    if page.starts_with("crates/") && names_item {
        return LinkTarget::RustItem;
    }
    let folder = page.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            ".." if parts.pop().is_none() => return LinkTarget::Outside,
            "" | "." | ".." => {}
            name => parts.push(name),
        }
    }
    LinkTarget::Inside { path: parts.join("/"), anchor }
}

/// Number, offset and text of each line that is not in a fenced block.
pub(crate) fn lines_outside_fences(text: &str) -> impl Iterator<Item = (usize, usize, &str)> {
    let mut start = 0;
    let mut fence: Option<&str> = None;
    (1..).zip(text.split('\n')).filter_map(move |(number, line)| {
        let offset = start;
        start += line.len() + 1;
        let code = line.trim_start();
        match fence {
            Some(open) if code.starts_with(open) => fence = None,
            Some(_) => {}
            None => {
                fence = ["```", "~~~"].into_iter().find(|mark| code.starts_with(mark));
                if fence.is_none() {
                    return Some((number, offset, line));
                }
            }
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(text: &str) -> Vec<&str> {
        links(text).iter().map(|link| link.target).collect()
    }

    #[test]
    fn links_of_all_kinds() {
        let text = "[a](b.md) and ![c\nd](e.svg \"title\")\n\n[f]: https://g.example/h\n| [`i`](j#k) |\n";
        assert_eq!(targets(text), ["b.md", "e.svg", "https://g.example/h", "j#k"]);
        let found = links(text);
        assert!(found.iter().all(|link| &text[link.range.clone()] == link.target));
        assert_eq!(found.iter().map(|link| link.line).collect::<Vec<_>>(), [1, 2, 4, 5]);
    }

    #[test]
    fn code_has_no_links() {
        assert_eq!(targets("`[a](b)` ``[c](`d)`` [e](f)\n```text\n[g](h)\n```\n    ```\n    [i](j)\n    ```\n"), ["f"]);
        assert_eq!(targets("see a[0]: b, `x\n"), [""; 0]);
    }

    #[test]
    fn places() {
        let inside = |path: &str, anchor| LinkTarget::Inside { path: path.to_owned(), anchor };
        assert_eq!(resolve("docs/a.md", "b.md#c"), inside("docs/b.md", Some("c")));
        assert_eq!(resolve("docs/a.md", "../deploy/"), inside("deploy", None));
        assert_eq!(resolve("docs/a.md", "#c"), inside("docs/a.md", Some("c")));
        assert_eq!(resolve("a.md", "../b.md"), LinkTarget::Outside);
        assert_eq!(resolve("a.md", "https://b.example/"), LinkTarget::Elsewhere);
        assert_eq!(resolve("crates/a/README.md", "Builder::layer"), LinkTarget::RustItem);
        assert_eq!(resolve("a.md", "LICENSE"), inside("LICENSE", None));
    }
}
