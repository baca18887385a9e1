//! The workflow files: least permissions, time limits, actions with versions, and only commands that exist.

use serde_json::Value;

use crate::offence::Offence;

const FOLDER: &str = ".github/workflows/";
pub(crate) const FUZZING: &str = ".github/workflows/fuzz.yml";

/// `commands` are those of `cargo xtask`.
pub(crate) fn check(path: &str, text: &str, commands: &[&str]) -> Vec<Offence> {
    if !path.starts_with(FOLDER) {
        return Vec::new();
    }
    let faults = match serde_saphyr::from_str::<Value>(text) {
        Ok(workflow) => faults(&workflow, commands),
        Err(error) => vec![format!("cannot be read: {error}")],
    };
    faults.into_iter().map(|fault| Offence::new(path, 1, fault)).collect()
}

/// Every fuzz target is fuzzed by its workflow.
pub(crate) fn check_fuzzing<'a>(workflow: &str, paths: impl Iterator<Item = &'a str>) -> Vec<Offence> {
    let targets = paths.filter_map(|path| path.strip_prefix("fuzz/fuzz_targets/")?.strip_suffix(".rs"));
    let missing = targets.filter(|target| !workflow.lines().any(|line| line.trim_start() == format!("- {target}")));
    missing.map(|target| Offence::new(FUZZING, 1, format!("the target `{target}` is not fuzzed"))).collect()
}

fn faults(workflow: &Value, commands: &[&str]) -> Vec<String> {
    let mut faults = Vec::new();
    for key in ["permissions", "concurrency"] {
        if workflow[key].is_null() {
            faults.push(format!("no `{key}` for the whole workflow"));
        }
    }
    for (name, job) in workflow["jobs"].as_object().into_iter().flatten() {
        if job["timeout-minutes"].is_null() && job["uses"].is_null() {
            faults.push(format!("job `{name}` has no `timeout-minutes`"));
        }
        for step in job["steps"].as_array().into_iter().flatten() {
            if let Some(action) = step["uses"].as_str().filter(|action| !has_version(action)) {
                faults.push(format!("job `{name}` uses `{action}` without a version such as `@v4` or a commit"));
            }
            let run = step["run"].as_str().unwrap_or_default();
            let called = run.split("cargo xtask ").skip(1).filter_map(|rest| rest.split_whitespace().next());
            let unknown = called.filter(|command| !commands.contains(command));
            faults.extend(
                unknown.map(|command| format!("job `{name}` runs `cargo xtask {command}`, which does not exist")),
            );
        }
    }
    faults
}

/// Whether an action is pinned to a major version or a commit. One of this repository has the version of the workflow.
fn has_version(action: &str) -> bool {
    let version = action.split_once('@').map_or("", |(_, version)| version);
    let major =
        version.strip_prefix('v').is_some_and(|number| number.split('.').all(|part| part.parse::<u32>().is_ok()));
    let commit = version.len() == 40 && version.bytes().all(|byte| byte.is_ascii_hexdigit());
    action.starts_with("./") || major || commit
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offence::assert_offences;

    #[test]
    fn good_workflow() {
        let text = "
on: push
permissions: {contents: read}
concurrency: ci
jobs:
  test:
    timeout-minutes: 5
    steps:
    - uses: actions/checkout@v4
    - uses: ./action
    - uses: a/b@0123456789012345678901234567890123456789
    - run: cargo xtask test && cargo xtask site
";
        assert_offences(&check(".github/workflows/a.yml", text, &["test", "site"]), &[]);
        assert_offences(&check("action.yml", "no workflow", &[]), &[]);
    }

    #[test]
    fn forgotten_fuzz_targets() {
        let paths = ["fuzz/Cargo.toml", "fuzz/fuzz_targets/a.rs", "fuzz/fuzz_targets/b.rs"];
        let expected = [".github/workflows/fuzz.yml:1: the target `b` is not fuzzed"];
        assert_offences(&check_fuzzing("target:\n  - a\n  - b_too\n", paths.into_iter()), &expected);
    }

    #[test]
    fn faulty_workflow() {
        let text = "
on: push
jobs:
  test:
    steps:
    - uses: actions/checkout@main
    - run: |
        cargo xtask tests
";
        let expected = [
            "no `permissions` for the whole workflow",
            "no `concurrency` for the whole workflow",
            "job `test` has no `timeout-minutes`",
            "job `test` uses `actions/checkout@main` without a version such as `@v4` or a commit",
            "job `test` runs `cargo xtask tests`, which does not exist",
        ];
        let expected = expected.map(|fault| format!(".github/workflows/a.yml:1: {fault}"));
        assert_offences(&check(".github/workflows/a.yml", text, &["test"]), &expected.each_ref().map(String::as_str));
        assert_eq!(check(".github/workflows/a.yml", "a: [", &[]).len(), 1);
    }
}
