//! The processors that releases are for: what each format calls them, and how a static binary for them is built.

use std::env::consts;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::run::{CommandLine, Lockfile, target_folder};

/// A processor that there is a Linux binary for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Architecture {
    Amd64,
    Arm64,
}

// === impl Architecture ===

impl Architecture {
    pub(crate) const ALL: [Self; 2] = [Self::Amd64, Self::Arm64];

    /// By the name in Rust, or the one in images and packages of Debian.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let is_meant = |architecture: &Self| [architecture.triple(), architecture.name()].contains(&text);
        Self::ALL.into_iter().find(is_meant).with_context(|| {
            let names = Self::ALL.map(Self::name).join(" and ");
            format!("there are no releases for `{text}`; there are releases for {names}")
        })
    }

    /// The architecture of this machine.
    pub(crate) fn of_this_machine() -> Result<Self> {
        let found = Self::ALL.into_iter().find(|architecture| architecture.gnu() == consts::ARCH);
        found.filter(|_| consts::OS == "linux").with_context(|| {
            format!("releases are built on Linux with amd64 or arm64, not on {} with {}", consts::OS, consts::ARCH)
        })
    }

    /// The name in images, in packages of Debian and in the names of our files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }

    /// The name in packages of Red Hat and in GNU tools.
    pub(crate) fn gnu(self) -> &'static str {
        match self {
            Self::Amd64 => "x86_64",
            Self::Arm64 => "aarch64",
        }
    }

    /// The name of the target in Rust.
    pub(crate) fn triple(self) -> &'static str {
        match self {
            Self::Amd64 => "x86_64-unknown-linux-gnu",
            Self::Arm64 => "aarch64-unknown-linux-gnu",
        }
    }

    /// Runs static binaries for it on other machines. It is static itself.
    pub(crate) fn emulator(self) -> PathBuf {
        PathBuf::from(format!("/usr/bin/qemu-{}-static", self.gnu()))
    }

    /// Whether Rust's standard library for it is installed.
    pub(crate) fn is_installed(self) -> bool {
        let command = CommandLine::new("rustc").args(["--print", "target-libdir", "--target", self.triple()]);
        let folder = command.read().ok().and_then(|path| String::from_utf8(path).ok());
        folder.is_some_and(|path| PathBuf::from(path.trim()).is_dir())
    }

    /// Builds the static binary, and says where it is.
    pub(crate) fn build(self) -> Result<PathBuf> {
        if !self.is_installed() {
            bail!("Rust's library for {0} is not installed; run `rustup target add {0}`", self.triple());
        }
        self.command(Self::of_this_machine()?, Lockfile::Fixed).run()?;
        Ok(target_folder()?.join(self.triple()).join("release/evenkeel"))
    }

    /// The command that builds it on a machine of its own kind, for people.
    pub(crate) fn build_command(self) -> String {
        self.command(self, Lockfile::Fixed).to_string()
    }

    /// This one command builds both the binary that is tested and the one that ships. glibc is linked statically; with
    /// `--target`, the flag does not reach build scripts and procedural macros, which must stay dynamic.
    fn command(self, machine: Self, lockfile: Lockfile) -> CommandLine {
        let cargo = CommandLine::cargo(&["build"], lockfile)
            .args(["--release", "--package", "evenkeel-cli", "--target", self.triple()])
            .env("RUSTFLAGS", "-C target-feature=+crt-static")
            .env("CARGO_PROFILE_RELEASE_STRIP", "symbols");
        if self == machine {
            return cargo;
        }
        // The cross compilers of Debian, such as gcc-aarch64-linux-gnu.
        let compiler = format!("{}-linux-gnu-gcc", self.gnu());
        let (linker, c_compiler) = match self {
            Self::Amd64 => ("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER", "CC_x86_64_unknown_linux_gnu"),
            Self::Arm64 => ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", "CC_aarch64_unknown_linux_gnu"),
        };
        cargo.env(linker, compiler.clone()).env(c_compiler, compiler)
    }
}

#[cfg(test)]
mod tests {
    use super::Architecture::{Amd64, Arm64};
    use super::*;

    #[test]
    fn binaries_are_static_stripped_and_cross_compiled_by_the_compilers_of_debian() {
        let build = "cargo build --locked --release --package evenkeel-cli --target";
        let flags = "RUSTFLAGS='-C target-feature=+crt-static' CARGO_PROFILE_RELEASE_STRIP=symbols";
        assert_eq!(
            Amd64.command(Amd64, Lockfile::Fixed).to_string(),
            format!("{flags} {build} x86_64-unknown-linux-gnu")
        );
        assert_eq!(
            Arm64.command(Amd64, Lockfile::Fixed).to_string(),
            format!(
                "{flags} CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
                 CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc {build} aarch64-unknown-linux-gnu"
            )
        );
    }

    #[test]
    fn architectures_have_two_names() {
        assert_eq!(Architecture::parse("arm64").unwrap(), Arm64);
        assert_eq!(Architecture::parse("x86_64-unknown-linux-gnu").unwrap(), Amd64);
        assert_eq!(
            Architecture::parse("riscv64").unwrap_err().to_string(),
            "there are no releases for `riscv64`; there are releases for amd64 and arm64"
        );
    }
}
