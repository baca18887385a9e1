//! A package for Debian and Ubuntu, made from `[package.metadata.deb]` of the command line's crate.
//!
//! `cargo deb` reads the same metadata. We write the package ourselves, since the format is simple and needs no tool.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::architecture::Architecture;
use super::file_tree::FileTree;
use super::release::{DESCRIPTION, REPOSITORY, Release};
use super::third_party;

/// The sources of a package's files.
pub(crate) struct Sources {
    pub(crate) binary: Vec<u8>,
    /// The notices of what the binary contains.
    pub(crate) third_party: String,
    /// Paths in the metadata are relative to it.
    pub(crate) package_folder: PathBuf,
    pub(crate) target_folder: PathBuf,
}

/// The place of the binary in the metadata, whatever it was built for.
const BINARY: &str = "target/release/evenkeel";
const TARGET: &str = "../../target/";
/// The place of the notices, whatever they are for.
const THIRD_PARTY: &str = "../../target/dist/parts/THIRD-PARTY-LICENSES.txt";
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];
/// Other numbers are for packages of the same version that were made again.
pub(crate) const REVISION: u32 = 1;

pub(crate) fn file_name(architecture: Architecture, release: &Release) -> String {
    format!("evenkeel_{}-{REVISION}_{}.deb", release.version, architecture.name())
}

/// The package. `metadata` is `package.metadata.deb`.
pub(crate) fn package(
    metadata: &Value,
    sources: &Sources,
    architecture: Architecture,
    release: &Release,
) -> Result<Vec<u8>> {
    let data = sources.tree(&metadata["assets"])?;
    let control = control(metadata, &data, architecture, release)?;
    let mut files = FileTree::default();
    files.file("control", 0o644, control);
    let settings = metadata["conf-files"].as_array().map(Vec::as_slice).unwrap_or_default();
    let settings: Vec<&str> = settings.iter().filter_map(Value::as_str).collect();
    files.file("conffiles", 0o644, settings.join("\n") + "\n");
    let scripts = sources.package_folder.join(text(metadata, "maintainer-scripts")?);
    for script in SCRIPTS {
        files.file(script, 0o755, read(&scripts.join(script))?);
    }
    let (control, data) = (files.tar_gz(release.time)?, data.tar_gz(release.time)?);
    let members = [("debian-binary", &b"2.0\n"[..]), ("control.tar.gz", &control), ("data.tar.gz", &data)];
    Ok(ar(&members, release.time))
}

fn control(metadata: &Value, data: &FileTree, architecture: Architecture, release: &Release) -> Result<String> {
    let [name, maintainer, section, priority, recommends, description] =
        ["name", "maintainer", "section", "priority", "recommends", "extended-description"]
            .map(|field| text(metadata, field));
    // A line for each line, and a full stop on one that is empty.
    let line = |line: &str| if line.is_empty() { " .\n".to_owned() } else { format!(" {line}\n") };
    let description: String = description?.trim().lines().map(line).collect();
    Ok(format!(
        "Package: {}\nVersion: {}-{REVISION}\nArchitecture: {}\nMaintainer: {}\nInstalled-Size: {}\nSection: {}\n\
         Priority: {}\nRecommends: {}\nHomepage: {REPOSITORY}\nDescription: {DESCRIPTION}\n{description}",
        name?,
        // Without the tilde, dpkg would take a pre-release for newer than its release.
        release.version.replacen('-', "~", 1),
        architecture.name(),
        maintainer?,
        data.bytes().div_ceil(1024),
        section?,
        priority?,
        recommends?,
    ))
}

/// An archive of the Unix tool `ar`.
fn ar(members: &[(&str, &[u8])], time: u64) -> Vec<u8> {
    let mut archive = b"!<arch>\n".to_vec();
    for (name, content) in members {
        archive.extend(format!("{name:<16}{time:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, 100_644, content.len()).bytes());
        archive.extend(*content);
        if !content.len().is_multiple_of(2) {
            archive.push(b'\n');
        }
    }
    archive
}

fn text<'a>(metadata: &'a Value, field: &str) -> Result<&'a str> {
    metadata[field].as_str().with_context(|| format!("`package.metadata.deb` has no `{field}`"))
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

// === impl Sources ===

impl Sources {
    /// The files of the list `[[source, destination, mode], …]`, where they are installed.
    fn tree(&self, assets: &Value) -> Result<FileTree> {
        let mut tree = FileTree::default();
        for asset in assets.as_array().context("`package.metadata.deb` has no `assets`")? {
            let [Some(source), Some(to), Some(mode)] = [0, 1, 2].map(|index| asset[index].as_str()) else {
                bail!("{asset} is not a source, a destination and a mode");
            };
            let mode = u32::from_str_radix(mode, 8).with_context(|| format!("{mode} is not a mode of a file"))?;
            for (name, content) in self.read(source)? {
                let path = if to.ends_with('/') { format!("{to}{name}") } else { to.to_owned() };
                tree.file(&path, mode, content);
            }
        }
        Ok(tree)
    }

    /// Names and contents of a file, or of all files that `folder/*.end` stands for.
    fn read(&self, source: &str) -> Result<Vec<(String, Vec<u8>)>> {
        if source == BINARY {
            return Ok(vec![("evenkeel".to_owned(), self.binary.clone())]);
        }
        if source == THIRD_PARTY {
            return Ok(vec![(third_party::NAME.to_owned(), self.third_party.clone().into_bytes())]);
        }
        let path = match source.strip_prefix(TARGET) {
            Some(rest) => self.target_folder.join(rest),
            None => self.package_folder.join(source),
        };
        let (folder, name) = (path.parent().context("no folder")?, path.file_name().context("no name")?);
        let name = name.to_string_lossy();
        let Some(end) = name.strip_prefix('*') else { return Ok(vec![(name.clone().into_owned(), read(&path)?)]) };
        let mut found = Vec::new();
        for entry in fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.ends_with(end) {
                found.push((name, read(&entry.path())?));
            }
        }
        ensure!(!found.is_empty(), "there are no files {}", path.display());
        found.sort();
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::dist::release;
    use crate::dist::scratch::Scratch;
    use crate::run::root;

    fn metadata() -> Value {
        release::package(&release::cargo_metadata(&[]).unwrap(), release::PACKAGE).unwrap()["metadata"].clone()
    }

    /// Pages and completions without a build.
    fn sources(scratch: &Scratch) -> Sources {
        for file in [
            "man/evenkeel.1.gz",
            "man/evenkeel-serve.1.gz",
            "completions/evenkeel.bash",
            "completions/evenkeel.fish",
            "completions/_evenkeel",
        ] {
            let path = scratch.path("dist/parts").join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "made up").unwrap();
        }
        Sources {
            binary: b"#!/bin/sh\necho a binary\n".to_vec(),
            third_party: "notices".to_owned(),
            package_folder: root().unwrap().join("crates/cli"),
            target_folder: scratch.folder().to_owned(),
        }
    }

    #[test]
    fn dpkg_reads_the_package() {
        if Command::new("dpkg-deb").arg("--version").output().is_err() {
            return evenkeel_missing_tool::skip("dpkg-deb is not installed");
        }
        let scratch = Scratch::new("deb");
        let release = Release { version: "1.2.3".to_owned(), time: 1_000_000_000 };
        let package = package(&metadata()["deb"], &sources(&scratch), Architecture::Arm64, &release).unwrap();
        let file = scratch.path("a.deb");
        fs::write(&file, package).unwrap();
        let dpkg = |arguments: &[&str]| {
            let output = Command::new("dpkg-deb").arg(arguments[0]).arg(&file).args(&arguments[1..]).output().unwrap();
            assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap()
        };
        for (field, value) in
            [("Package", "evenkeel\n"), ("Version", "1.2.3-1\n"), ("Architecture", "arm64\n"), ("Depends", "\n")]
        {
            assert_eq!(dpkg(&["--field", field]), value, "{field}");
        }
        let unpacked = scratch.path("unpacked");
        dpkg(&["--extract", unpacked.to_str().unwrap()]);
        let run = Command::new(unpacked.join("usr/bin/evenkeel")).output().unwrap();
        assert_eq!(run.stdout, b"a binary\n");
        let unit = fs::read_to_string(unpacked.join("usr/lib/systemd/system/evenkeel.service")).unwrap();
        let start = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
        for path in start.split(' ').filter(|word| word.starts_with('/')) {
            assert!(unpacked.join(&path[1..]).exists(), "the unit names {path}, which the package does not install");
        }
        dpkg(&["--control", scratch.path("control").to_str().unwrap()]);
        let settings = fs::read_to_string(scratch.path("control/conffiles")).unwrap();
        assert_eq!(settings.lines().count(), 3);
        for path in settings.lines() {
            assert!(unpacked.join(&path[1..]).is_file(), "{path}");
        }
    }

    #[test]
    fn a_pre_release_is_older_than_its_release() {
        let version = |version: &str| {
            let release = Release { version: version.to_owned(), time: 0 };
            let control = control(&metadata()["deb"], &FileTree::default(), Architecture::Amd64, &release).unwrap();
            control.lines().find_map(|line| line.strip_prefix("Version: ")).unwrap().to_owned()
        };
        let (candidate, release) = (version("1.2.3-rc.1"), version("1.2.3"));
        assert_eq!((candidate.as_str(), release.as_str()), ("1.2.3~rc.1-1", "1.2.3-1"));
        if let Ok(status) = Command::new("dpkg").args(["--compare-versions", &candidate, "lt", &release]).status() {
            assert!(status.success());
        }
    }

    #[test]
    fn both_kinds_of_packages_install_the_same_files() {
        let metadata = metadata();
        let deb = metadata["deb"]["assets"].as_array().unwrap().iter();
        let mut deb: Vec<_> =
            deb.map(|asset| [0, 1, 2].map(|index| asset[index].as_str().unwrap().to_owned())).collect();
        // Only Debian has a rule for the name of this file.
        deb.retain(|[_, to, _]| !to.ends_with("/copyright"));
        let rpm = metadata["generate-rpm"]["assets"].as_array().unwrap().iter();
        let rpm: Vec<_> = rpm
            .map(|asset| {
                let [source, dest, mode] = ["source", "dest", "mode"].map(|field| asset[field].as_str().unwrap());
                // Its paths are relative to the root of the repository, destinations are absolute, and zsh is elsewhere.
                let source = if source == BINARY { source.to_owned() } else { format!("../../{source}") };
                [source, dest[1..].replace("site-functions", "vendor-completions"), mode.to_owned()]
            })
            .collect();
        assert_eq!(deb, rpm);
    }
}
