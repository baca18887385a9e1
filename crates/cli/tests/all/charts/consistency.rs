//! The chart, the Kustomize files and `deploy/sidecar.yaml` describe the same pods.

use std::fs;

use serde_json::Value;

use super::rendered::{Helm, Kustomize, MONITORED, OVERLAYS, Rendered, deploy};
use super::settings::settings;

fn sidecar_file() -> Rendered {
    Rendered::new("deploy/sidecar.yaml", fs::read_to_string(deploy("sidecar.yaml")).unwrap())
}

#[test]
fn the_objects_are_the_same_everywhere() {
    let objects = fs::read_to_string(deploy("objects.yaml")).unwrap();
    let copies = ["helm/evenkeel/files", "kustomize/base", "kustomize/components/sidecar"];
    for copy in copies {
        let path = deploy(copy).join("objects.yaml");
        assert!(fs::read_to_string(&path).unwrap() == objects, "{} differs from deploy/objects.yaml", path.display());
    }
    assert_eq!(sidecar_file().files("objects"), [("objects.yaml", objects.as_str())]);
}

#[test]
fn the_chart_has_all_alerts() {
    let rules = fs::read_to_string(deploy("prometheus/evenkeel.rules.yaml")).unwrap();
    let copy = fs::read_to_string(deploy("helm/evenkeel/files/evenkeel.rules.yaml")).unwrap();
    assert!(copy == rules, "deploy/helm/evenkeel/files/evenkeel.rules.yaml is not a copy of that in deploy/prometheus");
    let Some(helm) = Helm::find() else { return };
    let rendered = helm.render("gateway", &[]);
    let rule = rendered.of_kind("PrometheusRule").next().unwrap();
    let expected = Rendered::new("deploy/prometheus/evenkeel.rules.yaml", rules);
    assert_eq!(rule["spec"], expected.objects[0]);
}

#[test]
fn the_sidecar_file_is_what_the_chart_renders() {
    let Some(helm) = Helm::find() else { return };
    let (chart, file) = (helm.render("sidecar", &[]), sidecar_file());
    assert_eq!(chart.container(), file.container());
    assert_eq!(settings(&chart), settings(&file));
}

/// All but the names of ports and volumes, which must not collide with those of the service.
#[test]
fn the_sidecar_of_kustomize_is_that_of_the_file() {
    let Some(kustomize) = Kustomize::find() else { return };
    let (overlay, file) = (kustomize.render("overlays/sidecar"), sidecar_file());
    for part in ["image", "args", "env", "resources", "securityContext", "imagePullPolicy"] {
        assert_eq!(overlay.container()[part], file.container()[part], "{part}");
    }
    assert_eq!(settings(&overlay), settings(&file));
    let annotations = |rendered: &Rendered| rendered.template()["metadata"]["annotations"].clone();
    assert_eq!(annotations(&overlay), annotations(&file));
    // Without the copies of objects, which have long texts.
    let others = |text: &str| {
        let rendered =
            Rendered::new("", text.replace("evenkeel-admin", "admin").replace("port: evenkeel", "port: http"));
        let kinds = ["Service", "NetworkPolicy"];
        kinds.map(|kind| rendered.of_kind(kind).map(|one| one["spec"].clone()).collect::<Vec<_>>())
    };
    let overlay_text = overlay.text.replace("targetPort: evenkeel", "targetPort: http");
    assert_eq!(others(&overlay_text), others(&file.text));
}

/// A cluster without the Prometheus Operator does not know its kinds, and `kubectl apply` would fail.
#[test]
fn overlays_need_no_operator() {
    let Some(kustomize) = Kustomize::find() else { return };
    let needs_operator = |rendered: &Rendered| {
        let mut versions = rendered.objects.iter().map(|object| object["apiVersion"].as_str().unwrap());
        versions.any(|version| version.starts_with("monitoring.coreos.com/"))
    };
    for overlay in OVERLAYS {
        assert!(!needs_operator(&kustomize.render(overlay)), "{overlay}");
    }
    for overlay in MONITORED {
        assert!(needs_operator(&kustomize.render_monitored(overlay)), "{overlay}");
    }
}

#[test]
fn the_base_of_kustomize_is_what_the_chart_renders() {
    let (Some(helm), Some(kustomize)) = (Helm::find(), Kustomize::find()) else { return };
    let base = kustomize.render("base");
    let values = [
        "fullnameOverride=evenkeel",
        "replicas=2",
        "capacity=120",
        "upstreams[0].url=http://service:80",
        "api.enabled=false",
        "serviceMonitor.enabled=false",
    ];
    let chart = helm.render("fleet", &values);
    assert_eq!(base.container(), chart.container());
    assert_eq!(settings(&base), settings(&chart));
    let pod = |rendered: &Rendered| {
        let mut pod = rendered.template()["spec"].clone();
        // Their labels are those of other tools.
        for constraint in pod["topologySpreadConstraints"].as_array_mut().unwrap() {
            constraint["labelSelector"] = Value::Null;
        }
        pod
    };
    assert_eq!(pod(&base), pod(&chart));
    let kinds = |rendered: &Rendered| {
        let mut kinds: Vec<String> =
            rendered.objects.iter().map(|one| format!("{} {}", one["kind"], one["metadata"]["name"])).collect();
        // `helm test` has no counterpart.
        kinds.retain(|kind| !kind.starts_with("\"Pod\""));
        kinds.sort();
        kinds
    };
    assert_eq!(kinds(&base), kinds(&chart));
}

#[test]
fn the_fleet_of_kustomize_is_what_the_chart_renders() {
    let (Some(helm), Some(kustomize)) = (Helm::find(), Kustomize::find()) else { return };
    let overlay = kustomize.render("overlays/fleet");
    let chart = helm.render("fleet", &["fullnameOverride=evenkeel"]);
    assert_eq!(settings(&overlay), settings(&chart));
    let flags = |rendered: &Rendered| {
        let flags: Vec<String> =
            super::rendered::arguments(rendered.container()).into_iter().map(str::to_owned).collect();
        // The chart knows the namespace.
        flags.into_iter().filter(|flag| !flag.contains("evenkeel-api.demo")).collect::<Vec<_>>()
    };
    assert_eq!(flags(&overlay), flags(&chart));
    let mut mounts = [overlay.container(), chart.container()].map(|container| {
        let mut mounts = container["volumeMounts"].as_array().unwrap().clone();
        mounts.sort_by_key(ToString::to_string);
        mounts
    });
    let chart_mounts = std::mem::take(&mut mounts[1]);
    assert_eq!(mounts[0], chart_mounts);
}

#[test]
fn the_embedded_store_of_kustomize_has_the_settings_of_the_chart() {
    let (Some(helm), Some(kustomize)) = (Helm::find(), Kustomize::find()) else { return };
    assert_eq!(settings(&kustomize.render("overlays/api-embedded")), settings(&helm.render("api-embedded", &[])));
}
