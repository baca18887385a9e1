//! `cargo xtask bench`: the benchmarks of every crate.

use anyhow::Result;

use crate::run::{CommandLine, Lockfile};
use crate::setup;

pub(crate) fn bench(filter: Option<&str>) -> Result<()> {
    setup::setup_for_benchmarks();
    command(filter, Lockfile::from_environment()).run()
}

fn command(filter: Option<&str>, lockfile: Lockfile) -> CommandLine {
    let all = CommandLine::cargo(&["bench"], lockfile).args(["--workspace", "--benches"]);
    match filter {
        None => all,
        Some(filter) => all.args(["--", filter]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filter_goes_to_the_benchmarks() {
        assert_eq!(command(None, Lockfile::Free).to_string(), "cargo bench --workspace --benches");
        assert_eq!(
            command(Some("deal"), Lockfile::Fixed).to_string(),
            "cargo bench --locked --workspace --benches -- deal"
        );
    }
}
