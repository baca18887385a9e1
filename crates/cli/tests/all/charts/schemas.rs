//! What is rendered is valid by Kubernetes' own schemas.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::rendered::{Helm, Rendered, everything, installed};
use crate::child::text;

const SCRIPT: &str = include_str!("validate.py");
/// The oldest version that the chart supports, and the oldest with `preStop.sleep`.
const OLDEST: &str = "1.25";
const OLDEST_WITH_SLEEP: &str = "1.30";
const NEWEST: &str = "1.37";

/// Values that the values files leave as they are.
const OPTIONS: &[&str] = &[
    "listenAddress=[::]",
    "imagePullSecrets[0].name=registry",
    "podLabels.a=b",
    "podAnnotations.a=b",
    "nodeSelector.a=b",
    "tolerations[0].key=a",
    "affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey=a",
    "topologySpreadConstraints[0].maxSkew=1",
    "topologySpreadConstraints[0].topologyKey=a",
    "topologySpreadConstraints[0].whenUnsatisfiable=DoNotSchedule",
    "priorityClassName=high",
    "extraEnv[0].name=A",
    "extraEnv[0].value=b: c",
    "serviceMonitor.interval=30s",
    "networkPolicy.api[0].podSelector.matchLabels.a=b",
    "networkPolicy.admin[0].podSelector.matchLabels.a=b",
    "networkPolicy.egress[0].to[0].ipBlock.cidr=10.0.0.0/8",
];
const OTHER_NAMES: &[&str] = &[
    "fullnameOverride=other",
    "image.digest=sha256:0123456789012345678901234567890123456789012345678901234567890123",
    "tls.clientCaSecretName=authorities",
    "objects.existingConfigMap=objects-of-others",
    "serviceAccount.create=false",
    "serviceAccount.name=account-of-others",
    "service.type=LoadBalancer",
    "service.port=8443",
    "service.annotations.a=b",
    "runAsUser=null",
];

/// Problems that the schemas find, and how many documents were looked at. `None` where Python has no schemas.
fn problems(rendered: &[Rendered]) -> Option<(Vec<String>, usize)> {
    let folder = tempfile::tempdir().unwrap();
    let operator = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/charts/monitoring.schemas.json");
    let mut command = Command::new(installed("python"));
    command.args(["-c", SCRIPT]).arg(operator);
    for rendered in rendered {
        let path = folder.path().join(file_name(&rendered.name));
        fs::write(&path, &rendered.text).unwrap();
        let oldest = if rendered.text.contains("sleep:") { OLDEST_WITH_SLEEP } else { OLDEST };
        for version in [oldest, NEWEST] {
            command.arg(format!("{version}:{}", path.display()));
        }
    }
    let Some(output) = command.output().ok().filter(|output| output.status.success()) else {
        evenkeel_missing_tool::skip("Python has no kubernetes-validate");
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
    let mut all = everything();
    if let Some(helm) = Helm::find() {
        let named = |name: &str, rendered: Rendered| Rendered { name: name.to_owned(), ..rendered };
        all.push(named("every value that places pods", helm.render("fleet", OPTIONS)));
        all.push(named("names of others", helm.render("gateway", OTHER_NAMES)));
        all.push(helm.render_for(OLDEST, "api-etcd", &[]).unwrap());
    }
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
        ("prometheusrule.yaml", "labels:", "tags:", "'tags' was unexpected"),
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
