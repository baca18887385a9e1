//! `cargo xtask bench`: the benchmarks of every crate.

use anyhow::Result;

use crate::run::{CommandLine, Lockfile};
use crate::setup;

pub(crate) fn bench(filter: Option<&str>) -> Result<()> {
    setup::setup_for_benchmarks();
    command(filter, Lockfile::from_environment()).run()
}

fn command(filter: Option<&str>, lockfile: Lockfile) -> CommandLine {
    let cargo = CommandLine::cargo(&["bench"], lockfile);
    // One group of one benchmark: nothing else has to be built.
    if filter == Some("envoy") {
        return cargo.args(["-p", "evenkeel-gateway-bench", "--bench", "gateway", "--", "gateway envoy"]);
    }
    // Two programs, which run themselves under valgrind.
    if filter == Some("instructions") {
        return cargo.args(["-p", "evenkeel", "-p", "evenkeel-engine", "--bench", "bars", "--", "instructions"]);
    }
    if let Some(filter) = filter.filter(|filter| filter.starts_with("llm")) {
        return cargo.args(["-p", "evenkeel-gateway-bench", "--bench", "llm", "--", filter]);
    }
    // Of the library, the gateway and replays.
    if filter == Some("shadow") {
        let packages = ["-p", "evenkeel", "-p", "evenkeel-gateway-bench", "-p", "evenkeel-replay"];
        let benchmarks = ["--bench", "bars", "--bench", "gateway", "--bench", "replay", "--", "shadow"];
        return cargo.args(packages).args(benchmarks);
    }
    let all = cargo.args(["--workspace", "--benches"]);
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
        let envoy = command(Some("envoy"), Lockfile::Free).to_string();
        let instructions = command(Some("instructions"), Lockfile::Free).to_string();
        assert_eq!(instructions, "cargo bench -p evenkeel -p evenkeel-engine --bench bars -- instructions");
        assert!(envoy.starts_with("cargo bench -p evenkeel-gateway-bench --bench gateway -- "), "{envoy}");
        let shadow = command(Some("shadow"), Lockfile::Free).to_string();
        assert!(shadow.ends_with(" --bench bars --bench gateway --bench replay -- shadow"), "{shadow}");
        let tokens = command(Some("llm tokens"), Lockfile::Free).to_string();
        assert!(tokens.starts_with("cargo bench -p evenkeel-gateway-bench --bench llm -- "), "{tokens}");
    }
}
