//! `explain` agrees with the classifier on every request, and its structures can be serialised.

use crate::random_objects::{Configured, Random};

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use evenkeel::objects::IntoObjects;
use evenkeel::{Attributes, FlowControl, Preset, RequestInfo, User, WorkEstimate};
use evenkeel_api::v1::FlowSchema;
use evenkeel_engine::classify::Classifier;
use evenkeel_engine::controller::Objects;
use proptest::prelude::*;
use serde_json::json;

/// Schemas whose parts overlap in every way: several rules, service accounts, prefixes, subresources, cluster scope.
const SCHEMAS: &str = "
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: tenants}
spec:
  type: Limited
  limited:
    nominalConcurrencyShares: 30
    limitResponse: {type: Queue, queuing: {queues: 64, handSize: 6, queueLengthLimit: 50}}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: two-rules}
spec:
  matchingPrecedence: 100
  priorityLevelConfiguration: {name: tenants}
  distinguisherMethod: {type: ByNamespace}
  rules:
  - subjects: [{kind: ServiceAccount, serviceAccount: {namespace: a, name: '*'}}]
    resourceRules: [{verbs: [get, list], apiGroups: [''], resources: [pods], namespaces: [a]}]
    nonResourceRules: [{verbs: [get], nonResourceURLs: [/metrics]}]
  - subjects: [{kind: User, user: {name: alice}}, {kind: Group, group: {name: dev}}]
    resourceRules:
    - {verbs: ['*'], apiGroups: [apps], resources: ['*'], clusterScope: true}
    - {verbs: [list], apiGroups: ['*'], resources: [pods, pods/log], namespaces: ['*']}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: paths}
spec:
  matchingPrecedence: 200
  priorityLevelConfiguration: {name: tenants}
  distinguisherMethod: {type: ByUser}
  rules:
  - subjects: [{kind: Group, group: {name: '*'}}]
    nonResourceRules: [{verbs: [get], nonResourceURLs: [/api/*, /livez]}, {verbs: [create], nonResourceURLs: ['*']}]
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: lost}
spec:
  matchingPrecedence: 150
  priorityLevelConfiguration: {name: nowhere}
  rules:
  - subjects: [{kind: User, user: {name: '*'}}]
    nonResourceRules: [{verbs: ['*'], nonResourceURLs: ['*']}]
";

fn flow() -> FlowControl {
    let mut objects = Objects::from(Preset::Kubernetes);
    let more = SCHEMAS.into_objects(Preset::Kubernetes).unwrap();
    objects.priority_levels.extend(more.priority_levels);
    objects.flow_schemas.extend(more.flow_schemas);
    // As stored: one of them leads nowhere.
    let builder = FlowControl::builder().kubernetes().server_concurrency(100).drive_by_hand();
    builder.stored_objects(objects).build()
}

fn user() -> impl Strategy<Value = User> {
    let name = prop::sample::select(vec!["alice", "bob", "system:serviceaccount:a:x", "system:serviceaccount:b:x", ""]);
    let groups = vec!["dev", "system:masters", "system:authenticated", "system:unauthenticated", "system:nodes"];
    let groups = prop::sample::subsequence(groups, 0..4);
    (name, groups).prop_map(|(name, groups)| User::new(name, groups))
}

fn request() -> impl Strategy<Value = RequestInfo<'static>> {
    let verb = prop::sample::select(vec!["get", "list", "create", "post", "watch"]);
    let group = prop::sample::select(vec!["", "apps", "coordination.k8s.io"]);
    let resource = prop::sample::select(vec!["pods", "leases", "nodes", "deployments"]);
    let subresource = prop::sample::select(vec!["", "", "log", "status"]);
    let namespace = prop::sample::select(vec!["", "a", "b", "kube-system"]);
    let path = prop::sample::select(vec!["/", "/metrics", "/livez", "/api", "/api/x", "/apis", "/healthz"]);
    (any::<bool>(), verb, group, resource, subresource, namespace, path).prop_map(
        |(is_resource_request, verb, group, resource, subresource, namespace, path)| {
            if !is_resource_request {
                return RequestInfo { verb: verb.into(), path: path.into(), ..RequestInfo::default() };
            }
            RequestInfo {
                is_resource_request,
                verb: verb.into(),
                api_group: group.into(),
                resource: resource.into(),
                subresource: subresource.into(),
                namespace: namespace.into(),
                ..RequestInfo::default()
            }
        },
    )
}

/// Where the flow control really lets a request in.
fn admitted(flow: &FlowControl, attributes: Attributes<'_>) -> (String, String) {
    let admit = pin!(flow.admit(attributes, WorkEstimate::ONE_SEAT));
    match admit.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok(permit)) => (permit.flow_schema().to_owned(), permit.priority_level().to_owned()),
        Poll::Ready(Err(rejected)) => panic!("{rejected}"),
        Poll::Pending => panic!("it waits"),
    }
}

/// Whether one schema alone matches.
fn matches(schema: &FlowSchema, attributes: Attributes<'_>) -> bool {
    Classifier::compile([schema]).classify(attributes).is_some()
}

/// The schemas, with the mandatory ones as the tests' objects have them.
fn schemas() -> Vec<FlowSchema> {
    let read = SCHEMAS.into_objects(Preset::Kubernetes).unwrap();
    let bootstrap = Objects::from(Preset::Kubernetes);
    read.flow_schemas.iter().chain(&bootstrap.flow_schemas).map(|schema| FlowSchema::clone(schema)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn explanations_agree_with_the_classifier(user in user(), request in request()) {
        thread_local! {
            static FIXTURE: (FlowControl, Vec<FlowSchema>) = (flow(), schemas());
        }
        FIXTURE.with(|(flow, schemas)| {
            let attributes = Attributes { user: &user, request: &request };
            let explained = flow.explain(attributes, WorkEstimate::ONE_SEAT);
            let (schema, level) = admitted(flow, attributes);
            prop_assert_eq!((&explained.flow_schema, &explained.priority_level), (&schema, &level));
            let object = |name: &str| schemas.iter().find(|schema| schema.name() == name).unwrap();
            for tried in &explained.tried {
                prop_assert!(!matches(object(&tried.schema), attributes), "{} matches", tried.schema);
                // A part that failed is a part; a path of a rule that matched ends in `]`.
                prop_assert!(!tried.failed.ends_with(']'), "{}: {}", tried.schema, tried.failed);
            }
            let winner = object(&explained.flow_schema);
            prop_assert_eq!(explained.matched.is_some(), matches(winner, attributes));
            prop_assert!(explained.matched.is_some() || explained.flow_schema == "catch-all");
            let all = schemas.iter().filter(|schema| schema.name() != "lost").count();
            prop_assert!(explained.tried.len() < all);
            prop_assert!(explained.tried.iter().all(|tried| tried.schema != "lost"), "a dangling schema is not tried");
            // Those before the winner are named, and whether they would take the request.
            for dangling in &explained.dangling {
                let lost = schemas.iter().find(|schema| schema.name() == dangling.schema).unwrap();
                prop_assert_eq!((&*dangling.schema, dangling.precedence), ("lost", lost.spec.matching_precedence));
                prop_assert_eq!(dangling.would_match, matches(lost, attributes));
                prop_assert!(Some(dangling.precedence) <= explained.precedence);
            }
            let precedences: Vec<i32> = explained.tried.iter().map(|tried| tried.precedence).collect();
            prop_assert!(precedences.is_sorted() && precedences.last().copied() <= explained.precedence);
            Ok(())
        })?;
    }
}

#[test]
fn every_part_that_can_fail_is_named() {
    let flow = flow();
    let failed = |user: &User, request: &RequestInfo<'_>, schema: &str| {
        let explained = flow.explain(Attributes { user, request }, WorkEstimate::ONE_SEAT);
        let tried = explained.tried.into_iter().find(|tried| tried.schema == schema);
        tried.map(|tried| tried.failed)
    };
    let resource =
        |verb: &'static str, group: &'static str, resource: &'static str, namespace: &'static str| RequestInfo {
            is_resource_request: true,
            verb: verb.into(),
            api_group: group.into(),
            resource: resource.into(),
            namespace: namespace.into(),
            ..RequestInfo::default()
        };
    let path = |verb: &'static str, path: &'static str| RequestInfo {
        verb: verb.into(),
        path: path.into(),
        ..RequestInfo::default()
    };
    let (account, alice, bob) =
        (User::new("system:serviceaccount:a:x", ["g"]), User::new("alice", ["g"]), User::new("bob", ["g"]));
    for (user, request, part) in [
        (&bob, resource("get", "", "pods", "a"), "spec.rules[0].subjects"),
        (&account, resource("create", "", "pods", "a"), "spec.rules[0].resourceRules[0].verbs"),
        (&account, resource("get", "apps", "pods", "a"), "spec.rules[0].resourceRules[0].apiGroups"),
        (&account, resource("get", "", "nodes", "a"), "spec.rules[0].resourceRules[0].resources"),
        (&account, resource("get", "", "pods", "b"), "spec.rules[0].resourceRules[0].namespaces"),
        (&account, resource("get", "", "pods", ""), "spec.rules[0].resourceRules[0].clusterScope"),
        (&account, path("post", "/metrics"), "spec.rules[0].nonResourceRules[0].verbs"),
        (&account, path("get", "/other"), "spec.rules[0].nonResourceRules[0].nonResourceURLs"),
        (&alice, path("get", "/metrics"), "spec.rules[1].nonResourceRules"),
        // Of two rules, the one that gets further is named: the verb of the second does not match, all else does.
        (&alice, resource("get", "apps", "pods", "a"), "spec.rules[1].resourceRules[0].namespaces"),
    ] {
        assert_eq!(failed(user, &request, "two-rules").as_deref(), Some(part), "{request:?}");
    }
}

/// TL-21
#[test]
fn the_fields_are_those_of_the_contract() {
    let flow = flow();
    let user = User::new("alice", ["system:authenticated"]);
    let request = RequestInfo { verb: "get".into(), path: "/api/x".into(), ..RequestInfo::default() };
    let explained = flow.explain(Attributes { user: &user, request: &request }, WorkEstimate::seats(3));
    let json = serde_json::to_value(&explained).unwrap();
    assert_eq!(json["request"]["user"], "alice");
    assert_eq!(json["request"]["verb"], "get");
    assert_eq!(json["request"]["path"], "/api/x");
    assert_eq!(json["tried"][0], json!({"schema": "exempt", "precedence": 1, "failed": "spec.rules[0].subjects"}));
    assert_eq!(json["flowSchema"], "paths");
    assert_eq!(json["matched"], "spec.rules[0].nonResourceRules[0]");
    assert_eq!(json["priorityLevel"], "tenants");
    assert_eq!(json["flow"], "alice");
    let hash = evenkeel_engine::flow_hash("paths", "alice");
    assert_eq!(json["flowHash"], format!("{hash:#018x}"), "text, since many readers round large numbers");
    let mut older = json.clone();
    older["flowHash"] = hash.into();
    assert_eq!(serde_json::from_value::<evenkeel::explain::Explanation>(older).unwrap(), explained);
    assert_eq!(json["hand"].as_array().unwrap().len(), 6);
    assert_eq!((&json["seats"]["initial"], &json["seats"]["final"]), (&json!(3), &json!(0)));
    assert_eq!(json["seats"]["rule"], "the same for every request");
    assert_eq!(json["queuing"], "shuffle-sharded");
    assert!(json["limits"]["nominal"].as_i64().unwrap() > 0);
    assert_eq!(json["live"]["name"], "tenants");
    assert_eq!(json["live"]["executing"], 0);
    assert_eq!(json["live"]["wait"]["outcome"], "starts");
    let read: evenkeel::explain::Explanation = serde_json::from_value(json.clone()).unwrap();
    assert_eq!(read, explained, "what is written can be read");
    let status = serde_json::to_value(flow.status()).unwrap();
    let tenants = status.as_array().unwrap().iter().find(|level| level["name"] == "tenants").unwrap();
    let mut live = json["live"].clone();
    live.as_object_mut().unwrap().remove("wait");
    assert_eq!(tenants, &live, "status shows the same of a level");
    let fields: Vec<&String> = json.as_object().unwrap().keys().collect();
    let contract =
        ["flow", "flowHash", "flowSchema", "hand", "limits", "live", "priorityLevel", "request", "seats", "tried"];
    assert!(contract.iter().all(|field| fields.iter().any(|known| known == field)), "{fields:?}");
}

/// One seat, and queues of each kind.
fn narrow(annotations: &str, queuing: &str) -> FlowControl {
    let manifest = format!(
        "apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {{name: narrow, annotations: {{{annotations}}}}}
spec: {{type: Limited, limited: {{nominalConcurrencyShares: 1000, limitResponse: {queuing}}}}}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {{name: narrow}}
spec:
  matchingPrecedence: 2
  priorityLevelConfiguration: {{name: narrow}}
  distinguisherMethod: {{type: ByUser}}
  rules:
  - subjects: [{{kind: User, user: {{name: '*'}}}}]
    nonResourceRules: [{{verbs: ['*'], nonResourceURLs: ['*']}}]
"
    );
    FlowControl::builder().kubernetes().server_concurrency(1).drive_by_hand().objects(&*manifest).build()
}

const QUEUE: &str = "{type: Queue, queuing: {queues: 8, handSize: 2, queueLengthLimit: 3}}";

#[test]
fn what_would_become_of_a_request_is_what_becomes_of_it() {
    let request = RequestInfo { verb: "get".into(), path: "/x".into(), ..RequestInfo::default() };
    let user = User::new("alice", ["dev"]);
    let attributes = Attributes { user: &user, request: &request };
    for (annotations, queuing, kind) in [
        ("", QUEUE, "shuffle-sharded"),
        ("evenkeel.dev/queuing: per-flow", QUEUE, "per-flow"),
        ("", "{type: Reject}", "reject"),
    ] {
        let flow = narrow(annotations, queuing);
        let wait = || flow.explain(attributes, WorkEstimate::ONE_SEAT).live.unwrap().wait;
        let mut arrived = Vec::new();
        let mut outcomes = Vec::new();
        for _ in 0..20 {
            let expected = serde_json::to_value(wait().outcome).unwrap();
            let mut place = Box::pin(flow.arrive(attributes, WorkEstimate::ONE_SEAT));
            let really = match place.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Ok(permit)) => {
                    // It runs to the end of the test.
                    arrived.push(Box::pin(async move { drop(permit) }) as std::pin::Pin<Box<dyn Future<Output = ()>>>);
                    "starts"
                }
                Poll::Ready(Err(_)) => "rejected",
                Poll::Pending => {
                    arrived.push(Box::pin(async move { drop(place.await) }));
                    "waits"
                }
            };
            assert_eq!(expected, really, "{kind}: {:?}", wait());
            outcomes.push(really);
        }
        assert_eq!(serde_json::to_value(flow.explain(attributes, WorkEstimate::ONE_SEAT).queuing).unwrap(), kind);
        assert_eq!(outcomes.contains(&"waits"), kind != "reject");
        assert!(outcomes.contains(&"rejected") && outcomes[0] == "starts", "{outcomes:?}");
        let explained = flow.explain(attributes, WorkEstimate::ONE_SEAT);
        assert_eq!(
            explained.hand.len(),
            if kind == "shuffle-sharded" { 2 } else { 0 },
            "only shuffle sharding deals hands"
        );
    }
}

#[test]
fn the_rule_behind_the_seats_is_named() {
    let flow = flow();
    let work = evenkeel::work::KubernetesWork::default();
    work.set_objects("pods", 399, 10_000);
    let user = User::new("alice", ["dev"]);
    let kubernetes = evenkeel::digest::Kubernetes::default();
    let explained = |method: &str, target: &'static str| {
        let request = kubernetes.digest(method, target).unwrap();
        flow.explain(Attributes { user: &user, request: &request }, work.clone())
    };
    let rule = |method: &str, target: &'static str| explained(method, target).seats.rule;
    // In `catch-all`, which has no queues and no cap.
    assert_eq!(rule("GET", "/api/v1/pods"), "a list of a resource with 399 objects");
    assert_eq!(rule("GET", "/api/v1/nodes"), "a list of nodes, whose number of objects is not known");
    assert_eq!(rule("POST", "/api/v1/namespaces/a/pods"), "a change that 0 watches receive");
    assert_eq!(rule("GET", "/healthz"), "the least that a request takes: get costs no more");
    // In `tenants`, the cap of the level (WE-4) is named where it applies to the estimate, and only there.
    let list = explained("GET", "/api/v1/namespaces/a/pods");
    let cap = list.seats.cap.unwrap();
    let named = format!("a list of a resource with 399 objects; at most {cap} in this level");
    assert_eq!((&*list.priority_level, &list.seats.rule), ("tenants", &named));
    let request = kubernetes.digest("GET", "/api/v1/namespaces/a/pods").unwrap();
    let fixed = flow.explain(Attributes { user: &user, request: &request }, WorkEstimate::seats(cap + 1)).seats;
    assert_eq!((fixed.initial, &*fixed.rule), (cap + 1, "the same for every request"));
}

#[test]
fn what_other_levels_lend_is_what_a_level_can_borrow() {
    let user = User::new("alice", ["system:authenticated"]);
    let request = RequestInfo { verb: "get".into(), path: "/".into(), ..RequestInfo::default() };
    let attributes = Attributes { user: &user, request: &request };
    // The level `everyone` has all seats, and the others have none to lend.
    let plain = FlowControl::builder().server_concurrency(20).drive_by_hand().build();
    let explained = plain.explain(attributes, WorkEstimate::ONE_SEAT);
    assert_eq!((explained.limits.unwrap().borrowing, explained.lent_by_others), (20, Some(0)));
    // Of a kube-apiserver's levels, every one but `exempt` and `catch-all` lends (CL-4).
    let flow = flow();
    let explained = flow.explain(attributes, WorkEstimate::ONE_SEAT);
    let others = flow.status().into_iter().filter(|level| level.name != explained.priority_level);
    let lendable: i64 = others.map(|level| level.limits.lendable).sum();
    assert!(lendable > 0, "{explained:?}");
    assert_eq!(explained.lent_by_others, Some(lendable));
}

#[test]
fn explanations_are_true_of_random_objects_and_requests() {
    // `cargo xtask bench explain` tries a million requests.
    for seed in 1000..1020 {
        let mut random = Random(seed);
        let configured = Configured::new(&mut random, 20);
        for _ in 0..100 {
            let (user, request) = (random.user(), random.request());
            let fault = configured.fault(&user, &request);
            assert_eq!(fault, None, "seed {seed}");
        }
    }
}

#[test]
fn an_estimate_may_look_at_the_flow_control() {
    let flow = flow();
    let (user, request) = (User::new("alice", ["dev"]), RequestInfo::default());
    let seats = |_: Attributes<'_>, _: &evenkeel::work::LevelInfo| {
        // It takes the locks of the control plane and of all levels.
        WorkEstimate::seats(if flow.status().iter().all(evenkeel::status::LevelStatus::is_idle) { 2 } else { 1 })
    };
    assert_eq!(flow.explain(Attributes { user: &user, request: &request }, seats).seats.initial, 2);
}
