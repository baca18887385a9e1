//! EP-7: the files for control planes. What they say of the filter is what a real Envoy runs with, in the other tests.

use evenkeel_gateway::config::Config;
use serde_json::{Value, json};

use super::envoy::SETTINGS;

const ISTIO: &str = include_str!("../../../../../deploy/envoy/istio.yaml");
const ENVOY_GATEWAY: &str = include_str!("../../../../../deploy/envoy/envoy-gateway.yaml");

/// The objects of a file.
fn objects(text: &str) -> Vec<Value> {
    text.split("\n---\n").map(|text| serde_saphyr::from_str(text).unwrap()).collect()
}

fn find<'a>(objects: &'a [Value], kind: &str) -> &'a Value {
    objects.iter().find(|object| object["kind"] == kind).unwrap_or_else(|| panic!("no {kind}"))
}

/// The filter of the file that a real Envoy runs with.
fn filter_of_envoy() -> Value {
    let settings: Value = serde_saphyr::from_str(SETTINGS).unwrap();
    let manager = &settings["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0];
    manager["typed_config"]["http_filters"][0].clone()
}

#[test]
fn ep_7_the_filter_for_istio_is_that_of_envoy() {
    let objects = objects(ISTIO);
    let patch = &find(&objects, "EnvoyFilter")["spec"]["configPatches"][0]["patch"];
    let mut filter = patch["value"].clone();
    let cluster = filter["typed_config"]["grpc_service"]["envoy_grpc"]["cluster_name"].take();
    assert_eq!(cluster, "outbound|9902||evenkeel.shop.svc.cluster.local");
    filter["typed_config"]["grpc_service"]["envoy_grpc"]["cluster_name"] = "evenkeel".into();
    assert_eq!(filter, filter_of_envoy());
    let host = &find(&objects, "DestinationRule")["spec"]["host"];
    assert_eq!(cluster.as_str().unwrap().rsplit('|').next(), host.as_str());
}

/// Envoy Gateway makes the filter of its own fields. What it cannot say, the gateway asks for
/// (`the_gateway_asks_for_the_mode_that_holds_a_seat`).
#[test]
fn ep_7_the_policy_for_envoy_gateway_says_the_same() {
    let objects = objects(ENVOY_GATEWAY);
    let policy = &find(&objects, "EnvoyExtensionPolicy")["spec"]["extProc"][0];
    let filter = &filter_of_envoy()["typed_config"];
    let of_envoy = json!({
        "backendRefs": [{"name": "evenkeel", "port": 9902}],
        "backendSettings": {"circuitBreaker": {"maxParallelRequests": 100_000, "maxPendingRequests": 100_000}},
        "messageTimeout": filter["message_timeout"],
        "failOpen": filter["failure_mode_allow"],
        "processingMode": {
            "allowModeOverride": filter["allow_mode_override"],
            "request": {"attributes": filter["request_attributes"]},
        },
    });
    assert_eq!(*policy, of_envoy);
}

#[test]
fn ep_7_the_service_leads_to_the_gateway() {
    for (text, protocol) in [(ISTIO, "grpc"), (ENVOY_GATEWAY, "kubernetes.io/h2c")] {
        let objects = objects(text);
        let settings = find(&objects, "ConfigMap")["data"]["evenkeel.yaml"].as_str().unwrap();
        let settings = Config::parse("evenkeel.yaml", settings).unwrap();
        assert_eq!(settings.ext_proc.unwrap().address, "0.0.0.0:9902".parse().unwrap());
        let port = &find(&objects, "Service")["spec"]["ports"][0];
        assert_eq!((&port["port"], &port["appProtocol"]), (&9902.into(), &protocol.into()));
        let container = &find(&objects, "Deployment")["spec"]["template"]["spec"]["containers"][0];
        let named = &container["ports"][0];
        assert_eq!((&named["containerPort"], &named["name"]), (&9902.into(), &port["targetPort"]));
        let admitted = &find(&objects, "NetworkPolicy")["spec"]["ingress"][0]["ports"][0]["port"];
        assert_eq!(*admitted, port["targetPort"]);
    }
}
