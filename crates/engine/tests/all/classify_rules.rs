//! The rules of classification one by one, each held against the index and against the plain walk.

use crate::linear;

use evenkeel_api::bootstrap;
use evenkeel_api::v1::{
    FlowDistinguisherMethod, FlowSchema, GroupSubject, PolicyRulesWithSubjects, ServiceAccountSubject, Subject,
    SubjectKind, UserSubject,
};
use evenkeel_engine::classify::{Classifier, distinguisher, match_order};
use evenkeel_engine::{Attributes, RequestInfo, User};

/// Whether a request is matched by the only schema there is.
fn matches(schema: &FlowSchema, user: &User, request: &RequestInfo<'_>) -> bool {
    let attributes = Attributes { user, request };
    let matched = Classifier::compile([schema]).classify(attributes).is_some();
    assert_eq!(matched, linear::classify(&[schema], attributes).is_some(), "the plain walk on {request:?} by {user:?}");
    matched
}

fn schema(rules: Vec<PolicyRulesWithSubjects>) -> FlowSchema {
    let mut schema = FlowSchema::default();
    schema.spec.rules = rules;
    schema
}

fn everything(subjects: Vec<Subject>) -> FlowSchema {
    let mut schema = FlowSchema::builder("a").priority_level("b").rule(|r| r.user("*").everything()).build();
    schema.spec.rules[0].subjects = subjects;
    schema
}

fn subject(kind: &str) -> Subject {
    Subject { kind: kind.into(), ..Subject::default() }
}

fn user_named(name: &str) -> Subject {
    Subject { user: Some(UserSubject { name: name.into() }), ..subject("User") }
}

fn group_named(name: &str) -> Subject {
    Subject { group: Some(GroupSubject { name: name.into() }), ..subject("Group") }
}

fn account_named(namespace: &str, name: &str) -> Subject {
    let account = ServiceAccountSubject { namespace: namespace.into(), name: name.into() };
    Subject { service_account: Some(account), ..subject("ServiceAccount") }
}

fn resource<'a>(verb: &'a str, group: &'a str, resource: &'a str, namespace: &'a str) -> RequestInfo<'a> {
    RequestInfo {
        is_resource_request: true,
        verb: verb.into(),
        api_group: group.into(),
        resource: resource.into(),
        namespace: namespace.into(),
        ..RequestInfo::default()
    }
}

fn path<'a>(verb: &'a str, path: &'a str) -> RequestInfo<'a> {
    RequestInfo { verb: verb.into(), path: path.into(), ..RequestInfo::default() }
}

fn someone() -> User {
    User::new("someone", [""; 0])
}

/// Whether a subject matches a user.
fn is_subject(subject: Subject, name: &str, groups: &[&str]) -> bool {
    let user = User::new(name, groups.iter().copied());
    let schema = everything(vec![subject]);
    let by_resource = matches(&schema, &user, &resource("get", "", "pods", "x"));
    assert_eq!(by_resource, matches(&schema, &user, &path("get", "/")));
    by_resource
}

#[test]
fn fm_1_order() {
    let named = |name: &str, precedence| {
        let builder = FlowSchema::builder(name).priority_level("p").matching_precedence(precedence);
        builder.rule(|r| r.user("*").everything()).build()
    };
    let mut schemas = [named("b", 5), named("Z", 5), named("a", 6), named("é", 5), named("c", -1), named("ab", 6)];
    schemas.sort_by(match_order);
    assert_eq!(schemas.each_ref().map(FlowSchema::name), ["c", "Z", "b", "é", "a", "ab"]);
    let request = resource("get", "", "pods", "x");
    let first = Classifier::compile(&schemas).classify(Attributes { user: &someone(), request: &request });
    assert_eq!(first.map(usize::from), Some(0));
}

#[test]
fn fm_2_without_rules_never() {
    assert!(!matches(&schema(vec![]), &someone(), &path("get", "/")));
    let no = everything(vec![user_named("nobody")]).spec.rules.remove(0);
    let yes = everything(vec![user_named("someone")]).spec.rules.remove(0);
    assert!(matches(&schema(vec![no, yes]), &someone(), &path("get", "/")), "one rule is enough");
}

#[test]
fn fm_3_subject_and_request_must_match_in_the_same_rule() {
    let mut first = everything(vec![user_named("someone")]).spec.rules.remove(0);
    let mut second = everything(vec![user_named("nobody")]).spec.rules.remove(0);
    first.resource_rules.clear();
    second.non_resource_rules.clear();
    let crossed = schema(vec![first, second]);
    assert!(!matches(&crossed, &someone(), &resource("get", "", "pods", "x")));
    assert!(matches(&crossed, &someone(), &path("get", "/")));
    assert!(matches(&crossed, &User::new("nobody", [""; 0]), &resource("get", "", "pods", "x")));
    assert!(!matches(&everything(vec![]), &someone(), &path("get", "/")), "no subject, no match");
}

#[test]
fn fm_4_nothing_matches_users_without_the_usual_groups() {
    let mut schemas: Vec<_> = bootstrap::flow_schemas().iter().collect();
    schemas.sort_by(|a, b| match_order(a, b));
    let request = resource("get", "", "pods", "x");
    let attributes = Attributes { user: &someone(), request: &request };
    assert_eq!(Classifier::compile(schemas).classify(attributes), None);
    assert_eq!(Classifier::default().classify(attributes), None);
}

#[test]
fn fm_5_users() {
    assert!(is_subject(user_named("alice"), "alice", &[]));
    assert!(!is_subject(user_named("alice"), "Alice", &["alice"]));
    assert!(is_subject(user_named("*"), "", &[]));
    assert!(is_subject(user_named(""), "", &[]));
    assert!(!is_subject(user_named("al*"), "alice", &[]));
}

#[test]
fn fm_6_groups() {
    assert!(is_subject(group_named("dev"), "alice", &["ops", "dev", "dev"]));
    assert!(!is_subject(group_named("dev"), "dev", &["developers"]));
    assert!(is_subject(group_named("*"), "alice", &[]));
    let many: Vec<String> = (0..100).map(|number| format!("group-{number}")).collect();
    let schema = everything(many.iter().map(|name| group_named(name)).collect());
    assert!(matches(&schema, &User::new("alice", many.iter().map(|name| &**name)), &path("get", "/")));
}

#[test]
fn fm_7_service_accounts_by_name() {
    let name = "system:serviceaccount:shop:cart";
    assert!(is_subject(account_named("shop", "cart"), name, &[]));
    assert!(!is_subject(account_named("shop", "car"), name, &[]));
    assert!(!is_subject(account_named("sho", "cart"), name, &[]));
    assert!(is_subject(user_named(name), name, &[]));
    assert!(is_subject(account_named("", ""), "system:serviceaccount::", &[]));
}

#[test]
fn fm_8_service_accounts_of_a_namespace() {
    let all = || account_named("shop", "*");
    assert!(is_subject(all(), "system:serviceaccount:shop:cart", &[]));
    assert!(is_subject(all(), "system:serviceaccount:shop:", &[]));
    assert!(is_subject(all(), "system:serviceaccount:shop:a:b", &[]));
    assert!(!is_subject(all(), "system:serviceaccount:shop", &[]));
    assert!(!is_subject(all(), "system:serviceaccount:shop2:cart", &[]));
    assert!(!is_subject(account_named("*", "*"), "system:serviceaccount:shop:cart", &[]));
    assert!(is_subject(account_named("a:b", "*"), "system:serviceaccount:a:b:c", &[]), "a namespace that cannot be");
}

#[test]
fn fm_9_unknown_kinds_and_missing_members() {
    let groups = ["dev"];
    for kind in ["User", "Group", "ServiceAccount", "Robot", "", "user"] {
        assert!(!is_subject(subject(kind), "alice", &groups), "{kind} without its member");
    }
    let wrong_member = Subject { kind: SubjectKind::Group, ..user_named("alice") };
    assert!(!is_subject(wrong_member, "alice", &groups));
    let robot = Subject { kind: "Robot".into(), ..user_named("*") };
    assert!(!is_subject(robot, "alice", &groups));
}

#[test]
fn fm_10_a_star_counts_only_when_it_is_alone() {
    let listing = |verbs: &[&str]| {
        let mut schema = everything(vec![user_named("*")]);
        schema.spec.rules[0].resource_rules[0].verbs = verbs.iter().map(|verb| (*verb).into()).collect();
        schema
    };
    let verb = |name| resource(name, "", "pods", "x");
    assert!(matches(&listing(&["*"]), &someone(), &verb("get")));
    assert!(!matches(&listing(&["*", "list"]), &someone(), &verb("get")));
    assert!(!matches(&listing(&["*", "*"]), &someone(), &verb("get")));
    assert!(matches(&listing(&["*", "list"]), &someone(), &verb("*")));
    assert!(matches(&listing(&["*", "list"]), &someone(), &verb("list")));
    assert!(!matches(&listing(&[]), &someone(), &verb("")));
}

#[test]
fn fm_11_resource_rules() {
    let schema = FlowSchema::builder("a")
        .priority_level("b")
        .rule(|r| {
            r.user("*")
                .resources(["pods", "nodes/status", "a/b/c"])
                .api_groups(["", "apps"])
                .namespaces(["shop", ""])
                .verbs(["get"])
        })
        .build();
    let fits = |request: &RequestInfo<'_>| matches(&schema, &someone(), request);
    let sub = |mut request: RequestInfo<'static>, name: &'static str| {
        request.subresource = name.into();
        request
    };
    assert!(fits(&resource("get", "", "pods", "shop")));
    assert!(fits(&resource("get", "apps", "pods", "shop")));
    assert!(!fits(&resource("list", "", "pods", "shop")));
    assert!(!fits(&resource("get", "batch", "pods", "shop")));
    assert!(!fits(&resource("get", "", "pods", "other")));
    assert!(!fits(&resource("get", "", "pods", "")), "an empty namespace asks for clusterScope");
    assert!(!fits(&sub(resource("get", "", "pods", "shop"), "status")));
    assert!(fits(&sub(resource("get", "", "nodes", "shop"), "status")));
    assert!(!fits(&resource("get", "", "nodes", "shop")));
    assert!(fits(&resource("get", "", "nodes/status", "shop")));
    assert!(fits(&sub(resource("get", "", "a", "shop"), "b/c")));
    assert!(fits(&sub(resource("get", "", "a/b", "shop"), "c")));
    assert!(!fits(&sub(resource("get", "", "a", "shop"), "b")));
}

#[test]
fn fm_11_cluster_scope() {
    let mut schema = FlowSchema::builder("a")
        .priority_level("b")
        .rule(|r| r.user("*").resources(["*"]).namespaces(["*"]).verbs(["*"]))
        .build();
    assert!(!matches(&schema, &someone(), &resource("get", "", "nodes", "")));
    assert!(matches(&schema, &someone(), &resource("get", "", "pods", "x")));
    let rule = &mut schema.spec.rules[0].resource_rules[0];
    (rule.cluster_scope, rule.namespaces) = (true, vec![]);
    assert!(matches(&schema, &someone(), &resource("get", "", "nodes", "")));
    assert!(!matches(&schema, &someone(), &resource("get", "", "pods", "x")));
}

fn covering(urls: &[&str]) -> FlowSchema {
    let mut schema = everything(vec![user_named("*")]);
    let rule = &mut schema.spec.rules[0].non_resource_rules[0];
    (rule.verbs, rule.non_resource_urls) = (vec!["get".into()], urls.iter().map(|url| (*url).into()).collect());
    schema
}

#[test]
fn fm_12_non_resource_rules() {
    let schema = covering(&["/healthz", "/metrics"]);
    assert!(matches(&schema, &someone(), &path("get", "/metrics")));
    assert!(!matches(&schema, &someone(), &path("post", "/metrics")));
    assert!(!matches(&schema, &someone(), &path("get", "/version")));
    assert!(!matches(&covering(&[]), &someone(), &path("get", "/")));
}

#[test]
fn fm_13_url_coverage() {
    let paths = ["/", "/healthz", "/healthz/", "/healthz/etcd", "/healthzz"];
    let table = [
        ("*", [true, true, true, true, true]),
        ("/healthz", [false, true, true, true, false]),
        ("/healthz/*", [false, false, true, true, false]),
        ("/healthz/", [false, false, true, true, false]),
        ("/healthz*", [false, false, true, true, false]),
        ("/", [true, true, true, true, true]),
        ("/*", [true, true, true, true, true]),
        ("", [true, true, true, true, true]),
        ("/healthz/**", [false, false, false, false, false]),
        ("//", [false, false, false, false, false]),
    ];
    for (entry, expected) in table {
        let actual = paths.map(|p| matches(&covering(&[entry]), &someone(), &path("get", p)));
        assert_eq!(actual, expected, "entry {entry:?} on {paths:?}");
    }
    assert!(matches(&covering(&["/x", "*", "/y"]), &someone(), &path("get", "/z")), "a star counts anywhere");
    assert!(matches(&covering(&["/x*"]), &someone(), &path("get", "/x*")), "the identical path");
    let deep: Vec<String> = (1..100).map(|depth| "/x".repeat(depth)).collect();
    let all = covering(&deep.iter().map(|url| &**url).collect::<Vec<_>>());
    assert!(matches(&all, &someone(), &path("get", &"/x".repeat(200))));
}

#[test]
fn fm_15_distinguisher() {
    let user = User::new("alice", [""; 0]);
    let request = resource("get", "", "pods", "shop");
    let by = |method: &str| {
        let method = FlowDistinguisherMethod { method: method.into() };
        distinguisher(Some(&method), Attributes { user: &user, request: &request })
    };
    assert_eq!(["ByUser", "ByNamespace", "ByMoon", ""].map(by), ["alice", "shop", "", ""]);
    assert_eq!(distinguisher(None, Attributes { user: &user, request: &request }), "");
}
