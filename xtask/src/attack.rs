//! `cargo xtask attack`: clients that mean harm against the release build of the binary.

use anyhow::Result;

use crate::run::{CommandLine, Lockfile, target_folder};

pub(crate) fn attack(name: Option<&str>) -> Result<()> {
    build(Lockfile::from_environment()).run()?;
    // The program expects the binary beside itself. `cargo run` would build it alone, with other features.
    let program = target_folder()?.join("release").join("evenkeel-attack");
    CommandLine::new(program.to_string_lossy()).args(name).run()
}

fn build(lockfile: Lockfile) -> CommandLine {
    let packages = ["--release", "--package", "evenkeel-cli", "--package", "evenkeel-attack"];
    CommandLine::cargo(&["build"], lockfile).args(packages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_attacked_is_built_with_what_attacks() {
        assert_eq!(
            build(Lockfile::Fixed).to_string(),
            "cargo build --locked --release --package evenkeel-cli --package evenkeel-attack"
        );
    }
}
