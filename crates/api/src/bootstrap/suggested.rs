//! The suggested objects: a configuration that suits most clusters.

use crate::v1::{FlowSchema, PriorityLevelConfiguration};

#[rustfmt::skip] // a table
pub(super) fn priority_levels() -> Vec<PriorityLevelConfiguration> {
    use PriorityLevelConfiguration as Level;
    vec![
        Level::builder("node-high").limited(|l| l
            .shares(40).lendable_percent(25).queue(|q| q.queues(64).hand_size(6).queue_length_limit(50))).build(),
        Level::builder("system").limited(|l| l
            .shares(30).lendable_percent(33).queue(|q| q.queues(64).hand_size(6).queue_length_limit(50))).build(),
        Level::builder("leader-election").limited(|l| l
            .shares(10).lendable_percent(0).queue(|q| q.queues(16).hand_size(4).queue_length_limit(50))).build(),
        Level::builder("workload-high").limited(|l| l
            .shares(40).lendable_percent(50).queue(|q| q.queues(128).hand_size(6).queue_length_limit(50))).build(),
        Level::builder("workload-low").limited(|l| l
            .shares(100).lendable_percent(90).queue(|q| q.queues(128).hand_size(6).queue_length_limit(50))).build(),
        Level::builder("global-default").limited(|l| l
            .shares(20).lendable_percent(50).queue(|q| q.queues(128).hand_size(6).queue_length_limit(50))).build(),
    ]
}

#[rustfmt::skip] // a table
pub(super) fn flow_schemas() -> Vec<FlowSchema> {
    vec![
        FlowSchema::builder("probes")
            .priority_level("exempt").matching_precedence(2)
            .rule(|r| r
                .group("system:unauthenticated").group("system:authenticated")
                .non_resource_urls(["/healthz", "/readyz", "/livez"]).verbs(["get"]))
            .build(),
        FlowSchema::builder("system-leader-election")
            .priority_level("leader-election").matching_precedence(100).by_user()
            .rule(|r| r
                .user("system:kube-controller-manager").user("system:kube-scheduler")
                .service_account("kube-system", "*")
                .resources(["leases"]).api_groups(["coordination.k8s.io"]).namespaces(["*"])
                .verbs(["get", "create", "update"]))
            .build(),
        FlowSchema::builder("system-node-high")
            .priority_level("node-high").matching_precedence(400).by_user()
            .rule(|r| r
                .group("system:nodes")
                .resources(["nodes", "nodes/status"]).api_groups([""]).namespaces(["*"]).cluster_scope().verbs(["*"])
                .resources(["leases"]).api_groups(["coordination.k8s.io"]).namespaces(["*"]).verbs(["*"]))
            .build(),
        FlowSchema::builder("system-nodes")
            .priority_level("system").matching_precedence(500).by_user()
            .rule(|r| r.group("system:nodes").everything())
            .build(),
        FlowSchema::builder("kube-controller-manager")
            .priority_level("workload-high").matching_precedence(800).by_namespace()
            .rule(|r| r.user("system:kube-controller-manager").everything())
            .build(),
        FlowSchema::builder("kube-scheduler")
            .priority_level("workload-high").matching_precedence(800).by_namespace()
            .rule(|r| r.user("system:kube-scheduler").everything())
            .build(),
        FlowSchema::builder("kube-system-service-accounts")
            .priority_level("workload-high").matching_precedence(900).by_namespace()
            .rule(|r| r.service_account("kube-system", "*").everything())
            .build(),
        FlowSchema::builder("service-accounts")
            .priority_level("workload-low").matching_precedence(9000).by_user()
            .rule(|r| r.group("system:serviceaccounts").everything())
            .build(),
        FlowSchema::builder("global-default")
            .priority_level("global-default").matching_precedence(9900).by_user()
            .rule(|r| r.group("system:unauthenticated").group("system:authenticated").everything())
            .build(),
    ]
}

/// What releases before 1.34 had besides: leader election by endpoints and configmaps, and a way around it for a controller that writes endpoints.
#[rustfmt::skip] // a table
pub(super) fn flow_schemas_before_1_34() -> Vec<FlowSchema> {
    vec![
        FlowSchema::builder("endpoint-controller")
            .priority_level("workload-high").matching_precedence(150).by_user()
            .rule(|r| r
                .user("system:kube-controller-manager")
                .service_account("kube-system", "endpoint-controller")
                .service_account("kube-system", "endpointslicemirroring-controller")
                .resources(["endpoints"]).api_groups([""]).namespaces(["*"])
                .verbs(["get", "create", "update"]))
            .build(),
        FlowSchema::builder("workload-leader-election")
            .priority_level("leader-election").matching_precedence(200).by_user()
            .rule(|r| r
                .service_account("kube-system", "*")
                .resources(["endpoints", "configmaps"]).api_groups([""]).namespaces(["*"])
                .verbs(["get", "create", "update"])
                .resources(["leases"]).api_groups(["coordination.k8s.io"]).namespaces(["*"])
                .verbs(["get", "create", "update"]))
            .build(),
    ]
}
