//! The workflow that renders and installs the chart with other versions of helm.

use std::fs;

use super::rendered::{chart, deploy};

/// The commands of the workflow, one in each line.
fn commands() -> Vec<String> {
    let text = fs::read_to_string(deploy("../.github/workflows/charts.yml")).unwrap();
    text.replace("\\\n", " ").lines().map(|line| line.trim().to_owned()).collect()
}

fn with<'a>(commands: &'a [String], start: &str) -> Vec<&'a str> {
    let found: Vec<_> = commands.iter().map(String::as_str).filter(|command| command.starts_with(start)).collect();
    assert!(!found.is_empty(), "charts.yml has no {start:?}");
    found
}

/// The Kubernetes for which an old helm renders by itself is too old for the sidecar.
#[test]
fn all_versions_of_helm_render_for_the_same_kubernetes() {
    for command in with(&commands(), "helm template ") {
        assert!(command.contains(" --kube-version 1.30.0 "), "{command}");
    }
}

/// `--logs` reads the logs of a pod that is deleted when it has succeeded.
#[test]
fn helm_test_does_not_ask_for_logs_that_are_gone() {
    let pod = fs::read_to_string(chart().join("templates/tests/ready.yaml")).unwrap();
    assert!(pod.contains("helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded\n"));
    for command in with(&commands(), "helm test ") {
        assert!(!command.contains("--logs"), "{command}");
    }
}
