//! How long it takes to classify a request, and to hash its flow.
//!
//! The bars: at most 150 ns with the bootstrap objects, mean over a realistic mix of requests, and at most three times
//! that with 1,000 more flow schemas, whatever these have in common. One iteration classifies a whole list of requests, so
//! the line to look at is the second one of each pair, requests per second: 150 ns are 6.67 Mitem/s, three times that
//! are 2.22 Mitem/s.

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use evenkeel_api::bootstrap;
use evenkeel_api::v1::FlowSchema;
use evenkeel_engine::classify::{Classifier, match_order};
use evenkeel_engine::{Attributes, FlowHasher, RequestInfo, User, flow_hash};

#[global_allocator]
static ALLOCATIONS: divan::AllocProfiler = divan::AllocProfiler::system();

fn main() {
    divan::main();
}

/// How the 1,000 further schemas differ from each other. They stand before the suggested schemas for workloads.
#[derive(Debug, Clone, Copy)]
enum Shape {
    None,
    User,
    Group,
    ServiceAccount,
    Namespace,
    Resource,
    Verb,
    ApiGroup,
    Path,
    /// Each lists many namespaces and many resources, and shares them with others.
    Lists,
}

const SHAPES: [Shape; 10] = [
    Shape::None,
    Shape::User,
    Shape::Group,
    Shape::ServiceAccount,
    Shape::Namespace,
    Shape::Resource,
    Shape::Verb,
    Shape::ApiGroup,
    Shape::Path,
    Shape::Lists,
];
const MORE: usize = 1000;

type Request = (User, RequestInfo<'static>);

/// Requests as a cluster sees them.
#[divan::bench(args = SHAPES)]
fn realistic_mix(bencher: Bencher, shape: Shape) {
    classify_all(bencher, shape, &realistic());
}

/// Requests that only the last of the further schemas matches.
#[divan::bench(args = SHAPES)]
fn last_matches(bencher: Bencher, shape: Shape) {
    classify_all(bencher, shape, &[aimed_at(shape, MORE - 1)]);
}

/// Requests for each of the further schemas in turn.
#[divan::bench(args = SHAPES)]
fn each_matches(bencher: Bencher, shape: Shape) {
    let requests: Vec<_> = (0..MORE).map(|number| aimed_at(shape, number * 7 % MORE)).collect();
    classify_all(bencher, shape, &requests);
}

/// Requests that nothing matches: the user is in no group that any schema names.
#[divan::bench(args = SHAPES)]
fn none_matches(bencher: Bencher, shape: Shape) {
    let (mut user, request) = aimed_at(Shape::None, 0);
    user.groups.retain(|group| !group.starts_with("system:"));
    classify_all(bencher, shape, &[(user, request)]);
}

/// The hash of a flow, the schema's name taken in beforehand.
#[divan::bench]
fn hash_prepared(bencher: Bencher) {
    let hasher = FlowHasher::new("service-accounts");
    bencher.bench(|| black_box(&hasher).hash(black_box("system:serviceaccount:default:default")));
}

/// The hash of a flow from both names.
#[divan::bench]
fn hash_from_both_names(bencher: Bencher) {
    bencher.bench(|| flow_hash(black_box("service-accounts"), black_box("system:serviceaccount:default:default")));
}

fn classify_all(bencher: Bencher, shape: Shape, requests: &[Request]) {
    let more: Vec<_> = match shape {
        Shape::None => Vec::new(),
        _ => (0..MORE).map(|number| further_schema(shape, number)).collect(),
    };
    let mut schemas: Vec<_> = bootstrap::flow_schemas().iter().chain(&more).collect();
    schemas.sort_by(|a, b| match_order(a, b));
    let classifier = Classifier::compile(schemas);
    bencher.counter(ItemsCount::new(requests.len())).bench(|| {
        for (user, request) in black_box(requests) {
            black_box(classifier.classify(Attributes { user, request }));
        }
    });
}

#[rustfmt::skip] // a table
fn further_schema(shape: Shape, number: usize) -> FlowSchema {
    let builder = FlowSchema::builder(format!("tenant-{number}")).priority_level("workload-low").matching_precedence(850);
    let all = "system:authenticated";
    let name = |what: &str| format!("{what}-{number}");
    match shape {
        Shape::None => builder.rule(|r| r.user("nobody").everything()),
        Shape::User => builder.rule(|r| r.user(name("user")).everything()),
        Shape::Group => builder.rule(|r| r.group(name("group")).everything()),
        Shape::ServiceAccount => builder.rule(|r| r.service_account(name("namespace"), "*").everything()),
        Shape::Namespace => builder.rule(|r| r.group(all).resources(["*"]).namespaces([name("namespace")]).verbs(["*"])),
        Shape::Resource => builder.rule(|r| r.group(all).resources([name("resource")]).verbs(["*"])),
        Shape::Verb => builder.rule(|r| r.group(all).resources(["*"]).verbs([name("verb")])),
        Shape::ApiGroup => builder.rule(|r| r.group(all).resources(["*"]).api_groups([name("group")]).verbs(["*"])),
        Shape::Path => builder.rule(|r| r.group(all).non_resource_urls([format!("/tenants/{number}/*")]).verbs(["*"])),
        Shape::Lists => builder.rule(|r| r.group(all)
            .resources((0..10).map(|step| format!("resource-{}", (number + step) % MORE)))
            .namespaces((0..10).map(|step| format!("namespace-{}", (number + step * 97) % MORE)))
            .verbs(["get", "list", "watch"])),
    }
    .build()
}

/// A request that only that one of the further schemas matches.
fn aimed_at(shape: Shape, number: usize) -> Request {
    let mut user = User::new("someone", ["developers", "system:authenticated"]);
    let mut request = resource("get", "", "pods", "default");
    let name = |what: &str| format!("{what}-{number}");
    match shape {
        Shape::None => {}
        Shape::User => user.name = name("user").into(),
        Shape::Group => user.groups.insert(0, name("group").into()),
        Shape::ServiceAccount => user.name = format!("system:serviceaccount:{}:default", name("namespace")).into(),
        Shape::Namespace => request.namespace = name("namespace").into(),
        Shape::Resource => request.resource = name("resource").into(),
        Shape::Verb => request.verb = name("verb").into(),
        Shape::ApiGroup => request.api_group = name("group").into(),
        Shape::Path => request = path("get", format!("/tenants/{number}/status")),
        Shape::Lists => {
            request.resource = name("resource").into();
            request.namespace = name("namespace").into();
        }
    }
    (user, request)
}

#[rustfmt::skip] // a table
fn realistic() -> Vec<Request> {
    let node = || User::new("system:node:node-17", ["system:nodes", "system:authenticated"]);
    let account = |namespace: &str, name: &str| User::new(
        format!("system:serviceaccount:{namespace}:{name}"),
        ["system:serviceaccounts", &*format!("system:serviceaccounts:{namespace}"), "system:authenticated"],
    );
    let manager = || User::new("system:kube-controller-manager", ["system:authenticated"]);
    let scheduler = || User::new("system:kube-scheduler", ["system:authenticated"]);
    let admin = || User::new("kubernetes-admin", ["system:masters", "system:authenticated"]);
    let person = || User::new("alice@example.com", ["developers", "team-shop", "system:authenticated"]);
    let anonymous = || User::new("system:anonymous", ["system:unauthenticated"]);
    let sub = |mut request: RequestInfo<'static>, name: &'static str| { request.subresource = name.into(); request };
    vec![
        (node(), resource("update", "coordination.k8s.io", "leases", "kube-node-lease")),
        (node(), sub(resource("patch", "", "nodes", ""), "status")),
        (node(), sub(resource("patch", "", "pods", "shop"), "status")),
        (node(), resource("get", "", "secrets", "shop")),
        (node(), resource("watch", "", "configmaps", "shop")),
        (manager(), resource("update", "coordination.k8s.io", "leases", "kube-system")),
        (manager(), resource("create", "", "pods", "shop")),
        (manager(), sub(resource("update", "apps", "replicasets", "shop"), "status")),
        (scheduler(), sub(resource("create", "", "pods", "shop"), "binding")),
        (scheduler(), resource("get", "coordination.k8s.io", "leases", "kube-system")),
        (account("kube-system", "endpointslice-controller"), resource("update", "discovery.k8s.io", "endpointslices", "shop")),
        (account("kube-system", "coredns"), resource("watch", "", "services", "")),
        (account("monitoring", "prometheus"), resource("list", "", "pods", "")),
        (account("monitoring", "prometheus"), path("get", "/metrics".into())),
        (account("shop", "operator"), resource("list", "example.com", "carts", "shop")),
        (account("shop", "operator"), resource("watch", "example.com", "carts", "shop")),
        (account("shop", "operator"), sub(resource("update", "example.com", "carts", "shop"), "status")),
        (account("shop", "operator"), resource("create", "", "events", "shop")),
        (person(), resource("list", "apps", "deployments", "shop")),
        (person(), sub(resource("get", "", "pods", "shop"), "log")),
        (person(), path("get", "/openapi/v3/apis/apps/v1".into())),
        (admin(), resource("patch", "apps", "deployments", "shop")),
        (admin(), path("get", "/api".into())),
        (anonymous(), path("get", "/livez".into())),
        (anonymous(), path("get", "/readyz".into())),
        (anonymous(), path("get", "/version".into())),
    ]
}

fn resource(
    verb: &'static str,
    api_group: &'static str,
    resource: &'static str,
    namespace: &'static str,
) -> RequestInfo<'static> {
    RequestInfo {
        is_resource_request: true,
        verb: verb.into(),
        api_group: api_group.into(),
        resource: resource.into(),
        namespace: namespace.into(),
        ..RequestInfo::default()
    }
}

fn path(verb: &'static str, path: String) -> RequestInfo<'static> {
    RequestInfo { verb: verb.into(), path: path.into(), ..RequestInfo::default() }
}
