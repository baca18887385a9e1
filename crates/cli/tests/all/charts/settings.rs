//! The settings, flags and objects that are rendered, by the parsers of Evenkeel itself.

use std::fs;
use std::time::Duration;

use evenkeel_gateway::Config;
use evenkeel_gateway::host::HostLimits;
use serde_json::{Value, json};

use super::rendered::{Helm, Rendered, arguments, list, string};
use crate::child::{run, text};

/// The settings in the `ConfigMap`; the API alone has none.
pub(super) fn settings(rendered: &Rendered) -> Option<Config> {
    let mut mounts = list(&rendered.container()["volumeMounts"]).iter();
    let mount = mounts.find(|mount| mount["mountPath"] == "/etc/evenkeel/settings")?;
    let (file, text) = rendered.files(string(&mount["name"]))[0];
    Some(Config::parse(file, text).unwrap_or_else(|error| panic!("{}: {error}", rendered.name)))
}

fn seconds(value: &Value) -> Duration {
    Duration::from_secs(value.as_u64().unwrap_or_else(|| panic!("no number: {value}")))
}

/// The real binary reads the flags and the settings.
pub(super) fn the_binary_accepts_flags_and_settings(rendered: &Rendered) {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().display();
    let volumes = list(&rendered.container()["volumeMounts"]);
    for mount in volumes {
        for (file, text) in rendered.files(string(&mount["name"])) {
            let place = format!("{at}{}", string(&mount["mountPath"]));
            fs::create_dir_all(&place).unwrap();
            fs::write(format!("{place}/{file}"), text).unwrap();
        }
    }
    let arguments: Vec<String> =
        arguments(rendered.container()).iter().map(|one| one.replace("=/etc/", &format!("={at}/etc/"))).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).chain(["--print-config"]).collect();
    let output = run(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}: {}", rendered.name, text(&output.stderr));
}

pub(super) fn the_objects_pass_the_strict_check(rendered: &Rendered) {
    let mounts = list(&rendered.container()["volumeMounts"]).iter();
    let Some(mount) = mounts.into_iter().find(|mount| mount["mountPath"] == "/etc/evenkeel/objects") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    for (file, text) in rendered.files(string(&mount["name"])) {
        fs::write(folder.path().join(file), text).unwrap();
    }
    let seats = settings(rendered).unwrap().concurrency().to_string();
    let path = folder.path().to_str().unwrap();
    let output = run(&["check", "--strict", "--preset", "plain", "--borrowing", "immediate", "--seats", &seats, path]);
    assert_eq!(output.status.code(), Some(0), "{}:\n{}", rendered.name, text(&output.stdout));
}

pub(super) fn kubernetes_waits_until_a_pod_has_drained(rendered: &Rendered) {
    let (name, pod) = (&rendered.name, &rendered.template()["spec"]);
    let killed = seconds(&pod["terminationGracePeriodSeconds"]);
    let Some(config) = settings(rendered) else {
        // The API alone closes its listener at once, so its container sleeps before it is told to stop.
        let stays = seconds(&rendered.container()["lifecycle"]["preStop"]["sleep"]["seconds"]);
        assert!(stays >= Duration::from_secs(5), "{name}");
        assert!(stays + 2 * HostLimits::default().drain < killed, "{name}: killed before it has drained");
        return;
    };
    let drained = config.timeouts.drain_notice + config.timeouts.drain;
    assert!(drained < killed, "{name}: killed before it has drained");
    // Long enough for the endpoints to be updated, and for the readiness probe to fail.
    assert!(config.timeouts.drain_notice >= Duration::from_secs(5), "{name}");
    if let Some(service) = list(&pod["containers"]).iter().find(|container| container["name"] == "service") {
        let stays = seconds(&service["lifecycle"]["preStop"]["sleep"]["seconds"]);
        assert!(drained < stays, "{name}: the service ends before the gateway has drained");
        assert!(stays < killed, "{name}: the service is killed before it has stopped");
    }
}

#[test]
fn kubernetes_waits_as_long_as_the_drain_may_take() {
    let Some(helm) = Helm::find() else { return };
    for values in ["gateway", "sidecar"] {
        let long = helm.render(values, &["drain.seconds=600", "drain.noticeSeconds=20"]);
        assert!(seconds(&long.template()["spec"]["terminationGracePeriodSeconds"]) > Duration::from_secs(620));
        let config = settings(&long).unwrap();
        assert_eq!((config.timeouts.drain.as_secs(), config.timeouts.drain_notice.as_secs()), (600, 20));
    }
}

/// AL-3
#[test]
fn a_pod_may_find_out_how_many_requests_it_forwards() {
    let Some(helm) = Helm::find() else { return };
    for (values, more, expected) in [
        ("sidecar", &["concurrency=null"][..], "auto"),
        ("sidecar", &["concurrency=auto:10..400"], "auto:10..400"),
        ("sidecar", &["concurrency=7"], "7"),
        ("gateway", &["capacity=null", "concurrency=auto"], "auto"),
        ("gateway", &[], "20"),
    ] {
        let rendered = helm.render(values, more);
        assert_eq!(settings(&rendered).unwrap().concurrency().to_string(), expected, "{values} {more:?}");
        the_binary_accepts_flags_and_settings(&rendered);
    }
    // A sidecar of a Kubernetes API has no such default.
    let error = helm.try_render("sidecar", &["concurrency=null", "preset=kubernetes"]).unwrap_err();
    assert!(error.contains("how much the service can process is missing"), "{error}");
}

#[test]
fn the_api_alone_stays_until_it_is_out_of_the_endpoints() {
    let Some(helm) = Helm::find() else { return };
    let long = helm.render("api-etcd", &["drain.noticeSeconds=90"]);
    assert_eq!(long.container()["lifecycle"], json!({"preStop": {"sleep": {"seconds": 90}}}));
    kubernetes_waits_until_a_pod_has_drained(&long);
    for none in [
        // Kubernetes refuses a sleep of no seconds.
        helm.render("api-etcd", &["drain.noticeSeconds=0"]),
        // The next pod starts when this one has ended, so a sleep would only make that longer.
        helm.render("api-etcd", &["api.store=embedded", "replicas=1"]),
        // Gateways keep their listeners open by themselves.
        helm.render("fleet", &[]),
        // Older versions of Kubernetes do not know it.
        helm.render_for("1.29", "api-etcd", &[]).unwrap(),
    ] {
        assert_eq!(none.container()["lifecycle"], Value::Null, "{}", none.name);
    }
}

#[test]
fn a_service_has_one_pre_stop_and_its_own_comes_first() {
    let Some(helm) = Helm::find() else { return };
    let lifecycle = |rendered: &Rendered| {
        let mut containers = list(&rendered.template()["spec"]["containers"]).iter();
        containers.find(|container| container["name"] == "service").unwrap()["lifecycle"].clone()
    };
    let own = ["sidecar.container.lifecycle.preStop.exec.command={/stop}"];
    let expected = json!({"preStop": {"exec": {"command": ["/stop"]}}});
    assert_eq!(lifecycle(&helm.render("sidecar", &own)), expected);
    assert_eq!(lifecycle(&helm.render_for("1.29", "sidecar", &own).unwrap()), expected);
    let other = ["sidecar.container.lifecycle.postStart.exec.command={/start}"];
    let expected = json!({"postStart": {"exec": {"command": ["/start"]}}, "preStop": {"sleep": {"seconds": 40}}});
    assert_eq!(lifecycle(&helm.render("sidecar", &other)), expected);
    for more in [&[][..], &other] {
        let error = helm.render_for("1.29", "sidecar", more).unwrap_err();
        assert!(error.contains("Kubernetes v1.29.0 has no preStop.sleep: set"), "{more:?}: {error}");
    }
}

pub(super) fn ports_are_those_of_the_settings_and_files_are_mounted(rendered: &Rendered) {
    let container = rendered.container();
    let ports: Vec<u64> =
        list(&container["ports"]).iter().map(|port| port["containerPort"].as_u64().unwrap()).collect();
    let has_port = |address: &str| {
        let (_, port) = address.rsplit_once(':').unwrap();
        assert!(ports.contains(&port.parse().unwrap()), "{}: {address}", rendered.name);
        // Loopback would be for this pod alone.
        assert!(address.starts_with("0.0.0.0:"), "{}: {address}", rendered.name);
    };
    let mounts: Vec<&str> = list(&container["volumeMounts"]).iter().map(|mount| string(&mount["mountPath"])).collect();
    let is_mounted = |path: &str| mounts.iter().any(|mount| path == *mount || path.starts_with(&format!("{mount}/")));
    for argument in arguments(container) {
        let Some((flag, value)) = argument.split_once('=') else { continue };
        if value.starts_with('/') {
            assert!(is_mounted(value), "{}: nothing is mounted at {value} ({flag})", rendered.name);
        }
        if flag == "--api-listen" {
            has_port(value);
        }
    }
    let Some(config) = settings(rendered) else { return };
    has_port(&config.listen[0].address.to_string());
    has_port(&config.admin.address.clone().unwrap().to_string());
    for (_, text) in rendered.files("settings") {
        for path in text.split_whitespace().filter(|word| word.starts_with("/etc/")) {
            assert!(is_mounted(path), "{}: nothing is mounted at {path}", rendered.name);
        }
    }
}

#[test]
fn addresses_of_either_version_are_accepted() {
    let Some(helm) = Helm::find() else { return };
    for (address, expected) in [("::", "[::]"), ("[::]", "[::]"), ("0.0.0.0", "0.0.0.0"), ("fd00::1", "[fd00::1]")] {
        let rendered = helm.render("fleet", &[&format!("listenAddress={address}")]);
        let config = settings(&rendered).unwrap();
        assert_eq!(config.listen[0].address.to_string(), format!("{expected}:8080"));
        assert_eq!(config.admin.address.as_ref().unwrap().to_string(), format!("{expected}:9901"));
        let flag = format!("--api-listen={expected}:8443");
        assert!(arguments(rendered.container()).contains(&&*flag), "{flag}");
        the_binary_accepts_flags_and_settings(&rendered);
    }
}

/// Other settings take effect without a restart, and must not cause one.
#[test]
fn only_settings_that_need_a_restart_restart_the_pods() {
    let Some(helm) = Helm::find() else { return };
    let template = |more: &[&str]| helm.render("gateway", more).template().clone();
    let now = template(&[]);
    let objects = "objects.files.own\\.yaml=# nothing yet";
    for at_once in ["settings.timeouts.queue=3s", "capacity=60", "upstreams[0].url=http://other:80", objects] {
        assert_eq!(template(&[at_once]), now, "{at_once}");
    }
    for restart in ["settings.workers=3", "preset=kubernetes", "settings.log.format=text", "settings.admin.hosts[0]=a"]
    {
        assert_ne!(template(&[restart]), now, "{restart}");
    }
}

#[test]
fn settings_and_objects_of_users_arrive_unchanged() {
    let Some(helm) = Helm::find() else { return };
    let more = ["settings.limits.bufferBytes=1073741824", "settings.log.access=json", "settings.timeouts.total=1m30s"];
    let config = settings(&helm.render("gateway", &more)).unwrap();
    assert_eq!((config.limits.buffer_bytes, config.timeouts.total), (1_073_741_824, Duration::from_secs(90)));
    assert_eq!(config.identity.sources.len(), 2);
    let own = helm.render("fleet", &["objects.files.own\\.yaml=  kind: FlowSchema # one: two"]);
    assert_eq!(own.files("objects"), [("own.yaml", "  kind: FlowSchema # one: two")]);
    assert!(arguments(own.container()).contains(&"--objects=/etc/evenkeel/objects"));
    // With the API, the objects are the API's, unless there are files of them.
    assert!(!arguments(helm.render("fleet", &[]).container()).iter().any(|flag| flag.starts_with("--objects")));
}

/// EP-7: with `extProc`, Envoy reaches the gateway by its Service, and a gateway without upstreams has no port for clients.
#[test]
fn ep_7_envoy_may_ask_the_gateway_of_the_chart() {
    let Some(helm) = Helm::find() else { return };
    let envoy = "networkPolicy.extProc[0].namespaceSelector.matchLabels.envoy=yes";
    let ports_of = |rendered: &Rendered| {
        let services = rendered.of_kind("Service").flat_map(|service| list(&service["spec"]["ports"]));
        services.map(|port| string(&port["name"]).to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(ports_of(&helm.render("gateway", &[])), ["https", "admin"]);
    let both = helm.render("gateway", &["extProc.enabled=true", envoy, "settings.extProc.statuses=true"]);
    assert_eq!(ports_of(&both), ["https", "grpc-ext-proc", "admin"]);
    let config = settings(&both).unwrap().ext_proc.unwrap();
    assert_eq!((config.address, config.statuses), ("0.0.0.0:9902".parse().unwrap(), true));
    let policy = both.of_kind("NetworkPolicy").next().unwrap();
    let admits = |rule: &Value| list(&rule["ports"]).iter().any(|port| port["port"] == "grpc-ext-proc");
    assert!(list(&policy["spec"]["ingress"]).iter().any(admits));

    let alone = helm.render("gateway", &["extProc.enabled=true", "upstreams=null"]);
    assert_eq!(ports_of(&alone), ["grpc-ext-proc", "admin"]);
    let config = settings(&alone).unwrap();
    assert!(config.upstreams.is_empty() && config.ext_proc.is_some());
    let fault =
        helm.try_render("gateway", &["extProc.enabled=true", "settings.extProc.address=0.0.0.0:1"]).unwrap_err();
    assert!(fault.contains("use extProc.enabled and ports.extProc"), "{fault}");
}
