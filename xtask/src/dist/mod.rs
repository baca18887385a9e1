//! `cargo xtask dist`: everything that a release consists of, in `target/dist`.

mod architecture;
mod checksum;
mod deb;
mod file_tree;
mod image;
mod release;
mod sbom;
#[cfg(test)]
mod scratch;
mod template;
mod third_party;
mod trial;
#[cfg(test)]
mod workflow_tests;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::record::pack;
use crate::run::{CommandLine, root, target_folder};
use architecture::Architecture;
use deb::Sources;
use file_tree::FileTree;
use release::{PACKAGE, REPOSITORY, Release};
use template::Words;

/// The machine's file of trusted certificate authorities.
const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";
/// Completions by shell, and what the scripts are called.
const COMPLETIONS: [(&str, &str); 3] = [("bash", "evenkeel.bash"), ("fish", "evenkeel.fish"), ("zsh", "_evenkeel")];

/// The inputs of a release, besides the repository.
struct Ingredients {
    release: Release,
    /// The output of `cargo metadata`.
    metadata: Value,
    sbom: Value,
    binaries: Vec<Binary>,
    certificates: Vec<u8>,
    /// The repository, packed.
    source: Vec<u8>,
    target_folder: PathBuf,
}

/// A binary, and the notices of what it contains.
struct Binary {
    architecture: Architecture,
    content: Vec<u8>,
    third_party: String,
}

/// Makes everything for this machine, and for other architectures as far as their libraries are installed.
pub(crate) fn dist() -> Result<()> {
    let machine = Architecture::of_this_machine()?;
    let (here, elsewhere): (Vec<_>, Vec<_>) = Architecture::ALL.into_iter().partition(|one| *one == machine);
    let mut left_out = Vec::new();
    let mut binaries = Vec::new();
    for architecture in here.into_iter().chain(elsewhere) {
        if architecture != machine && !architecture.is_installed() {
            let name = architecture.name();
            left_out.push(format!("everything for {name}: run `rustup target add {}`", architecture.triple()));
            continue;
        }
        let path = architecture.build()?;
        if architecture == machine {
            write_pages(&path)?;
        }
        let third_party = third_party::document(architecture)?;
        binaries.push(Binary { architecture, content: read(&path)?, third_party });
    }
    let platform = machine.triple();
    let metadata = release::cargo_metadata(&[platform])?;
    let release = Release::current(&metadata)?;
    let lockfile = fs::read_to_string(root()?.join("Cargo.lock")).context("cannot read Cargo.lock")?;
    let ingredients = Ingredients {
        sbom: sbom::document(&metadata, &lockfile, &sbom::crates_of_binary(platform)?, &release)?,
        certificates: certificates()?,
        source: source(&release)?,
        target_folder: target_folder()?,
        release,
        metadata,
        binaries,
    };
    let mut products = ingredients.products()?;
    match ingredients.red_hat_packages() {
        Ok(packages) => {
            for (name, package) in packages {
                products.file(&name, 0o644, package);
            }
        }
        Err(error) => left_out.push(format!("packages for Red Hat: {error:#}")),
    }
    left_out.extend(ingredients.try_images(machine)?);
    write_products(&products)?;
    for what in left_out {
        println!("left out: {what}");
    }
    Ok(())
}

/// Makes the files of the container image alone, for the Dockerfile.
pub(crate) fn image_root(architecture: Option<&str>) -> Result<()> {
    let architecture = architecture.map_or_else(Architecture::of_this_machine, Architecture::parse)?;
    let binary = read(&architecture.build()?)?;
    let files = image::root(binary, certificates()?, &licences(&third_party::document(architecture)?)?);
    let folder = parts()?.join(format!("image-{}", architecture.name()));
    files.write_to(&folder)?;
    println!("{}: {} bytes", folder.display(), files.bytes());
    Ok(())
}

/// The files of packages that the binary generates.
fn write_pages(binary: &Path) -> Result<()> {
    let binary = binary.to_string_lossy();
    let (plain, man, completions) = (parts()?.join("pages"), parts()?.join("man"), parts()?.join("completions"));
    FileTree::default().write_to(&plain)?;
    CommandLine::new(binary.clone()).args(["man", "--directory", &plain.to_string_lossy()]).read()?;
    let mut pages = FileTree::default();
    for entry in fs::read_dir(&plain)? {
        let entry = entry?;
        pages.file(&format!("{}.gz", entry.file_name().to_string_lossy()), 0o644, pack(&read(&entry.path())?)?);
    }
    pages.write_to(&man)?;
    let mut scripts = FileTree::default();
    for (shell, name) in COMPLETIONS {
        scripts.file(name, 0o644, CommandLine::new(binary.clone()).args(["completions", shell]).read()?);
    }
    scripts.write_to(&completions)
}

/// The folder of the inputs of products, and of the systems that they were tried in.
fn parts() -> Result<PathBuf> {
    Ok(target_folder()?.join("dist/parts"))
}

/// Our licences, and the notices of what the binary contains.
fn licences(third_party: &str) -> Result<FileTree> {
    let mut files = FileTree::default();
    files.file(third_party::NAME, 0o644, third_party);
    for name in ["LICENSE-APACHE", "LICENSE-MIT"] {
        files.file(name, 0o644, read(&root()?.join(name))?);
    }
    Ok(files)
}

fn certificates() -> Result<Vec<u8>> {
    fs::read(CERTIFICATES).with_context(|| format!("cannot read {CERTIFICATES}; install the package `ca-certificates`"))
}

fn source(release: &Release) -> Result<Vec<u8>> {
    let prefix = format!("--prefix=evenkeel-{}/", release.version);
    pack(&CommandLine::new("git").args(["archive", "--format=tar", &prefix, "HEAD"]).read()?)
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Replaces the products of the run before.
fn write_products(products: &FileTree) -> Result<()> {
    let folder = target_folder()?.join("dist");
    for entry in fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let path = entry?.path();
        if path.is_file() {
            fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
    }
    let mut all = products.clone();
    all.file("SHA256SUMS", 0o644, checksum::sums(products.files()));
    for (name, content) in all.files() {
        fs::write(folder.join(name), content).with_context(|| format!("cannot write {name}"))?;
        println!("{:>10} {name}", content.len());
    }
    println!("in {}", folder.display());
    Ok(())
}

// === impl Ingredients ===

impl Ingredients {
    /// All that needs neither a build nor other tools.
    fn products(&self) -> Result<FileTree> {
        let version = &self.release.version;
        let source_name = format!("evenkeel-{version}-source.tar.gz");
        let mut words = Words::from([
            ("version".to_owned(), version.clone()),
            ("repository".to_owned(), REPOSITORY.to_owned()),
            ("source-url".to_owned(), self.release.url(&source_name)),
            ("source-sha256".to_owned(), checksum::sha256(&self.source)),
        ]);
        let mut products = FileTree::default();
        products.file(&source_name, 0o644, self.source.clone()).file(
            &format!("evenkeel-{version}.cdx.json"),
            0o644,
            serde_json::to_vec_pretty(&self.sbom)?,
        );
        let package = release::package(&self.metadata, PACKAGE)?;
        let mut krew = fs::read_to_string(root()?.join("deploy/templates/krew.yaml"))?;
        for architecture in Architecture::ALL {
            let name = architecture.name();
            let Some(binary) = self.binaries.iter().find(|binary| binary.architecture == architecture) else {
                krew = template::without_platform(&krew, name);
                continue;
            };
            let sources = Sources {
                binary: binary.content.clone(),
                third_party: binary.third_party.clone(),
                package_folder: root()?.join("crates/cli"),
                target_folder: self.target_folder.clone(),
            };
            let deb = deb::package(&package["metadata"]["deb"], &sources, architecture, &self.release)?;
            let tarball_name = format!("evenkeel-{version}-linux-{name}.tar.gz");
            let tarball = self.tarball(binary)?.tar_gz(self.release.time)?;
            words.insert(format!("{name}-url"), self.release.url(&tarball_name));
            words.insert(format!("{name}-sha256"), checksum::sha256(&tarball));
            let image = self.image(binary)?;
            let archive = image::archive(architecture, &image, &self.release)?;
            products
                .file(&tarball_name, 0o644, tarball)
                .file(&deb::file_name(architecture, &self.release), 0o644, deb)
                .file(&format!("evenkeel-{version}-image-{name}.tar"), 0o644, archive);
        }
        let formula = fs::read_to_string(root()?.join("deploy/templates/evenkeel.rb"))?;
        products.file("evenkeel.rb", 0o644, template::fill("evenkeel.rb", &formula, &words)?).file(
            "krew.yaml",
            0o644,
            template::fill("krew.yaml", &krew, &words)?,
        );
        Ok(products)
    }

    fn image(&self, binary: &Binary) -> Result<FileTree> {
        let licences = licences(&binary.third_party)?;
        let image = image::root(binary.content.clone(), self.certificates.clone(), &licences);
        let (bytes, bar) = (image.bytes(), image::BYTES_MAX);
        ensure!(bytes <= bar, "the files of the image have {bytes} bytes; {bar} is the bar");
        Ok(image)
    }

    /// The binary and what belongs to it, to be unpacked anywhere.
    fn tarball(&self, binary: &Binary) -> Result<FileTree> {
        let folder = format!("evenkeel-{}-linux-{}", self.release.version, binary.architecture.name());
        let mut files = licences(&binary.third_party)?;
        files.file("evenkeel", 0o755, binary.content.as_slice());
        for name in [
            "README.md",
            "CHANGELOG.md",
            "deploy/evenkeel.logrotate",
            "deploy/evenkeel.service",
            "deploy/evenkeel.socket",
            "deploy/evenkeel.yaml",
            "deploy/objects.yaml",
        ] {
            files.file(name, 0o644, read(&root()?.join(name))?);
        }
        for part in ["man", "completions"] {
            for entry in fs::read_dir(self.target_folder.join("dist/parts").join(part))? {
                let entry = entry?;
                let name = entry.file_name().to_string_lossy().into_owned();
                files.file(&format!("{part}/{name}"), 0o644, read(&entry.path())?);
            }
        }
        let mut tarball = FileTree::default();
        tarball.tree(&folder, &files);
        Ok(tarball)
    }

    /// By `cargo generate-rpm`, since the format is not a simple one.
    fn red_hat_packages(&self) -> Result<Vec<(String, Vec<u8>)>> {
        let tool = CommandLine::new("cargo").args(["generate-rpm"]);
        ensure!(
            tool.clone().args(["--version"]).succeeds(),
            "run `cargo install --locked cargo-generate-rpm`, which is not installed"
        );
        ensure!(self.target_folder == root()?.join("target"), "unset CARGO_TARGET_DIR: its paths begin with `target`");
        let mut packages = Vec::new();
        for Binary { architecture, third_party, .. } in &self.binaries {
            let name = format!("evenkeel-{}-{}.{}.rpm", self.release.version, deb::REVISION, architecture.gnu());
            fs::write(parts()?.join(third_party::NAME), third_party).context("cannot write the notices")?;
            let file = parts()?.join(&name);
            let options = ["--package", "crates/cli", "--payload-compress", "gzip", "--target", architecture.triple()];
            tool.clone()
                .args(options)
                .args(["--output", &file.to_string_lossy()])
                .env("SOURCE_DATE_EPOCH", self.release.time.to_string())
                .run()?;
            packages.push((name, read(&file)?));
        }
        Ok(packages)
    }

    /// Tries the images, and says which could not be tried.
    fn try_images(&self, machine: Architecture) -> Result<Vec<String>> {
        if !trial::is_possible()? {
            return Ok(vec!["trials of the images: only root may change the root of a process".to_owned()]);
        }
        let mut left_out = Vec::new();
        for binary in &self.binaries {
            let architecture = binary.architecture;
            let (image, name) = (self.image(binary)?, architecture.name());
            let folder = parts()?.join(format!("trial-{name}"));
            if architecture == machine {
                let ready = trial::time_to_ready(&image, &folder)?;
                println!("the image for {name} has {} bytes of files, and is ready after {ready:?}", image.bytes());
            } else if let Ok(emulator) = fs::read(architecture.emulator()) {
                trial::emulate(&image, emulator, &folder)?;
                println!("the image for {name} has {} bytes of files, and runs on QEMU", image.bytes());
            } else {
                let emulator = architecture.emulator();
                left_out.push(format!("a trial of the image for {name}: there is no {}", emulator.display()));
            }
        }
        Ok(left_out)
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::scratch::Scratch;
    use super::*;

    fn ingredients(scratch: &Scratch, architectures: &[Architecture]) -> Ingredients {
        for (folder, names) in
            [("man", &["evenkeel.1.gz"][..]), ("completions", &["evenkeel.bash", "evenkeel.fish", "_evenkeel"])]
        {
            fs::create_dir_all(scratch.path("dist/parts").join(folder)).unwrap();
            for name in names {
                fs::write(scratch.path("dist/parts").join(folder).join(name), "").unwrap();
            }
        }
        Ingredients {
            release: Release { version: "1.2.3".to_owned(), time: 1_000_000_000 },
            metadata: release::cargo_metadata(&[]).unwrap(),
            sbom: Value::Null,
            binaries: architectures.iter().copied().map(binary).collect(),
            certificates: Vec::new(),
            source: b"source".to_vec(),
            target_folder: scratch.folder().to_owned(),
        }
    }

    fn binary(architecture: Architecture) -> Binary {
        let content = architecture.name().as_bytes().to_vec();
        Binary { architecture, content, third_party: format!("notices of {}", architecture.name()) }
    }

    /// The content of an archive of a release, as text.
    fn unpacked(scratch: &Scratch, products: &FileTree, name: &str, command: &[&str], path: &str) -> String {
        let (_, content) = products.files().find(|(found, _)| *found == name).unwrap_or_else(|| panic!("no {name}"));
        let (file, folder) = (scratch.path(name), scratch.path("unpacked").join(name));
        fs::write(&file, content).unwrap();
        fs::create_dir_all(&folder).unwrap();
        let words = command.iter().map(|word| match *word {
            "FILE" => file.to_str().unwrap(),
            "FOLDER" => folder.to_str().unwrap(),
            other => other,
        });
        let mut words = words.collect::<Vec<_>>().into_iter();
        let status = Command::new(words.next().unwrap()).args(words).status().unwrap();
        assert!(status.success(), "{name}");
        fs::read_to_string(folder.join(path)).unwrap_or_else(|error| panic!("{name}: {path}: {error}"))
    }

    /// Licences require it. The test of the Dockerfile shows that it takes the same files.
    #[test]
    fn every_artefact_has_the_notices_of_its_own_binary() {
        let scratch = Scratch::new("notices-of-each");
        let ingredients = ingredients(&scratch, &Architecture::ALL);
        let products = ingredients.products().unwrap();
        for one in Architecture::ALL {
            let (name, notices) = (one.name(), format!("notices of {}", one.name()));
            let tarball = format!("evenkeel-1.2.3-linux-{name}.tar.gz");
            let tar = ["tar", "--extract", "--strip-components=1", "--directory", "FOLDER", "--file", "FILE"];
            assert_eq!(unpacked(&scratch, &products, &tarball, &tar, third_party::NAME), notices);
            let deb = format!("evenkeel_1.2.3-1_{name}.deb");
            if CommandLine::new("dpkg-deb").args(["--version"]).succeeds() {
                for file in [third_party::NAME, "copyright"] {
                    let path = format!("usr/share/doc/evenkeel/{file}");
                    assert_eq!(
                        unpacked(&scratch, &products, &deb, &["dpkg-deb", "-x", "FILE", "FOLDER"], &path),
                        notices
                    );
                }
            }
            let image = ingredients.image(&binary(one)).unwrap();
            assert_eq!(text(&image, "usr/share/doc/evenkeel/THIRD-PARTY-LICENSES.txt"), notices);
        }
    }

    fn text<'a>(products: &'a FileTree, name: &str) -> &'a str {
        let (_, content) = products.files().find(|(path, _)| *path == name).unwrap_or_else(|| panic!("no {name}"));
        std::str::from_utf8(content).unwrap()
    }

    #[test]
    fn a_release_has_all_files_and_they_name_each_other() {
        let scratch = Scratch::new("all");
        let products = ingredients(&scratch, &Architecture::ALL).products().unwrap();
        let names: Vec<&str> = products.files().map(|(name, _)| name).collect();
        assert_eq!(
            names,
            [
                "evenkeel-1.2.3-image-amd64.tar",
                "evenkeel-1.2.3-image-arm64.tar",
                "evenkeel-1.2.3-linux-amd64.tar.gz",
                "evenkeel-1.2.3-linux-arm64.tar.gz",
                "evenkeel-1.2.3-source.tar.gz",
                "evenkeel-1.2.3.cdx.json",
                "evenkeel.rb",
                "evenkeel_1.2.3-1_amd64.deb",
                "evenkeel_1.2.3-1_arm64.deb",
                "krew.yaml",
            ]
        );
        let (krew, formula) = (text(&products, "krew.yaml"), text(&products, "evenkeel.rb"));
        for (name, content) in products.files() {
            let sum = checksum::sha256(content);
            let place = format!("{REPOSITORY}/releases/download/v1.2.3/{name}");
            if name.contains("-linux-") {
                assert!(krew.contains(&format!("    uri: {place}\n    sha256: {sum}\n")), "{krew}");
            }
            if name.ends_with("-source.tar.gz") {
                assert!(formula.contains(&format!("  url \"{place}\"\n  sha256 \"{sum}\"\n")), "{formula}");
            }
        }
        assert!(!krew.contains("{{") && !formula.contains("{{"));
    }

    #[test]
    fn what_was_not_built_is_not_named() {
        let scratch = Scratch::new("one");
        let products = ingredients(&scratch, &[Architecture::Amd64]).products().unwrap();
        assert_eq!(products.files().count(), 7);
        assert!(!text(&products, "krew.yaml").contains("arm64"));
    }

    #[test]
    fn a_large_image_is_an_error() {
        let scratch = Scratch::new("large");
        let ingredients = Ingredients { certificates: vec![0; image::BYTES_MAX], ..ingredients(&scratch, &[]) };
        let image = ingredients.image(&binary(Architecture::Amd64));
        assert!(image.unwrap_err().to_string().ends_with("30000000 is the bar"));
    }

    /// The addresses of cargo-binstall are those of the release.
    #[test]
    fn cargo_binstall_finds_the_tarballs() {
        let metadata = release::cargo_metadata(&[]).unwrap();
        let overrides = &release::package(&metadata, PACKAGE).unwrap()["metadata"]["binstall"]["overrides"];
        let release = Release { version: "{ version }".to_owned(), time: 0 };
        for architecture in Architecture::ALL {
            let place = &overrides[architecture.triple()];
            let folder = format!("evenkeel-{{ version }}-linux-{}", architecture.name());
            assert_eq!(place["pkg-url"].as_str().unwrap(), release.url(&format!("{folder}.tar.gz")));
            assert_eq!(place["bin-dir"], format!("{folder}/evenkeel"));
        }
    }
}
