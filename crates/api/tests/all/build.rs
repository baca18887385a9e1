//! What the builders build is what a server would store.

use evenkeel_api::v1beta3::PRESERVE_ZERO_ANNOTATION;
use evenkeel_api::{build::generate_name, v1, v1beta1, v1beta2, v1beta3};
use serde_json::{Value, json};

fn written(object: &impl serde::Serialize) -> Value {
    serde_json::to_value(object).unwrap()
}

#[test]
fn a_flow_schema_reads_like_its_manifest() {
    let schema = v1::FlowSchema::builder("batch")
        .priority_level("workload-low")
        .matching_precedence(500)
        .by_user()
        .label("team", "data")
        .annotation("example.com/why", "nightly jobs")
        .rule(|r| r.user("alice").resources(["pods"]).verbs(["get"]))
        .rule(|r| {
            r.group("system:authenticated")
                .service_account("jobs", "*")
                .resources(["nodes"])
                .api_groups([""])
                .cluster_scope()
                .verbs(["list", "watch"])
                .resources(vec!["leases".to_owned()])
                .namespaces(["jobs"])
                .verbs(["*"])
                .non_resource_urls(["/healthz"])
                .verbs(["get"])
        })
        .build();
    assert_eq!(
        written(&schema),
        json!({
            "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
            "kind": "FlowSchema",
            "metadata": {
                "name": "batch",
                "labels": {"team": "data"},
                "annotations": {"example.com/why": "nightly jobs"},
            },
            "spec": {
                "priorityLevelConfiguration": {"name": "workload-low"},
                "matchingPrecedence": 500,
                "distinguisherMethod": {"type": "ByUser"},
                "rules": [
                    {
                        "subjects": [{"kind": "User", "user": {"name": "alice"}}],
                        "resourceRules": [{
                            "verbs": ["get"], "apiGroups": ["*"], "resources": ["pods"],
                            "clusterScope": true, "namespaces": ["*"],
                        }],
                    },
                    {
                        "subjects": [
                            {"kind": "Group", "group": {"name": "system:authenticated"}},
                            {"kind": "ServiceAccount", "serviceAccount": {"namespace": "jobs", "name": "*"}},
                        ],
                        "resourceRules": [
                            {
                                "verbs": ["list", "watch"], "apiGroups": [""], "resources": ["nodes"],
                                "clusterScope": true, "namespaces": null,
                            },
                            {"verbs": ["*"], "apiGroups": ["*"], "resources": ["leases"], "namespaces": ["jobs"]},
                        ],
                        "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/healthz"]}],
                    },
                ],
            },
            "status": {},
        })
    );
}

#[test]
fn a_priority_level_reads_like_its_manifest() {
    let level = v1::PriorityLevelConfiguration::builder("tenants")
        .limited(|l| {
            l.shares(40)
                .lendable_percent(25)
                .borrowing_limit_percent(100)
                .queue(|q| q.queues(128).hand_size(6).queue_length_limit(50))
        })
        .build();
    assert_eq!(
        written(&level)["spec"],
        json!({
            "type": "Limited",
            "limited": {
                "nominalConcurrencyShares": 40,
                "lendablePercent": 25,
                "borrowingLimitPercent": 100,
                "limitResponse": {
                    "type": "Queue",
                    "queuing": {"queues": 128, "handSize": 6, "queueLengthLimit": 50},
                },
            },
        })
    );
}

#[test]
fn what_is_not_said_has_the_default_of_the_api() {
    let level = v1::PriorityLevelConfiguration::builder("tenants").limited(|l| l.queue(|q| q)).build();
    assert_eq!(
        written(&level)["spec"]["limited"],
        json!({
            "nominalConcurrencyShares": 30,
            "lendablePercent": 0,
            "limitResponse": {"type": "Queue", "queuing": {"queues": 64, "handSize": 8, "queueLengthLimit": 50}},
        })
    );
    let level = v1::PriorityLevelConfiguration::builder("tenants").limited(|l| l.shares(0).reject()).build();
    assert_eq!(
        written(&level)["spec"]["limited"],
        json!({"nominalConcurrencyShares": 0, "lendablePercent": 0, "limitResponse": {"type": "Reject"}})
    );
    let level = v1::PriorityLevelConfiguration::builder("exempt").exempt(|e| e).build();
    assert_eq!(
        written(&level)["spec"],
        json!({"type": "Exempt", "exempt": {"nominalConcurrencyShares": 0, "lendablePercent": 0}})
    );
}

#[test]
fn a_name_is_given_or_made_up_by_the_server() {
    let name = String::from("given");
    let given = v1::PriorityLevelConfiguration::builder(&name).limited(|l| l.shares(5).reject()).build();
    assert_eq!(written(&given)["metadata"], json!({"name": "given"}));
    let made_up = v1::FlowSchema::builder(generate_name("batch-")).priority_level("system").build();
    assert_eq!(written(&made_up)["metadata"], json!({"generateName": "batch-"}));
}

#[test]
#[allow(deprecated, reason = "the builders of the older versions are what is tested")]
fn the_older_versions_are_built_by_the_same_steps() {
    let schema = v1beta3::FlowSchema::builder("batch").priority_level("system").by_namespace().build();
    assert_eq!(written(&schema)["apiVersion"], "flowcontrol.apiserver.k8s.io/v1beta3");
    assert_eq!(written(&schema)["spec"]["matchingPrecedence"], 1000);
    let schema = v1beta2::FlowSchema::builder("batch").priority_level("system").build();
    assert_eq!(written(&schema)["apiVersion"], "flowcontrol.apiserver.k8s.io/v1beta2");

    let level = v1beta2::PriorityLevelConfiguration::builder("tenants").limited(|l| l.shares(7).reject()).build();
    assert_eq!(written(&level)["spec"]["limited"]["assuredConcurrencyShares"], 7);
    let level = v1beta1::PriorityLevelConfiguration::builder("exempt").exempt(|e| e.shares(7)).build();
    assert_eq!(written(&level)["apiVersion"], "flowcontrol.apiserver.k8s.io/v1beta1");
    assert_eq!(written(&level)["spec"]["exempt"]["nominalConcurrencyShares"], 7);
}

/// As the server would store it: see API-25 and API-63.
#[test]
#[allow(deprecated, reason = "the builders of the older versions are what is tested")]
fn zero_shares_of_the_older_versions_are_what_the_version_makes_of_them() {
    let level = v1beta3::PriorityLevelConfiguration::builder("jail").limited(|l| l.shares(0).reject()).build();
    assert_eq!(level.spec.limited.unwrap().nominal_concurrency_shares, 0);
    assert!(level.metadata.annotations.contains_key(PRESERVE_ZERO_ANNOTATION));
    let level = v1beta2::PriorityLevelConfiguration::builder("jail").limited(|l| l.shares(0).reject()).build();
    assert_eq!(level.spec.limited.unwrap().assured_concurrency_shares, 30);
    let level = v1beta1::PriorityLevelConfiguration::builder("jail").limited(|l| l.shares(0).reject()).build();
    assert_eq!(level.spec.limited.unwrap().assured_concurrency_shares, 30);
}
