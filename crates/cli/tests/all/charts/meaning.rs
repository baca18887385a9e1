//! What no schema knows: things that refer to each other exist and fit together, and nothing runs with more rights than it
//! needs.

use serde_json::Value;

use super::rendered::{Helm, Rendered, VALUES, arguments, list, string};

/// Secrets that the user makes; the pages say how.
const SECRETS_OF_USERS: [&str; 9] = [
    "etcd-client",
    "etcd-password",
    "evenkeel-admin",
    "evenkeel-api",
    "evenkeel-api-tokens",
    "evenkeel-monitoring",
    "orders-keys",
    "orders-tls",
    "registry",
];

/// Whether all of the wanted labels are there.
fn has_labels(wanted: &Value, labels: &Value) -> bool {
    let wanted = wanted.as_object().unwrap_or_else(|| panic!("no labels: {wanted}"));
    !wanted.is_empty() && wanted.iter().all(|(key, value)| labels[key] == *value)
}

/// The specifications of all pods: those of the workload, and of `helm test`.
fn pods(rendered: &Rendered) -> Vec<&Value> {
    let tests = rendered.of_kind("Pod").map(|pod| &pod["spec"]);
    std::iter::once(&rendered.template()["spec"]).chain(tests).collect()
}

/// The containers that are ours: the user's service in a sidecar pod is the user's.
fn containers(rendered: &Rendered) -> Vec<&Value> {
    let containers = pods(rendered).into_iter().flat_map(|pod| list(&pod["containers"]));
    containers.filter(|container| container["name"] != "service").collect()
}

fn port_names(container: &Value) -> Vec<&str> {
    list(&container["ports"]).iter().map(|port| string(&port["name"])).collect()
}

pub(super) fn no_container_runs_as_root_or_with_more_rights_than_it_needs(rendered: &Rendered) {
    for pod in pods(rendered) {
        assert_eq!(pod["automountServiceAccountToken"], false, "{}", rendered.name);
    }
    for container in containers(rendered) {
        let security = &container["securityContext"];
        let name = format!("{} {}", rendered.name, container["name"]);
        assert_eq!(security["runAsNonRoot"], true, "{name}");
        assert!(security["runAsUser"].as_u64().is_some_and(|user| user > 0), "{name}");
        assert_eq!(security["readOnlyRootFilesystem"], true, "{name}");
        assert_eq!(security["allowPrivilegeEscalation"], false, "{name}");
        assert_eq!(security["capabilities"], serde_json::json!({"drop": ["ALL"]}), "{name}");
    }
    for pod in pods(rendered) {
        let confined = |security: &Value| security["seccompProfile"]["type"] == "RuntimeDefault";
        let ours = list(&pod["containers"]).iter().filter(|container| container["name"] != "service");
        let all = ours.clone().count() > 0 && ours.clone().all(|one| confined(&one["securityContext"]));
        assert!(confined(&pod["securityContext"]) || all, "{}", rendered.name);
    }
}

pub(super) fn every_container_has_requests_and_a_memory_limit_and_evenkeel_has_probes(rendered: &Rendered) {
    for container in containers(rendered) {
        let resources = &container["resources"];
        for wanted in ["/requests/cpu", "/requests/memory", "/limits/memory"] {
            assert!(resources.pointer(wanted).is_some(), "{} {wanted}", rendered.name);
        }
        // A limit of processor time delays requests.
        assert!(resources.pointer("/limits/cpu").is_none(), "{}", rendered.name);
    }
    let container = rendered.container();
    for (probe, path) in [("livenessProbe", "/livez"), ("readinessProbe", "/readyz")] {
        let asked = &container[probe]["httpGet"];
        assert_eq!(asked["path"], path, "{}", rendered.name);
        assert!(port_names(container).contains(&string(&asked["port"])), "{}", rendered.name);
        // The API is always encrypted, and the admin endpoint never.
        let scheme = if string(&asked["port"]) == "api" { Value::from("HTTPS") } else { Value::Null };
        assert_eq!(asked["scheme"], scheme, "{}", rendered.name);
    }
    // A gateway that shuts down is out of the endpoints before it closes its listeners.
    if !arguments(container).contains(&"--api-only") {
        let probe = &container["readinessProbe"];
        let seconds = probe["periodSeconds"].as_u64().unwrap() * probe["failureThreshold"].as_u64().unwrap();
        assert!(seconds < 5, "{}", rendered.name);
    }
}

pub(super) fn selectors_match_the_pods_and_only_those(rendered: &Rendered) {
    let (workload, labels) = (rendered.workload(), &rendered.template()["metadata"]["labels"]);
    let name = &rendered.name;
    assert!(has_labels(&workload["spec"]["selector"]["matchLabels"], labels), "{name}");
    let services = rendered.of_kind("Service").map(|service| &service["spec"]["selector"]);
    let budgets = rendered.of_kind("PodDisruptionBudget").map(|budget| &budget["spec"]["selector"]["matchLabels"]);
    let policies = rendered.of_kind("NetworkPolicy").map(|policy| &policy["spec"]["podSelector"]["matchLabels"]);
    let constraints = list(&rendered.template()["spec"]["topologySpreadConstraints"]).iter();
    let spread = constraints.map(|constraint| &constraint["labelSelector"]["matchLabels"]);
    let selectors: Vec<_> = services.chain(budgets).chain(policies).chain(spread).collect();
    assert!(!selectors.is_empty(), "{name}");
    for selector in selectors {
        assert!(has_labels(selector, labels), "{name}: {selector}");
        for test in rendered.of_kind("Pod") {
            assert!(!has_labels(selector, &test["metadata"]["labels"]), "{name}: {selector}");
        }
    }
    for monitor in rendered.of_kind("ServiceMonitor") {
        let selector = &monitor["spec"]["selector"]["matchLabels"];
        let chosen: Vec<_> =
            rendered.of_kind("Service").filter(|one| has_labels(selector, &one["metadata"]["labels"])).collect();
        assert_eq!(chosen.len(), 1, "{name}: each pod is scraped once");
        let ports: Vec<_> = list(&chosen[0]["spec"]["ports"]).iter().map(|port| &port["name"]).collect();
        assert_eq!(ports, [&monitor["spec"]["endpoints"][0]["port"]], "{name}");
    }
    for scaler in rendered.of_kind("HorizontalPodAutoscaler") {
        let target = &scaler["spec"]["scaleTargetRef"];
        assert_eq!((&target["kind"], &target["name"]), (&workload["kind"], &workload["metadata"]["name"]), "{name}");
        // Otherwise each upgrade would undo what the scaler did.
        assert!(workload["spec"].get("replicas").is_none(), "{name}");
    }
}

pub(super) fn ports_that_are_referred_to_exist(rendered: &Rendered) {
    let ports = port_names(rendered.container());
    let targets = rendered.of_kind("Service").flat_map(|one| list(&one["spec"]["ports"])).map(|one| &one["targetPort"]);
    let rules = rendered.of_kind("NetworkPolicy").flat_map(|policy| list(&policy["spec"]["ingress"]));
    let admitted = rules.flat_map(|rule| list(&rule["ports"])).map(|port| &port["port"]);
    for port in targets.chain(admitted) {
        assert!(ports.contains(&string(port)), "{}: {port} is none of {ports:?}", rendered.name);
    }
}

/// Whether a pod with these labels, in this namespace or in another one, may connect to the port.
fn admits(policy: &Value, port: &str, labels: &Value, is_in_namespace: bool) -> bool {
    let is_selected = |pods: &Value| match pods.get("matchExpressions") {
        Some(expressions) => list(expressions).iter().all(|one| {
            assert_eq!(one["operator"], "In");
            list(&one["values"]).contains(&labels[string(&one["key"])])
        }),
        None => has_labels(&pods["matchLabels"], labels),
    };
    let is_peer = |peer: &Value| {
        let namespaces = peer.get("namespaceSelector");
        let is_near = namespaces.map_or(is_in_namespace, |selector| *selector == serde_json::json!({}));
        is_near && peer.get("podSelector").is_none_or(is_selected)
    };
    list(&policy["spec"]["ingress"]).iter().any(|rule| {
        let has_port = list(&rule["ports"]).iter().any(|one| one["port"] == port);
        has_port && (rule.get("from").is_none() || list(&rule["from"]).iter().any(is_peer))
    })
}

pub(super) fn the_network_policy_admits_whom_it_has_to_and_nobody_else(rendered: &Rendered) {
    let anybody = serde_json::json!({"app": "anybody"});
    let prometheus = serde_json::json!({"app.kubernetes.io/name": "prometheus"});
    let name = &rendered.name;
    for policy in rendered.of_kind("NetworkPolicy") {
        for port in port_names(rendered.container()) {
            let is_open = admits(policy, port, &anybody, false);
            // In the pods of a service, Kustomize's port has another name. The values of the gateway name the clients.
            let is_for_all = ["http", "evenkeel"].contains(&port) && name != "helm gateway";
            assert_eq!(is_open, is_for_all, "{name}: {port} for everyone");
        }
        for monitor in rendered.of_kind("ServiceMonitor") {
            let port = string(&monitor["spec"]["endpoints"][0]["port"]);
            assert!(admits(policy, port, &prometheus, false), "{name}: {port} for Prometheus");
        }
        for test in rendered.of_kind("Pod") {
            let port = if port_names(rendered.container()).contains(&"admin") { "admin" } else { "api" };
            assert!(admits(policy, port, &test["metadata"]["labels"], true), "{name}: {port} for the test");
        }
    }
}

#[test]
fn the_network_policy_is_a_choice_and_may_limit_egress() {
    let Some(helm) = Helm::find() else { return };
    let count = |rendered: &Rendered| rendered.of_kind("NetworkPolicy").count();
    assert_eq!(count(&helm.render("gateway", &[])), 1);
    assert_eq!(count(&helm.render("gateway", &["networkPolicy.enabled=false"])), 0);
    let limited = helm.render("fleet", &["networkPolicy.egress[0].ports[0].port=53"]);
    let policy = &limited.of_kind("NetworkPolicy").next().unwrap()["spec"];
    assert_eq!(policy["policyTypes"], serde_json::json!(["Ingress", "Egress"]));
    assert_eq!(policy["egress"][0]["ports"][0]["port"], 53);
}

/// Nobody else could connect to them: the policy selects the whole pod.
#[test]
fn other_ports_of_a_service_need_rules_of_their_own() {
    let Some(helm) = Helm::find() else { return };
    let (anybody, port) = (serde_json::json!({"app": "anybody"}), 9100);
    let admitted = |more: &[&str]| {
        let rendered = helm.render("sidecar", more);
        let policy = rendered.of_kind("NetworkPolicy").next().unwrap().clone();
        let rules = list(&policy["spec"]["ingress"]).iter();
        let is_open = rules.filter(|rule| rule.get("from").is_none()).flat_map(|rule| list(&rule["ports"]));
        let is_open = is_open.map(|one| one["port"].clone()).any(|one| one == port);
        // The rules of the chart stay.
        assert!(admits(&policy, "http", &anybody, false) && !admits(&policy, "admin", &anybody, false));
        is_open
    };
    let ports = "sidecar.container.ports[0].containerPort=9100";
    assert!(!admitted(&[ports]), "a port that clients should not use may be among them");
    assert!(admitted(&[ports, "networkPolicy.extraIngress[0].ports[0].port=9100"]));
}

/// Its metrics are on its own port, behind the same authentication as everything else.
#[test]
fn the_api_alone_is_scraped_on_its_own_port() {
    let Some(helm) = Helm::find() else { return };
    for more in [&[][..], &["api.store=embedded", "replicas=1"]] {
        let rendered =
            helm.render("api-etcd", &[more, &["networkPolicy.admin[0].podSelector.matchLabels.a=b"]].concat());
        let endpoint = &rendered.of_kind("ServiceMonitor").next().unwrap()["spec"]["endpoints"][0];
        assert_eq!((&endpoint["port"], &endpoint["scheme"]), (&Value::from("api"), &Value::from("https")));
        assert_eq!(endpoint["authorization"]["credentials"]["name"], "evenkeel-monitoring");
        let volumes = list(&rendered.template()["spec"]["volumes"]).iter();
        let authority = volumes.into_iter().find(|volume| volume["name"] == "api-authority").unwrap();
        assert_eq!(endpoint["tlsConfig"]["ca"]["secret"]["name"], authority["secret"]["secretName"]);
        let policy = rendered.of_kind("NetworkPolicy").next().unwrap();
        assert!(admits(policy, "api", &serde_json::json!({"app.kubernetes.io/name": "prometheus"}), false));
        // They are for an admin endpoint, which the API alone does not have.
        assert!(!admits(policy, "api", &serde_json::json!({"a": "b"}), true));
        assert!(admits(policy, "api", &serde_json::json!({"app.kubernetes.io/name": "deployer"}), true));
    }
}

pub(super) fn a_budget_lets_one_pod_go_and_a_single_pod_has_none(rendered: &Rendered) {
    for budget in rendered.of_kind("PodDisruptionBudget") {
        assert_eq!(budget["spec"]["maxUnavailable"], 1, "{}", rendered.name);
        assert!(budget["spec"].get("minAvailable").is_none(), "{}", rendered.name);
    }
}

#[test]
fn a_single_pod_has_no_budget() {
    let Some(helm) = Helm::find() else { return };
    let count = |values: &str, more: &[&str]| helm.render(values, more).of_kind("PodDisruptionBudget").count();
    assert_eq!([count("fleet", &[]), count("fleet", &["replicas=2"]), count("fleet", &["replicas=1"])], [1, 1, 0]);
    assert_eq!([count("gateway", &[]), count("gateway", &["autoscaling.minReplicas=1"])], [1, 0]);
    assert_eq!(count("fleet", &["podDisruptionBudget.enabled=false"]), 0);
}

pub(super) fn volumes_config_maps_secrets_and_accounts_exist(rendered: &Rendered) {
    let (name, pod) = (&rendered.name, &rendered.template()["spec"]);
    let claims = list(&rendered.workload()["spec"]["volumeClaimTemplates"]).iter();
    let claims = claims.map(|claim| &claim["metadata"]["name"]);
    let volumes: Vec<_> = list(&pod["volumes"]).iter().map(|volume| &volume["name"]).chain(claims).collect();
    let mounts: Vec<_> = list(&rendered.container()["volumeMounts"]).iter().collect();
    for mount in &mounts {
        assert!(volumes.contains(&&mount["name"]), "{name}: no volume {}", mount["name"]);
    }
    for volume in &volumes {
        assert!(mounts.iter().any(|mount| mount["name"] == **volume), "{name}: nobody mounts {volume}");
    }
    let there = |kind: &str, wanted: &str| rendered.of_kind(kind).any(|one| one["metadata"]["name"] == wanted);
    for volume in list(&pod["volumes"]) {
        for (kind, at) in [
            ("ConfigMap", "/configMap/name"),
            ("PersistentVolumeClaim", "/persistentVolumeClaim/claimName"),
            ("Secret", "/secret/secretName"),
        ] {
            let Some(wanted) = volume.pointer(at).map(string) else { continue };
            let is_of_user = kind == "Secret" && SECRETS_OF_USERS.contains(&wanted);
            assert!(there(kind, wanted) || is_of_user, "{name}: no {kind} {wanted}");
        }
    }
    for variable in list(&rendered.container()["env"]) {
        let secret = string(&variable["valueFrom"]["secretKeyRef"]["name"]);
        assert!(there("Secret", secret) || SECRETS_OF_USERS.contains(&secret), "{name}: no Secret {secret}");
    }
    if let Some(account) = pod.get("serviceAccountName") {
        assert!(there("ServiceAccount", string(account)), "{name}: no ServiceAccount {account}");
    }
    if let Some(service) = rendered.workload()["spec"].get("serviceName") {
        assert!(there("Service", string(service)), "{name}: no Service {service}");
    }
}

/// Prometheus sends the token that the gateway expects.
pub(super) fn prometheus_has_the_token_of_the_admin_endpoint(rendered: &Rendered) {
    let environment = list(&rendered.container()["env"]).iter();
    let token = environment.into_iter().find(|variable| variable["name"] == "EVENKEEL_ADMIN_TOKEN");
    for monitor in rendered.of_kind("ServiceMonitor") {
        let endpoint = &monitor["spec"]["endpoints"][0];
        match token {
            Some(token) => {
                assert_eq!(endpoint["authorization"]["credentials"], token["valueFrom"]["secretKeyRef"]);
                assert!(endpoint.get("scheme").is_none(), "the admin endpoint has no TLS");
            }
            None => assert_eq!(endpoint["scheme"], "https", "{}", rendered.name),
        }
    }
}

/// Clients are distinguished by their addresses, which a load balancer hides unless it is told not to.
#[test]
fn a_load_balancer_keeps_the_addresses_of_clients() {
    let Some(helm) = Helm::find() else { return };
    for (more, expected) in [
        (vec![], Value::Null),
        (vec!["service.type=LoadBalancer"], Value::from("Local")),
        (vec!["service.type=NodePort", "service.externalTrafficPolicy=Cluster"], Value::from("Cluster")),
    ] {
        let rendered = helm.render("gateway", &more);
        let service =
            rendered.of_kind("Service").find(|service| service["metadata"]["name"] == "shop-evenkeel").unwrap();
        assert_eq!(service["spec"]["externalTrafficPolicy"], expected, "{more:?}");
    }
}

#[test]
fn a_platform_may_choose_the_user() {
    let Some(helm) = Helm::find() else { return };
    for values in VALUES {
        let rendered = helm.render(values, &["runAsUser=null"]);
        assert!(!rendered.text.contains("65532"), "{values}");
        assert_eq!(rendered.container()["securityContext"]["runAsNonRoot"], true, "{values}");
        assert!(rendered.template()["spec"]["securityContext"].get("fsGroup").is_none(), "{values}");
        let other = helm.render(values, &["runAsUser=1000"]);
        assert_eq!(other.container()["securityContext"]["runAsUser"], 1000, "{values}");
        assert_eq!(other.template()["spec"]["securityContext"]["fsGroup"], 1000, "{values}");
    }
}

/// With one pod more than usual, as during an update, the service still gets no more than it can process.
#[test]
fn capacity_is_divided_among_all_pods_that_may_run() {
    let Some(helm) = Helm::find() else { return };
    for (values, more, expected) in [
        ("gateway", vec![], 120 / (5 + 1)),
        ("gateway", vec!["autoscaling.enabled=false"], 120 / (3 + 1)),
        ("fleet", vec![], 300 / (5 + 1)),
        // The new pod starts when the old one has ended.
        ("api-embedded", vec![], 40),
        ("sidecar", vec![], 50),
    ] {
        let rendered = helm.render(values, &more);
        let settings = rendered.files("settings")[0].1;
        assert!(settings.contains(&format!("\nconcurrency: {expected}\n")), "{values} {more:?}:\n{settings}");
    }
}

/// FL-13: pods that share their seats find out how many there should be, if nobody says it.
#[test]
fn the_pods_of_a_fleet_find_out_what_nobody_says() {
    let Some(helm) = Helm::find() else { return };
    for (more, expected) in [
        (vec![], "600"),
        (vec!["capacity=null"], "auto"),
        (vec!["capacity=null", "concurrency=auto:10..400"], "auto:10..400"),
    ] {
        let rendered = helm.render("shared-seats", &more);
        let settings = rendered.files("settings")[0].1;
        let concurrency = settings.lines().find_map(|line| line.strip_prefix("concurrency: "));
        assert_eq!(concurrency.map(|value| value.trim_matches(['"', '\''])), Some(expected), "{more:?}:\n{settings}");
    }
}
