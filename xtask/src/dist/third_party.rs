//! `THIRD-PARTY-LICENSES.txt`: the notices of everything that is linked into the binary. Many licences require them in every copy.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::architecture::Architecture;
use super::release;
use super::sbom;
use crate::run::root;

/// The name of the file in every artefact.
pub(crate) const NAME: &str = "THIRD-PARTY-LICENSES.txt";

/// How the names of files with licences and notices begin, in lower case.
const BEGINNINGS: [&str; 6] = ["license", "licence", "copying", "copyright", "notice", "unlicense"];
/// The endings of files with a similar name that are code or data.
const OTHER_FILES: [&str; 6] = [".rs", ".c", ".h", ".toml", ".json", ".hbs"];
const RULER: &str = "================================================================================";

/// The licence of the C library.
const LGPL: &str = include_str!("LGPL-2.1.txt");

/// A text of a licence, and what it is for. The key is the text without its line breaks and indentation, which often differ.
type Texts = BTreeMap<String, LicenceText>;

struct LicenceText {
    text: String,
    /// `serde 1.0.0 (LICENSE-MIT)`
    owners: Vec<String>,
}

/// The file for a binary of this architecture.
pub(crate) fn document(architecture: Architecture) -> Result<String> {
    let platform = architecture.triple();
    let linked = sbom::crates_linked(platform)?;
    let metadata = release::cargo_metadata(&[platform])?;
    let packages = metadata["packages"].as_array().context("`cargo metadata` names no packages")?;
    // Our own crates have no source. Their licences are beside this file.
    let is_foreign = |package: &&Value| !package["source"].is_null() && linked.contains(&sbom::key(package));
    let packages: Vec<&Value> = packages.iter().filter(is_foreign).collect();
    let (mut list, mut texts) = (String::new(), Texts::new());
    for package in packages {
        let (key, licence) = (sbom::key(package), text(package, "license"));
        writeln!(list, "{key}  {licence}  {}", text(package, "repository"))?;
        let folder = Path::new(text(package, "manifest_path")).parent().context("a manifest in no folder")?;
        add(&mut texts, &key, notices(folder, package)?);
    }
    let mut file = introduction(&architecture.build_command());
    write!(file, "{RULER}\nCrates\n{RULER}\n\n{list}\n")?;
    let mut texts: Vec<LicenceText> = texts.into_values().collect();
    texts.sort_by(|one, other| one.owners.cmp(&other.owners));
    for LicenceText { text, owners } in texts {
        write!(file, "{RULER}\n{}\n{RULER}\n\n{text}\n\n", owners.join("\n"))?;
    }
    write!(file, "{RULER}\nThe GNU C Library\n{RULER}\n\n{LGPL}")?;
    Ok(file)
}

fn introduction(build: &str) -> String {
    format!(
        "Evenkeel is licensed under the MIT licence or the Apache License 2.0, at your choice; the files LICENSE-MIT and\n\
         LICENSE-APACHE have the texts. The binary also contains the software below, under licences of its own.\n\n\
         Rust's standard library: Copyright (c) The Rust Project Contributors, MIT or Apache License 2.0.\n\n\
         The GNU C Library (glibc): Copyright (c) Free Software Foundation, Inc. and others, GNU Lesser General Public\n\
         License, version 2.1 or later; its text is at the end. It is linked statically. Its sources are at\n\
         https://www.gnu.org/software/libc/ and those of the version in the binary at Debian and Ubuntu. To use another\n\
         version, install it and link the binary again: the sources of Evenkeel are part of every release\n\
         (evenkeel-VERSION-source.tar.gz), and this command builds the binary:\n\n    {build}\n\n\
         GCC's runtime library (libgcc): GNU General Public License, version 3, with the GCC Runtime Library Exception.\n\n\
         The container image also has the certificate authorities of Mozilla, as Debian's package ca-certificates has\n\
         them: Mozilla Public License 2.0.\n\n"
    )
}

/// The names and texts of a package's notices: its own files, or the standard text of its licence.
fn notices(folder: &Path, package: &Value) -> Result<Vec<(String, String)>> {
    let mut files = Vec::new();
    notice_files(folder, &mut files)?;
    files.sort();
    if files.is_empty() {
        return Ok(vec![("no file; the standard text".to_owned(), standard_text(package)?)]);
    }
    let read = |path: PathBuf| -> Result<(String, String)> {
        let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let name = path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().into_owned();
        Ok((name, String::from_utf8_lossy(&bytes).into_owned()))
    };
    files.into_iter().map(read).collect()
}

/// All files with licences and notices below a folder: what a crate contains of others has its own.
fn notice_files(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let entry = entry?;
        let (kind, name) = (entry.file_type()?, entry.file_name().to_string_lossy().to_lowercase());
        if kind.is_dir() {
            notice_files(&entry.path(), found)?;
        } else if kind.is_file()
            && BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
            && !OTHER_FILES.iter().any(|end| name.ends_with(end))
        {
            found.push(entry.path());
        }
    }
    Ok(())
}

/// For a package that has no file: the text of one of the licences that its users may choose from.
fn standard_text(package: &Value) -> Result<String> {
    let expression = text(package, "license").replace('/', " OR ");
    let has = |licence: &str| expression.split(" OR ").any(|one| one.trim() == licence);
    let authors: Vec<&str> = package["authors"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let authors =
        if authors.is_empty() { format!("the authors of {}", text(package, "name")) } else { authors.join(", ") };
    let own = |name: &str| fs::read_to_string(root()?.join(name)).with_context(|| format!("cannot read {name}"));
    if has("MIT") {
        // Ours, with their names in place of ours.
        let own = own("LICENSE-MIT")?;
        let (_, terms) = own.split_once("Permission is hereby").context("LICENSE-MIT has no terms")?;
        return Ok(format!("MIT License\n\nCopyright (c) {authors}\n\nPermission is hereby{terms}"));
    }
    if has("Apache-2.0") {
        return Ok(format!("Copyright {authors}\n\n{}", own("LICENSE-APACHE")?));
    }
    bail!("{} has no file with its licence {expression}; add the standard text to {}", sbom::key(package), file!())
}

fn add(texts: &mut Texts, owner: &str, notices: Vec<(String, String)>) {
    for (name, text) in notices {
        let key = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        let text = lines.join("\n").trim_matches('\n').to_owned();
        texts
            .entry(key)
            .or_insert_with(|| LicenceText { text, owners: Vec::new() })
            .owners
            .push(format!("{owner} ({name})"));
    }
}

fn text<'a>(package: &'a Value, field: &str) -> &'a str {
    package[field].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::dist::scratch::Scratch;

    #[test]
    fn everything_that_is_linked_has_its_notices() {
        let document = document(Architecture::Amd64).unwrap();
        let crates = document.split("Crates\n").nth(1).unwrap().split(RULER).nth(1).unwrap().trim();
        let names: Vec<&str> = crates.lines().map(|line| line.split(' ').next().unwrap()).collect();
        assert!(names.len() > 100, "{names:?}");
        for (name, is_linked) in [
            ("tokio", true),
            ("mimalloc", true),
            // Tests, procedural macros and build scripts are not in the binary, and we are not a third party.
            ("insta", false),
            ("serde_derive", false),
            ("cc", false),
            ("evenkeel-engine", false),
        ] {
            assert_eq!(names.contains(&name), is_linked, "{name}");
        }
        for line in crates.lines() {
            let (key, licence) = line.split_once("  ").unwrap();
            assert!(document.contains(&format!("\n{key} (")), "{key} has no notice");
            assert!(!licence.trim().is_empty(), "{key}");
        }
        for part in [
            // C and assembler, whose licences are in folders of their own or in files with longer names.
            "(c_src/mimalloc/",
            "(LICENSE-BoringSSL)",
            "Microsoft Corporation",
            // A crate without a file.
            "Copyright (c) gRPC authors\n\nPermission is hereby granted",
            "GNU LESSER GENERAL PUBLIC LICENSE",
            "target-feature=+crt-static' CARGO_PROFILE_RELEASE_STRIP=symbols cargo build --locked --release",
        ] {
            assert!(document.contains(part), "{part}");
        }
        assert!(document.len() < 1_000_000, "{} bytes", document.len());
    }

    #[test]
    fn files_below_the_folder_count_and_equal_texts_are_there_once() {
        let scratch = Scratch::new("notices");
        for (path, text) in [
            ("a/LICENSE-MIT", "One  text\r\nof many lines.\r\n"),
            ("a/src/license.rs", "fn code() {}"),
            ("a/vendor/c/COPYING", "Another text.\n"),
            ("b/LICENCE.md", "  One text\n  of many\n  lines.\n"),
        ] {
            fs::create_dir_all(scratch.path(path).parent().unwrap()).unwrap();
            fs::write(scratch.path(path), text).unwrap();
        }
        let mut texts = Texts::new();
        for name in ["a", "b"] {
            add(&mut texts, name, notices(&scratch.path(name), &Value::Null).unwrap());
        }
        let found: Vec<_> = texts.values().map(|one| (one.text.as_str(), one.owners.join(", "))).collect();
        assert_eq!(
            found,
            [
                ("Another text.", "a (vendor/c/COPYING)".to_owned()),
                ("One  text\nof many lines.", "a (LICENSE-MIT), b (LICENCE.md)".to_owned()),
            ]
        );
    }

    #[test]
    fn packages_without_a_file_get_the_standard_text() {
        let scratch = Scratch::new("no-notices");
        let package = |licence: &str, authors: &[&str]| json!({"name": "a", "version": "1.0.0", "license": licence, "authors": authors});
        let notice = |package: &Value| notices(scratch.folder(), package).map(|notices| notices[0].1.clone());
        assert!(
            notice(&package("Apache-2.0/MIT", &["A", "B"]))
                .unwrap()
                .starts_with("MIT License\n\nCopyright (c) A, B\n\nPerm")
        );
        let apache = notice(&package("Apache-2.0", &[])).unwrap();
        assert!(apache.starts_with("Copyright the authors of a\n") && apache.contains("Apache License"), "{apache}");
        for other in ["MPL-2.0", "MIT AND Zlib"] {
            let error = notice(&package(other, &[])).unwrap_err().to_string();
            assert!(error.starts_with(&format!("a 1.0.0 has no file with its licence {other}; add")), "{error}");
        }
    }
}
