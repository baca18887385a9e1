//! Schemas and requests to classify: the bootstrap objects, 1,000 more of various shapes, and who asks for what.

use evenkeel_api::bootstrap;
use evenkeel_api::v1::FlowSchema;
use evenkeel_engine::classify::{Classifier, match_order};
use evenkeel_engine::{RequestInfo, User};

/// How the 1,000 further schemas differ from each other. They stand before the suggested schemas for workloads.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape {
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

pub(crate) const SHAPES: [Shape; 10] = [
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
pub(crate) const MORE: usize = 1000;

pub(crate) type Request = (User, RequestInfo<'static>);

/// The bootstrap schemas, and the further ones of a shape.
pub(crate) fn classifier(shape: Shape) -> Classifier {
    let more: Vec<_> = match shape {
        Shape::None => Vec::new(),
        _ => (0..MORE).map(|number| further_schema(shape, number)).collect(),
    };
    let mut schemas: Vec<_> = bootstrap::flow_schemas().iter().chain(&more).collect();
    schemas.sort_by(|a, b| match_order(a, b));
    Classifier::compile(schemas)
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
pub(crate) fn aimed_at(shape: Shape, number: usize) -> Request {
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
pub(crate) fn realistic() -> Vec<Request> {
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
