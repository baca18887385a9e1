//! `cargo xtask site`: builds the documentation site from the Markdown files of the repository, and checks its links.
//!
//! `docs/SUMMARY.md` lists the pages. Each keeps its place, so relative links work on the site as they do in the repository:
//! `docs/gateway.md` becomes `docs/gateway.html`, a `README.md` the `index.html` of its folder. Links to files that are
//! not pages lead to the repository.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use crate::markdown::{LinkTarget, lines_outside_fences, links, resolve};
use crate::run::{has_extension, root, target_folder};
use crate::setup;

const SUMMARY: &str = "docs/SUMMARY.md";
/// The address of the site.
const ADDRESS: &str = "https://evenkeel.dev/";
/// Alerts link to the page that explains them.
const ALERTS: &str = "deploy/prometheus/evenkeel.rules.yaml";
/// Settings and style of mdBook.
const SETTINGS: [&str; 2] = ["book.toml", "site.css"];
const FILES: &str = "https://github.com/evenkeel/evenkeel/blob/main/";
const FOLDERS: &str = "https://github.com/evenkeel/evenkeel/tree/main/";
/// The address of the documentation of our crates; the crate's name and the item follow.
const ITEMS: &str = "https://docs.rs/evenkeel/latest/evenkeel/index.html?search=";

/// The titles of pages, by path.
type Pages = BTreeMap<String, String>;

/// A page as mdBook reads it, and the pictures that it shows.
struct Staged {
    text: String,
    pictures: Vec<String>,
}

pub(crate) fn site() -> Result<()> {
    let root = root()?;
    let stage = target_folder()?.join("site");
    match fs::remove_dir_all(&stage) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("cannot remove {}", stage.display()));
        }
        _ => {}
    }
    for name in SETTINGS {
        copy(&root.join("site").join(name), &stage.join(name))?;
    }
    let pages = stage_pages(&root, &stage.join("src"))?;
    setup::setup_for_site()?;
    setup::mdbook().args(["build", &stage.to_string_lossy()]).run()?;
    let built = stage.join("html");
    let alerts = fs::read_to_string(root.join(ALERTS)).with_context(|| format!("cannot read {ALERTS}"))?;
    let broken = broken_links(&built, (ALERTS, &alerts))?;
    ensure!(broken.is_empty(), "{} broken links on the site:\n{}", broken.len(), broken.join("\n"));
    println!("site: {pages} pages, {}", built.join("index.html").display());
    Ok(())
}

/// Copies all pages and pictures for mdBook, and says how many pages there are.
fn stage_pages(root: &Path, source: &Path) -> Result<usize> {
    let read = |path: &str| fs::read_to_string(root.join(path)).with_context(|| format!("cannot read {path}"));
    let summary = read(SUMMARY)?;
    let pages = pages(&summary)?;
    let repository = |path: &str| if root.join(path).is_dir() { FOLDERS } else { FILES };
    write(&source.join("SUMMARY.md"), &staged(SUMMARY, "SUMMARY.md", &summary, &pages, repository)?.text)?;
    for (page, title) in &pages {
        let Staged { text, pictures } = staged(page, page, &read(page)?, &pages, repository)?;
        write(&source.join(site_path(page)), titled(&text, title))?;
        for picture in pictures {
            copy(&root.join(&picture), &source.join(&picture))?;
        }
    }
    Ok(pages.len())
}

/// The files of the repository that the summary lists, and their titles.
fn pages(summary: &str) -> Result<Pages> {
    let mut pages = BTreeMap::new();
    for link in links(summary) {
        let title = summary[..link.range.start].rsplit('[').next().unwrap_or_default();
        let title = title.trim_end_matches("](").to_owned();
        match resolve(SUMMARY, link.target) {
            LinkTarget::Inside { path, anchor: None } if has_extension(&path, "md") => pages.insert(path, title),
            _ => bail!("{SUMMARY}:{}: `{}` is not a page", link.line, link.target),
        };
    }
    Ok(pages)
}

/// The README of a crate that rustdoc shows has no title of its own; on the site it gets one, and its headings are below it.
fn titled(text: &str, title: &str) -> String {
    if text.trim_start().starts_with("# ") {
        return text.to_owned();
    }
    let (mut titled, mut copied) = (format!("# {title}\n\n"), 0);
    for (_, start, line) in lines_outside_fences(text) {
        if line.starts_with('#') {
            titled.push_str(&text[copied..start]);
            titled.push('#');
            copied = start;
        }
    }
    titled + &text[copied..]
}

/// Rewrites the links of `page`, which stands at `place` on the site. `repository` is the address for a path that is no page.
fn staged(
    page: &str,
    place: &str,
    text: &str,
    pages: &Pages,
    repository: impl Fn(&str) -> &'static str,
) -> Result<Staged> {
    let (mut rewritten, mut pictures, mut copied) = (String::new(), Vec::new(), 0);
    for link in links(text) {
        let target = match resolve(page, link.target) {
            LinkTarget::Elsewhere => continue,
            LinkTarget::RustItem => format!("{ITEMS}{}", link.target),
            LinkTarget::Outside => bail!("{page}:{}: `{}` is outside of the repository", link.line, link.target),
            LinkTarget::Inside { path, anchor } => {
                let anchor = anchor.map(|anchor| format!("#{anchor}")).unwrap_or_default();
                if path == page {
                    anchor
                } else if pages.contains_key(&path) {
                    format!("{}{anchor}", relative(place, &site_path(&path)))
                } else if has_extension(&path, "svg") || has_extension(&path, "png") {
                    let target = relative(place, &path);
                    pictures.push(path);
                    target
                } else {
                    format!("{}{path}{anchor}", repository(&path))
                }
            }
        };
        rewritten.push_str(&text[copied..link.range.start]);
        rewritten.push_str(&target);
        copied = link.range.end;
    }
    rewritten.push_str(&text[copied..]);
    Ok(Staged { text: rewritten, pictures })
}

/// The page's file on the site.
fn site_path(page: &str) -> String {
    page.strip_suffix("README.md").map_or_else(|| page.to_owned(), |folder| format!("{folder}index.md"))
}

/// The way from one file to another.
fn relative(from: &str, to: &str) -> String {
    let folders: Vec<&str> = from.split('/').collect();
    let folders = &folders[..folders.len() - 1];
    let parts: Vec<&str> = to.split('/').collect();
    let shared = folders.iter().zip(&parts[..parts.len() - 1]).take_while(|(a, b)| a == b).count();
    "../".repeat(folders.len() - shared) + &parts[shared..].join("/")
}

/// Links of the built pages, and of a file that has addresses of the site, that lead to no file or to no heading.
fn broken_links(built: &Path, (other, other_text): (&str, &str)) -> Result<Vec<String>> {
    let mut texts = BTreeMap::new();
    for file in files(built)? {
        let path = file.strip_prefix(built)?.to_string_lossy().into_owned();
        let is_page = has_extension(&path, "html") && !matches!(path.as_str(), "404.html" | "toc.html");
        texts.insert(path, if is_page { fs::read_to_string(&file)? } else { String::new() });
    }
    let ids: BTreeMap<&str, BTreeSet<&str>> =
        texts.iter().map(|(path, text)| (path.as_str(), attributes(text, " id=\"").collect())).collect();
    let fault = |page: &str, target: &str| match resolve(page, target) {
        LinkTarget::Inside { path, anchor } => match (ids.get(path.as_str()), anchor) {
            (None, _) => Some("there is no such file"),
            (Some(ids), Some(anchor)) if !anchor.is_empty() && !ids.contains(anchor) => Some("no such heading"),
            _ => None,
        },
        _ => Some("it is outside of the site"),
    };
    let mut broken = Vec::new();
    for (page, text) in &texts {
        for target in attributes(text, " href=\"").chain(attributes(text, " src=\"")) {
            if ["https:", "http:", "data:", "javascript:"].iter().any(|scheme| target.starts_with(scheme)) {
                continue;
            }
            broken.extend(fault(page, target).map(|fault| format!("{page}: `{target}`: {fault}")));
        }
    }
    for target in other_text.split(ADDRESS).skip(1).filter_map(|rest| rest.split_whitespace().next()) {
        broken.extend(fault("index.html", target).map(|fault| format!("{other}: `{ADDRESS}{target}`: {fault}")));
    }
    Ok(broken)
}

/// The values of an attribute in a page.
fn attributes<'a>(text: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    text.split(name).skip(1).filter_map(|rest| rest.split('"').next())
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else {
            found.push(path);
        }
    }
    Ok(found)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let bytes = fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
    write(to, bytes)
}

fn write(path: &Path, content: impl AsRef<[u8]>) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, content).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_those_of_the_site() {
        let pages = ["README.md", "docs/a.md", "docs/checks/README.md"];
        let pages = pages.into_iter().map(|path| (path.to_owned(), String::new())).collect();
        let repository = |path: &str| if path == "crates/api" { FOLDERS } else { FILES };
        let text = "[1](a.md#x) [2](checks/README.md) [3](../README.md) [4](../crates/api) [5](../LICENSE-MIT)\n\
                    ![6](images/b.svg) [7](https://c.example/d) [8](b.md#y)\n";
        let staged = staged("docs/b.md", "docs/b.md", text, &pages, repository).unwrap();
        assert_eq!(
            staged.text,
            "[1](a.md#x) [2](checks/index.md) [3](../index.md) \
             [4](https://github.com/evenkeel/evenkeel/tree/main/crates/api) \
             [5](https://github.com/evenkeel/evenkeel/blob/main/LICENSE-MIT)\n\
             ![6](images/b.svg) [7](https://c.example/d) [8](#y)\n"
        );
        assert_eq!(staged.pictures, ["docs/images/b.svg"]);
    }

    #[test]
    fn the_summary_moves_to_the_root() {
        let summary = "[Evenkeel](../README.md)\n\n- [Checks](checks/README.md)\n  - [A](checks/a.md)\n";
        let pages = pages(summary).unwrap();
        assert_eq!(pages.keys().collect::<Vec<_>>(), ["README.md", "docs/checks/README.md", "docs/checks/a.md"]);
        assert_eq!(pages.values().collect::<Vec<_>>(), ["Evenkeel", "Checks", "A"]);
        let staged = staged(SUMMARY, "SUMMARY.md", summary, &pages, |_| FILES).unwrap();
        assert_eq!(
            staged.text,
            "[Evenkeel](index.md)\n\n- [Checks](docs/checks/index.md)\n  - [A](docs/checks/a.md)\n"
        );
    }

    #[test]
    fn pages_without_a_title_get_one() {
        assert_eq!(titled("# Own\n\n## Part\n", "Other"), "# Own\n\n## Part\n");
        let text = "\nText.\n\n# Part\n```\n# code\n```\n## Less\n";
        assert_eq!(titled(text, "Title"), "# Title\n\n\nText.\n\n## Part\n```\n# code\n```\n### Less\n");
    }

    #[test]
    fn broken_links_are_found() {
        let folder = std::env::temp_dir().join(format!("evenkeel-site-{}", std::process::id()));
        write(&folder.join("index.html"), "<a href=\"docs/a.html#b\"><a href=\"docs/a.html#c\"><img src=\"d.svg\">")
            .unwrap();
        write(&folder.join("docs/a.html"), "<h2 id=\"b\"><a href=\"../index.html\"><a href=\"https://e.example\">")
            .unwrap();
        let other = "a: https://evenkeel.dev/docs/a.html#b\nb: https://evenkeel.dev/docs/a.html#e\nc: https://evenkeel.dev/b.html";
        let broken = broken_links(&folder, ("rules", other));
        fs::remove_dir_all(&folder).unwrap();
        let expected = [
            "index.html: `docs/a.html#c`: no such heading",
            "index.html: `d.svg`: there is no such file",
            "rules: `https://evenkeel.dev/docs/a.html#e`: no such heading",
            "rules: `https://evenkeel.dev/b.html`: there is no such file",
        ];
        assert_eq!(broken.unwrap(), expected);
    }
}
