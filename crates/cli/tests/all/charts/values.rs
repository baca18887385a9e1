//! The values of the chart: what is wrong is refused with a message that helps, and what is documented is what there is.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use evenkeel_api::decode::parse_yaml;
use serde_json::Value;

use super::rendered::{Helm, VALUES, chart, copy, copy_of_chart, deploy, json};

fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path.as_ref()).unwrap_or_else(|error| panic!("{}: {error}", path.as_ref().display()))
}

#[test]
fn wrong_values_are_refused_with_a_message_that_helps() {
    let Some(helm) = Helm::find() else { return };
    let api = "api.enabled=true";
    let cases: &[(&str, &[&str], &str)] = &[
        // By values.schema.json.
        ("gateway", &["mode=gatway"], "mode must be one of the following: \"gateway\", \"sidecar\", \"api\""),
        ("gateway", &["replicas=two"], "replicas: Invalid type. Expected: integer, given: string"),
        ("gateway", &["replica=2"], "Additional property replica is not allowed"),
        ("gateway", &["tls.secret=a"], "tls: Additional property secret is not allowed"),
        ("gateway", &["upstreams[0].url=orders"], "upstreams.0.url: Does not match pattern '^https?://'"),
        ("gateway", &["capacity=0"], "capacity: Must be greater than or equal to 1"),
        ("gateway", &["nameOverride=a.b"], "nameOverride: Does not match pattern"),
        ("gateway", &["fullnameOverride=a.b"], "fullnameOverride: Does not match pattern"),
        ("gateway", &["fullnameOverride=1a"], "fullnameOverride: Does not match pattern"),
        ("gateway", &["enabled=maybe"], "enabled: Invalid type. Expected: boolean, given: string"),
        ("gateway", &["objects.files.notes\\.txt=a"], "Additional property notes.txt is not allowed"),
        ("fleet", &["api.store=sqlite"], "api.store must be one of the following: \"embedded\", \"etcd\""),
        ("fleet", &["api.etcd.endpoints[0]=http://etcd:2379"], "api.etcd.endpoints.0: Does not match pattern"),
        ("gateway", &["settings.concurency=5"], "settings: Additional property concurency is not allowed"),
        ("gateway", &["networkPolicy.extraIngress=all"], "networkPolicy.extraIngress: Invalid type"),
        // By the templates.
        ("gateway", &["upstreams=null"], "upstreams is empty: set the service that requests are forwarded to"),
        ("gateway", &["capacity=null"], "set capacity (requests at a time, for the service as a whole) or concurrency"),
        ("gateway", &["concurrency=5"], "capacity and concurrency are both set"),
        ("gateway", &["capacity=5"], "capacity 5 is too small for up to 6 pods"),
        (
            "gateway",
            &["settings.concurrency=5"],
            "settings.concurrency is set by the chart: use capacity or concurrency",
        ),
        ("gateway", &["settings.timeouts.drain=5s"], "use drain.seconds and drain.noticeSeconds"),
        ("gateway", &["settings.admin.address=null"], "use ports.admin and admin.existingSecret"),
        ("gateway", &["autoscaling.minReplicas=9"], "autoscaling.minReplicas is greater than autoscaling.maxReplicas"),
        ("gateway", &["tls.secretName=", "tls.clientCaSecretName=a"], "tls.clientCaSecretName needs tls.secretName"),
        ("gateway", &["objects.files.a\\.yaml=a", "objects.existingConfigMap=b"], "are both set: choose one"),
        ("gateway", &[api], "autoscaling needs api.store=etcd"),
        ("sidecar", &["capacity=5"], "in mode sidecar each pod has its own: set concurrency"),
        ("sidecar", &["sidecar.container=null"], "sidecar.container.image is missing"),
        (
            "gateway",
            &["ports.http=9901"],
            "ports.admin and ports.http are both 9901: only one listener can have a port",
        ),
        ("fleet", &["ports.api=8080"], "ports.api and ports.http are both 8080: only one listener can have a port"),
        (
            "gateway",
            &["podLabels.app\\.kubernetes\\.io/name=a"],
            "podLabels has app.kubernetes.io/name, by which the chart",
        ),
        ("sidecar", &["sidecar.container.name=evenkeel"], "sidecar.container.name is evenkeel, which is the name of"),
        (
            "sidecar",
            &["sidecar.container.ports[0].containerPort=9901"],
            "sidecar.container.ports has 9901, which is ports.admin of the gateway",
        ),
        (
            "sidecar",
            &["sidecar.container.ports[0].containerPort=9000", "sidecar.container.ports[0].name=http"],
            "sidecar.container.ports has the name http, which is the name of a port of the gateway",
        ),
        ("sidecar", &[api, "replicas=1"], "mode sidecar with the API needs api.store=etcd"),
        ("api-embedded", &["replicas=2"], "replicas is 2, but only one pod can open an embedded store"),
        ("api-embedded", &["api.secretName="], "the API needs a Secret with ca.crt, ca.key and admin-token.csv"),
        ("api-etcd", &["serviceMonitor.apiTokenSecretName="], "serviceMonitor.apiTokenSecretName is missing"),
        ("api-etcd", &["capacity=5"], "capacity has no meaning in mode api, which forwards no requests"),
        ("api-etcd", &["api.etcd.passwordSecretName="], "need each other"),
        ("fleet", &["api.etcd.endpoints=null"], "api.etcd.endpoints is empty"),
        ("fleet", &["api.etcd.tls.clientCertificate=true"], "needs api.etcd.tls.secretName"),
        ("gateway", &["fleet.enabled=true"], "fleet.endpoints is empty: name the members of etcd"),
        ("sidecar", &["fleet.enabled=true"], "in mode sidecar there are none"),
        ("shared-seats", &["capacity=null", "concurrency=5"], "fleet.enabled needs capacity instead of concurrency"),
        ("shared-seats", &["preset=kubernetes"], "fleet.enabled needs preset=plain"),
        ("shared-seats", &["fleet.passwordSecretName="], "fleet.user and fleet.passwordSecretName need each other"),
        ("shared-seats", &["fleet.tls.secretName="], "fleet.tls.clientCertificate needs fleet.tls.secretName"),
        ("fleet", &["fleet.enabled=true", "fleet.tls.secretName=a"], "which is empty: set it, or use api.etcd.tls"),
    ];
    for (values, more, message) in cases {
        let error = helm.try_render(values, more).err().unwrap_or_else(|| panic!("{values} with {more:?} is accepted"));
        assert!(error.contains(message), "{values} with {more:?}: {error}");
    }
}

/// A release may have a name that no Service can have.
#[test]
fn names_are_those_that_services_can_have() {
    let Some(helm) = Helm::find() else { return };
    let values = "deploy/helm/evenkeel --values deploy/helm/evenkeel/ci/gateway.yaml";
    for release in ["1shop", "shop.eu"] {
        let error = helm.template(&format!("{release} {values}")).unwrap_err();
        let expected =
            format!("{release}-evenkeel, which is made from the name of the release, cannot be the name of a Service");
        assert!(error.contains(&expected), "{error}");
        helm.template(&format!("{release} {values} --set fullnameOverride=shop")).unwrap();
    }
}

/// A chart may contain this one and let its own users switch it off.
#[test]
fn a_parent_chart_may_have_a_condition() {
    let Some(helm) = Helm::find() else { return };
    let parent = tempfile::tempdir().unwrap();
    let dependency = "dependencies:\n- name: evenkeel\n  version: 0.1.0\n  condition: evenkeel.enabled\n";
    let page = format!("apiVersion: v2\nname: parent\nversion: 1.0.0\n{dependency}");
    fs::write(parent.path().join("Chart.yaml"), page).unwrap();
    fs::create_dir_all(parent.path().join("charts/evenkeel")).unwrap();
    copy(&chart(), &parent.path().join("charts/evenkeel"));
    let values = "--set 'evenkeel.upstreams[0].url=http://a,evenkeel.capacity=120,evenkeel.enabled";
    let render = |is_enabled: bool| helm.template(&format!("shop {} {values}={is_enabled}'", parent.path().display()));
    assert!(render(true).unwrap().contains("kind: Deployment\n"));
    assert_eq!(render(false).unwrap().trim(), "");
}

#[test]
fn lint_is_content() {
    let Some(helm) = Helm::find() else { return };
    for values in VALUES {
        helm.lint(values).unwrap_or_else(|error| panic!("{values}: {error}"));
    }
}

/// A value that is documented in values.yaml.
struct Documented {
    path: String,
    default: String,
    description: String,
}

/// The values with comments directly above them, in order.
fn documented() -> Vec<Documented> {
    let (mut values, mut parents, mut comment) = (Vec::new(), Vec::<String>::new(), Vec::<&str>::new());
    let text = read(chart().join("values.yaml"));
    for line in text.lines() {
        let (depth, line) = ((line.len() - line.trim_start().len()) / 2, line.trim_start());
        if let Some(words) = line.strip_prefix("# ") {
            comment.push(words);
        } else if let Some((key, value)) = line.split_once(':').filter(|_| !line.starts_with('-')) {
            // What is below a documented value is part of its default.
            let is_inside = |one: &Documented| one.default.is_empty() && depth >= one.path.split('.').count();
            if !values.last().is_some_and(is_inside) {
                parents.truncate(depth);
                parents.push(key.to_owned());
                let (path, default) = (parents.join("."), value.trim().to_owned());
                if comment.is_empty() {
                    assert!(default.is_empty(), "values.yaml does not describe {path}");
                } else {
                    values.push(Documented { path, default, description: comment.join(" ") });
                }
            }
            comment.clear();
        } else {
            comment.clear();
        }
    }
    values
}

const TABLE_BEGIN: &str = "<!-- This table is made from values.yaml; see CONTRIBUTING.md. -->\n";
const TABLE_END: &str = "<!-- The end of the table. -->\n";

#[test]
fn the_page_has_all_values() {
    let mut table = "\n| value | meaning | default |\n|---|---|---|\n".to_owned();
    for Documented { path, default, description } in documented() {
        let default = if default.is_empty() { "see values.yaml".to_owned() } else { format!("`{default}`") };
        writeln!(table, "| `{path}` | {} | {default} |", description.trim_end_matches('.')).unwrap();
    }
    table.push('\n');
    let path = chart().join("README.md");
    let page = read(&path);
    let (before, rest) = page.split_once(TABLE_BEGIN).unwrap();
    let (kept, after) = rest.split_once(TABLE_END).unwrap();
    if std::env::var_os("EVENKEEL_UPDATE").is_some() {
        fs::write(path, [before, TABLE_BEGIN, &table, TABLE_END, after].concat()).unwrap();
        return;
    }
    assert!(
        kept == table,
        "the table of values is not up to date; update it with\nEVENKEEL_UPDATE=1 cargo test -p evenkeel-cli --test all charts"
    );
}

/// The paths of all values below this one.
fn paths(value: &Value, prefix: &str, found: &mut BTreeSet<String>) {
    for (key, value) in value.as_object().into_iter().flatten() {
        let path = format!("{prefix}{key}");
        paths(value, &format!("{path}."), found);
        found.insert(path);
    }
}

/// The paths of all values that a schema names.
fn schema_paths(schema: &Value, prefix: &str, found: &mut BTreeSet<String>) {
    for (key, schema) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{prefix}{key}");
        schema_paths(schema, &format!("{path}."), found);
        found.insert(path);
    }
}

#[test]
fn the_schema_names_every_value_and_no_other() {
    let (mut values, mut named) = (BTreeSet::new(), BTreeSet::new());
    let documents = parse_yaml(read(chart().join("values.yaml")).as_bytes()).unwrap();
    paths(&json(&documents[0].root), "", &mut values);
    let schema: Value = serde_json::from_str(&read(chart().join("values.schema.json"))).unwrap();
    schema_paths(&schema, "", &mut named);
    // Those below have fields of Kubernetes, which are Kubernetes' to check; two are for charts around this one.
    values.retain(|path| !path.starts_with("resources."));
    named.retain(|path| {
        let is_elsewhere = |prefix: &&str| path.starts_with(prefix);
        !["enabled", "global"].contains(&path.as_str())
            && !["upstreams.", "resources.", "settings."].iter().any(is_elsewhere)
    });
    assert_eq!(values, named);
}

/// They are for other ports and modes than those that are used.
#[test]
fn what_is_not_used_is_not_refused() {
    let Some(helm) = Helm::find() else { return };
    for (values, more) in [("gateway", "ports.api=8080"), ("api-etcd", "ports.http=8443"), ("gateway", "settings=null")]
    {
        assert!(!helm.render(values, &[more]).objects.is_empty(), "{values} with {more}");
    }
}

#[test]
fn versions_are_those_of_the_binary() {
    let version = env!("CARGO_PKG_VERSION");
    let page = read(chart().join("Chart.yaml"));
    assert!(page.contains(&format!("\nappVersion: {version}\n")), "{page}");
    assert!(page.contains(&format!("\nversion: {version}\n")), "{page}");
    let image = format!("ghcr.io/evenkeel/evenkeel:{version}");
    assert!(read(deploy("sidecar.yaml")).contains(&format!("image: {image}\n")));
    for kustomization in ["base", "components/sidecar"] {
        let page = read(deploy("kustomize").join(kustomization).join("kustomization.yaml"));
        assert!(page.contains(&format!("newTag: {version}\n")), "{page}");
    }
}

/// The commands of the pages work as they are printed, from the root of the repository.
#[test]
fn the_commands_of_the_pages_render() {
    let Some(helm) = Helm::find() else { return };
    let pages = [deploy("../docs/kubernetes.md"), chart().join("README.md")];
    let mut count = 0;
    for page in pages.map(read) {
        // A release publishes the chart under its own version.
        let published = format!("oci://ghcr.io/evenkeel/charts/evenkeel --version {}", env!("CARGO_PKG_VERSION"));
        assert!(page.contains(&published), "no {published}");
        let page = page.replace("\\\n", " ").replace(&published, "deploy/helm/evenkeel");
        for command in page.lines().filter_map(|line| line.strip_prefix("    helm install ")) {
            helm.template(command).unwrap_or_else(|error| panic!("helm install {command}: {error}"));
            count += 1;
        }
    }
    assert!(count >= VALUES.len(), "{count} commands were found");
}

/// helm shows NOTES.txt only after an installation, so a template of a copy shows it.
#[test]
fn the_notes_say_how_to_go_on() {
    let Some(helm) = Helm::find() else { return };
    let folder = copy_of_chart();
    fs::copy(chart().join("templates/NOTES.txt"), folder.path().join("notes.txt")).unwrap();
    let template = "notes: |\n  {{- tpl (.Files.Get \"notes.txt\") . | nindent 2 }}\n";
    fs::write(folder.path().join("templates/shown.yaml"), template).unwrap();
    let notes = |values: &str, more: &[&str]| {
        let rendered = helm.render_chart(folder.path(), values, more).unwrap();
        let notes = rendered.objects.iter().find_map(|object| object["notes"].as_str()).unwrap();
        notes.to_owned()
    };
    for (values, more, parts) in [
        (
            "gateway",
            &["service.port=443"][..],
            &[
                "https://shop-evenkeel.demo.svc. ",
                "up to 20 requests",
                "(120) divided by 6 pods",
                "deployment/shop-evenkeel 9901",
            ][..],
        ),
        ("gateway", &["service.port=80"], &["https://shop-evenkeel.demo.svc:80. "]),
        ("fleet", &["service.port=8080"], &["http://shop-evenkeel.demo.svc:8080. "]),
        ("sidecar", &[], &["http://shop-evenkeel.demo.svc. ", "up to 50 requests", "get secret evenkeel-admin"]),
        ("api-embedded", &[], &["statefulset/shop-evenkeel 9901", "service/shop-evenkeel-api 8443", "DIR/kubeconfig"]),
        ("api-etcd", &[], &["(mode api)", "service/shop-evenkeel-api 8443"]),
    ] {
        let notes = notes(values, more);
        for part in parts {
            assert!(notes.contains(part), "{values}: no {part:?} in\n{notes}");
        }
    }
}
