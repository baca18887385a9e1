//! What is rendered is valid by Kubernetes' own schemas.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::rendered::{Helm, Rendered, everything, installed};
use crate::child::text;

const SCRIPT: &str = include_str!("validate.py");
/// The oldest version that the chart supports, and one that the sidecar needs for `preStop.sleep`.
const OLDEST: &str = "1.25";
const OLDEST_WITH_SLEEP: &str = "1.30";
const NEWEST: &str = "1.37";

/// Problems that the schemas find, and how many documents were looked at. `None` where Python has no schemas.
fn problems(rendered: &[Rendered]) -> Option<(Vec<String>, usize)> {
    let folder = tempfile::tempdir().unwrap();
    let monitors = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/charts/servicemonitor.schema.json");
    let mut command = Command::new(installed("python"));
    command.args(["-c", SCRIPT]).arg(monitors);
    for rendered in rendered {
        let path = folder.path().join(file_name(&rendered.name));
        fs::write(&path, &rendered.text).unwrap();
        let oldest = if rendered.text.contains("sleep:") { OLDEST_WITH_SLEEP } else { OLDEST };
        for version in [oldest, NEWEST] {
            command.arg(format!("{version}:{}", path.display()));
        }
    }
    let Some(output) = command.output().ok().filter(|output| output.status.success()) else {
        eprintln!("skipped: Python has no kubernetes-validate; `cargo xtask setup` installs it");
        return None;
    };
    let output = text(&output.stdout);
    let mut lines: Vec<String> = output.lines().map(str::to_owned).collect();
    let count = lines.pop().and_then(|line| line.strip_suffix(" documents")?.parse().ok()).unwrap();
    Some((lines, count))
}

fn file_name(name: &str) -> String {
    name.replace(['/', ' ', ':'], "-")
}

#[test]
fn everything_is_valid_in_the_oldest_and_in_the_newest_kubernetes() {
    let all = everything();
    let Some((problems, count)) = problems(&all) else { return };
    assert_eq!(problems, [""; 0]);
    assert_eq!(count, 2 * all.iter().map(|rendered| rendered.objects.len()).sum::<usize>());
}

#[test]
fn faults_in_templates_are_found() {
    let Some(helm) = Helm::find() else { return };
    let faults = [
        (
            "workload.yaml",
            "terminationGracePeriodSeconds",
            "terminationGraceSeconds",
            "'terminationGraceSeconds' was unexpected",
        ),
        (
            "_container.tpl",
            "readOnlyRootFilesystem",
            "readOnlyRootFileSystem",
            "'readOnlyRootFileSystem' was unexpected",
        ),
        ("_container.tpl", "periodSeconds: 10", "periodSeconds: often", "'often' is not of type 'integer'"),
        ("services.yaml", "targetPort: admin", "targetPorts: admin", "'targetPorts' was unexpected"),
        ("servicemonitor.yaml", "authorization:", "authorisation:", "'authorisation' was unexpected"),
        ("poddisruptionbudget.yaml", "policy/v1", "policy/v2", "Couldn't find schema for kind PodDisruptionBudget"),
    ];
    let charts = faults.map(|(file, right, wrong, _)| helm.render_fault("gateway", file, right, wrong));
    let Some((problems, _)) = problems(&charts) else { return };
    for (_, _, wrong, message) in faults {
        let found = problems.iter().filter(|problem| problem.contains(&file_name(wrong)) && problem.contains(message));
        // Once for each version.
        assert_eq!(found.count(), 2, "{wrong}: {problems:#?}");
    }
    assert_eq!(problems.len(), 2 * faults.len(), "{problems:#?}");
}
