//! The Helm chart and the Kustomize files in `deploy/`: what they render to is valid, makes sense, and runs.
//!
//! The tests need helm, kubectl and the Python package `kubernetes-validate`, which `cargo xtask setup` installs. Where one is
//! missing, tests are skipped; on a build machine they fail.

mod consistency;
mod meaning;
mod pod;
mod reader_shape;
mod rendered;
mod schemas;
mod settings;
mod settings_schema;
mod started;
mod values;
mod workflow;

use std::panic::catch_unwind;

use rendered::{Helm, Kustomize, MONITORED, Rendered, deploy, everything};
use serde_json::Value;

const CHECKS: [fn(&Rendered); 12] = [
    meaning::no_container_runs_as_root_or_with_more_rights_than_it_needs,
    meaning::every_container_has_requests_and_a_memory_limit_and_evenkeel_has_probes,
    meaning::selectors_match_the_pods_and_only_those,
    meaning::ports_that_are_referred_to_exist,
    meaning::the_network_policy_admits_whom_it_has_to_and_nobody_else,
    meaning::a_budget_lets_one_pod_go_and_a_single_pod_has_none,
    meaning::volumes_config_maps_secrets_and_accounts_exist,
    meaning::prometheus_has_the_token_of_the_admin_endpoint,
    settings::kubernetes_waits_until_a_pod_has_drained,
    settings::ports_are_those_of_the_settings_and_files_are_mounted,
    settings::the_binary_accepts_flags_and_settings,
    settings::the_objects_pass_the_strict_check,
];

/// One test for all of it: rendering takes longer than looking at what is rendered.
#[test]
fn everything_fits_together() {
    for rendered in everything() {
        for check in CHECKS {
            check(&rendered);
        }
    }
}

/// Two installations in one namespace: the page has the lines that tell them apart.
#[test]
fn overlays_beside_each_other_do_not_select_each_others_pods() {
    let Some(kustomize) = Kustomize::find() else { return };
    let page = std::fs::read_to_string(deploy("../docs/kubernetes.md")).unwrap();
    let lines = page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let lines = lines.into_iter().find(|lines| lines.starts_with("namePrefix: shop-\n")).unwrap();
    for overlay in MONITORED {
        let (other, own) = (kustomize.render_monitored(overlay), kustomize.render_monitored_with(overlay, lines));
        for check in CHECKS {
            check(&own);
        }
        let selects = |selector: &Value, labels: &Value| {
            selector.as_object().unwrap().iter().all(|(key, value)| labels[key] == *value)
        };
        for (one, another) in [(&own, &other), (&other, &own)] {
            let labels = &another.template()["metadata"]["labels"];
            for object in one.objects.iter().filter(|object| object["kind"] != "ServiceMonitor") {
                for at in ["/spec/selector", "/spec/selector/matchLabels", "/spec/podSelector/matchLabels"] {
                    let Some(selector) = object.pointer(at).filter(|one| one.get("matchLabels").is_none()) else {
                        continue;
                    };
                    assert!(!selects(selector, labels), "{overlay}: {} {at}", object["kind"]);
                }
            }
            let monitor = one.of_kind("ServiceMonitor").next().unwrap();
            for service in another.of_kind("Service") {
                let selector = &monitor["spec"]["selector"]["matchLabels"];
                assert!(!selects(selector, &service["metadata"]["labels"]), "{overlay}: {service}");
            }
        }
        let names = |rendered: &Rendered| {
            let named = rendered.objects.iter().map(|one| format!("{} {}", one["kind"], one["metadata"]["name"]));
            named.collect::<std::collections::BTreeSet<_>>()
        };
        assert!(names(&own).is_disjoint(&names(&other)), "{overlay}");
    }
}

/// What is valid by the schemas, and wrong nevertheless.
#[test]
fn faults_in_what_templates_mean_are_found() {
    let Some(helm) = Helm::find() else { return };
    let faults = [
        ("fleet", "_container.tpl", "runAsUser: {{ . }}", "runAsUser: 0"),
        ("fleet", "_container.tpl", "readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false"),
        ("fleet", "_container.tpl", "path: /readyz", "path: /ready"),
        ("fleet", "_container.tpl", "port: admin", "port: metrics"),
        ("fleet", "_container.tpl", "- --config=", "- --settings="),
        ("api-etcd", "_container.tpl", "--etcd-ca=/etc/evenkeel/etcd-tls", "--etcd-ca=/etc/evenkeel/etcd"),
        ("fleet", "_settings.tpl", "\"drainNotice\"", "\"drainDelay\""),
        ("fleet", "_shape.tpl", "(int (include \"evenkeel.drainSeconds\" .)) 10", "20 10"),
        ("api-etcd", "_shape.tpl", "(int .Values.drain.noticeSeconds) 40", "10 5"),
        ("fleet", "_volumes.tpl", "- name: data\n  emptyDir", "- name: date\n  emptyDir"),
        ("fleet", "services.yaml", "targetPort: api", "targetPort: https"),
        ("fleet", "poddisruptionbudget.yaml", "maxUnavailable: 1", "minAvailable: 5"),
        ("fleet", "networkpolicy.yaml", "evenkeel.testLabels", "evenkeel.selectorLabels"),
        ("fleet", "servicemonitor.yaml", "evenkeel.dev/metrics: \"true\"", "evenkeel.dev/metrics: \"yes\""),
        ("fleet", "servicemonitor.yaml", "name: {{ include \"evenkeel.adminSecret\" . }}", "name: other"),
        ("sidecar", "configmaps.yaml", ".Files.Get \"files/objects.yaml\"", "print \"kind: FlowSchema\""),
        ("sidecar", "_shape.tpl", "(int (include \"evenkeel.drainSeconds\" .)) 5", "(int .Values.drain.seconds) 5"),
        ("api-etcd", "_container.tpl", "scheme: HTTPS", "scheme: HTTP"),
    ];
    for (values, file, right, wrong) in faults {
        let rendered = helm.render_fault(values, file, right, wrong);
        let is_found = CHECKS.iter().any(|check| catch_unwind(|| check(&rendered)).is_err());
        assert!(is_found, "{file}: nobody has found {wrong:?} in place of {right:?}");
    }
}
