//! Every dependency from outside has an entry in the register that says why it was chosen.

use crate::offence::{Offence, numbered};

/// The document with the reasons, one heading or table row for each dependency.
pub(crate) const REGISTER: &str = "docs/dependencies.md";

const SECTION: &str = "workspace.dependencies";

/// A dependency that the workspace's manifest names.
#[derive(Debug, PartialEq, Eq)]
struct Dependency<'a> {
    name: &'a str,
    line: usize,
    origin: Origin,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Outside,
    Workspace,
}

pub(crate) fn check(manifest: &str, register: &str) -> Vec<Offence> {
    let outside = dependencies(manifest).into_iter().filter(|dependency| dependency.origin == Origin::Outside);
    outside
        .filter(|dependency| !is_registered(register, dependency.name))
        .map(|Dependency { name, line, .. }| {
            let fault = format!("dependency `{name}` has no heading or table row in {REGISTER}");
            Offence::new("Cargo.toml", line, fault)
        })
        .collect()
}

fn is_registered(register: &str, name: &str) -> bool {
    let quoted = format!("`{name}`");
    register.lines().any(|line| line.starts_with(['#', '|']) && line.contains(&quoted))
}

/// Reads as much of TOML as dependencies are written in: `name = …` over one or more lines, or a table of its own.
fn dependencies(manifest: &str) -> Vec<Dependency<'_>> {
    let mut found: Vec<Dependency<'_>> = Vec::new();
    let mut section = "";
    let mut brackets_open = 0;
    for (line, code) in numbered(manifest) {
        let code = code.split('#').next().unwrap_or(code).trim();
        let starts_entry = brackets_open == 0;
        if let Some(header) = code.strip_prefix('[').filter(|_| starts_entry) {
            section = header.trim_end_matches(']').trim();
            if let Some(name) = section.strip_prefix(SECTION).and_then(|rest| rest.strip_prefix('.')) {
                found.push(Dependency { name, line, origin: Origin::Outside });
            }
            continue;
        }
        brackets_open += code.matches(['[', '{']).count();
        brackets_open = brackets_open.saturating_sub(code.matches([']', '}']).count());
        if section == SECTION && starts_entry {
            let key = code.split('=').next().unwrap_or_default().trim();
            let name = key.split('.').next().unwrap_or_default();
            if !name.is_empty() {
                found.push(Dependency { name, line, origin: Origin::Outside });
            }
        }
        let in_dependencies =
            section.strip_prefix(SECTION).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        if let Some(last) = found.last_mut().filter(|_| in_dependencies && has_path(code)) {
            last.origin = Origin::Workspace;
        }
    }
    found
}

/// Whether the line sets the key `path`.
fn has_path(code: &str) -> bool {
    code.split(['{', ',', '.'])
        .any(|part| part.trim_start().strip_prefix("path").is_some_and(|rest| rest.trim_start().starts_with('=')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offence::assert_offences;

    const MANIFEST: &str = r#"[workspace]
members = ["crates/*"]

[workspace.dependencies]
own-api = { path = "crates/api", version = "0.1.0" }

# Why it is here: a = b
anyhow = "1"
serde = { version = "1", features = [
  "derive",
] } # path = "none"
own-engine.path = "crates/engine"

[workspace.dependencies.own-store]
version = "0.1.0"
path = "crates/store"

[workspace.dependencies.tokio]
version = "1"

[profile.release]
path = "none"
"#;

    #[test]
    fn unregistered() {
        assert_offences(
            &check(MANIFEST, "# Dependencies\n\nWe also use `anyhow` and serde.\n"),
            &[
                "Cargo.toml:8: dependency `anyhow` has no heading or table row in docs/dependencies.md",
                "Cargo.toml:9: dependency `serde` has no heading or table row in docs/dependencies.md",
                "Cargo.toml:18: dependency `tokio` has no heading or table row in docs/dependencies.md",
            ],
        );
    }

    #[test]
    fn registered() {
        let register = "## `anyhow`\n\n| name | why |\n|---|---|\n| `serde`, `tokio` | reasons |\n";
        assert_offences(&check(MANIFEST, register), &[]);
    }

    #[test]
    fn own_crates_are_told_apart() {
        let all = dependencies(MANIFEST);
        let own: Vec<&str> = all.iter().filter(|d| d.origin == Origin::Workspace).map(|d| d.name).collect();
        assert_eq!(own, ["own-api", "own-engine", "own-store"]);
    }
}
