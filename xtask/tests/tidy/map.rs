//! Every module at the root of a crate is named in the code map, so that ARCHITECTURE.md stays true.

use std::collections::BTreeSet;

use crate::offence::Offence;

pub(crate) const MAP: &str = "ARCHITECTURE.md";

/// Files at the root of a crate that are no modules of their own.
const ROOTS: [&str; 2] = ["lib", "main"];

pub(crate) fn check<'a>(map: &str, paths: impl Iterator<Item = &'a str>) -> Vec<Offence> {
    let modules: BTreeSet<(&str, &str)> = paths.filter_map(module).collect();
    let is_unnamed = |&(name, module): &(&str, &str)| !section(map, name).is_some_and(|text| names(text, module));
    let fault = |(name, module)| format!("the section `crates/{name}` does not name the module `{module}`");
    modules.into_iter().filter(is_unnamed).map(|module| Offence::new(MAP, 1, fault(module))).collect()
}

/// The folder of a crate below `crates`, and the module at its root that a source file belongs to.
fn module(path: &str) -> Option<(&str, &str)> {
    let (name, file) = path.strip_prefix("crates/")?.split_once("/src/")?;
    let first = file.split('/').next().unwrap_or(file);
    let module = if first.len() == file.len() { file.strip_suffix(".rs")? } else { first };
    (!ROOTS.contains(&module)).then_some((name, module))
}

/// The map's entry for a crate.
fn section<'a>(map: &'a str, name: &str) -> Option<&'a str> {
    let (_, text) = map.split_once(&format!("\n### `crates/{name}` "))?;
    text.split("\n### ").next()
}

/// Whether a module is named between backticks, alone or as a part of a path.
fn names(text: &str, module: &str) -> bool {
    let quoted = text.split('`').skip(1).step_by(2);
    quoted.flat_map(|path| path.split(|c: char| !c.is_alphanumeric() && c != '_')).any(|part| part == module)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offence::assert_offences;

    const TEXT: &str =
        "# Map\n### `crates/store` (`evenkeel-store`)\n| `store`, `etcd::client` | x |\n### `crates/sim` (x)\n`run`\n";

    #[test]
    fn modules_that_the_map_lacks() {
        let paths = ["crates/store/src/lib.rs", "crates/store/src/etcd/client.rs", "crates/store/src/store.rs"];
        assert_offences(&check(TEXT, paths.into_iter()), &[]);
        let paths = ["crates/store/src/run.rs", "crates/sim/src/run/mod.rs", "crates/new/src/a.rs", "crates/sim/a.rs"];
        let fault = "ARCHITECTURE.md:1: the section";
        let expected = [
            format!("{fault} `crates/new` does not name the module `a`"),
            format!("{fault} `crates/store` does not name the module `run`"),
        ];
        assert_offences(&check(TEXT, paths.into_iter()), &expected.each_ref().map(String::as_str));
    }
}
