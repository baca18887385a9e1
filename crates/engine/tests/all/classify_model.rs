//! The index against the plain walk, on random flow schemas and requests.
//!
//! All texts come from small alphabets, so that matches, near misses and odd entries are frequent.

use crate::linear;

use std::cell::Cell;

use evenkeel_api::v1::{
    FlowSchema, GroupSubject, NonResourcePolicyRule, PolicyRulesWithSubjects, ResourcePolicyRule,
    ServiceAccountSubject, Subject, UserSubject,
};
use evenkeel_engine::classify::Classifier;
use evenkeel_engine::{Attributes, RequestInfo, User};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::TestRunner;

const VERBS: [&str; 4] = ["get", "list", "*", ""];
const API_GROUPS: [&str; 4] = ["", "apps", "*", "example.com"];
const RESOURCES: [&str; 9] = ["pods", "pods/status", "status", "a", "a/b", "a/b/c", "b/c", "*", ""];
const NAMESPACES: [&str; 5] = ["", "shop", "kube-system", "*", "a:b"];
const NAMES: [&str; 10] = [
    "alice",
    "bob",
    "*",
    "",
    "system:serviceaccount:shop:x",
    "system:serviceaccount:shop:",
    "system:serviceaccount:a:b:x",
    "system:serviceaccount::x",
    "system:serviceaccount:shop",
    "x",
];
const URLS: [&str; 16] =
    ["*", "/", "/*", "", "/a", "/a/", "/a/*", "/a*", "/a/b", "/a/b/*", "/b", "//", "//*", "**", "/*/", "a/b"];
const PATHS: [&str; 14] =
    ["/", "", "/a", "/a/", "/a/b", "/a/b/", "/a/b/c", "/ab", "/a*", "//", "//a", "a/b", "*", "/*/x"];

fn text(alphabet: &'static [&'static str]) -> impl Strategy<Value = String> {
    select(alphabet).prop_map(str::to_owned)
}

fn list(alphabet: &'static [&'static str]) -> impl Strategy<Value = Vec<String>> {
    prop_oneof![8 => Just(vec!["*".to_owned()]), 8 => vec(text(alphabet), 1..5), 1 => Just(vec![])]
}

fn subject() -> impl Strategy<Value = Subject> {
    let kind = select(&["User", "User", "Group", "Group", "ServiceAccount", "ServiceAccount", "Robot"][..]);
    (kind, text(&NAMES), text(&NAMESPACES), prop::bool::weighted(0.9)).prop_map(|(kind, name, namespace, present)| {
        let mut subject = Subject { kind: kind.into(), ..Subject::default() };
        match kind {
            "Group" => subject.group = Some(GroupSubject { name }),
            "ServiceAccount" => subject.service_account = Some(ServiceAccountSubject { namespace, name }),
            _ => subject.user = Some(UserSubject { name }),
        }
        // The member of another kind must not count.
        if !present {
            subject.kind = "Group".into();
            subject.group = None;
        }
        subject
    })
}

fn resource_rule() -> impl Strategy<Value = ResourcePolicyRule> {
    (list(&VERBS), list(&API_GROUPS), list(&RESOURCES), any::<bool>(), list(&NAMESPACES)).prop_map(
        |(verbs, api_groups, resources, cluster_scope, namespaces)| ResourcePolicyRule {
            verbs,
            api_groups,
            resources,
            cluster_scope,
            namespaces,
        },
    )
}

fn non_resource_rule() -> impl Strategy<Value = NonResourcePolicyRule> {
    (list(&VERBS), vec(text(&URLS), 0..3))
        .prop_map(|(verbs, non_resource_urls)| NonResourcePolicyRule { verbs, non_resource_urls })
}

fn rule() -> impl Strategy<Value = PolicyRulesWithSubjects> {
    (vec(subject(), 0..5), vec(resource_rule(), 0..4), vec(non_resource_rule(), 0..3)).prop_map(
        |(subjects, resource_rules, non_resource_rules)| PolicyRulesWithSubjects {
            subjects,
            resource_rules,
            non_resource_rules,
        },
    )
}

fn schema() -> impl Strategy<Value = FlowSchema> {
    vec(rule(), 0..4).prop_map(|rules| {
        let mut schema = FlowSchema::default();
        schema.spec.rules = rules;
        schema
    })
}

fn user() -> impl Strategy<Value = User> {
    (text(&NAMES), vec(text(&NAMES), 0..4)).prop_map(|(name, groups)| User::new(name, groups))
}

fn request() -> impl Strategy<Value = RequestInfo<'static>> {
    let subresource = select(&["", "", "", "status", "b", "b/c", "c"][..]);
    let resource = (text(&API_GROUPS), text(&RESOURCES), subresource, text(&NAMESPACES));
    (any::<bool>(), text(&VERBS), resource, text(&PATHS)).prop_map(
        |(is_resource_request, verb, (api_group, resource, subresource, namespace), path)| RequestInfo {
            is_resource_request,
            path: path.into(),
            verb: verb.into(),
            api_group: api_group.into(),
            namespace: namespace.into(),
            resource: resource.into(),
            subresource: subresource.into(),
            ..RequestInfo::default()
        },
    )
}

/// Compares on all requests, and counts those that match something.
fn compare(schemas: &[&FlowSchema], requests: &[(User, RequestInfo<'_>)]) -> Result<usize, TestCaseError> {
    let classifier = Classifier::compile(schemas.iter().copied());
    let mut matched = 0;
    for (user, request) in requests {
        let attributes = Attributes { user, request };
        let expected = linear::classify(schemas, attributes);
        let actual = classifier.classify(attributes).map(usize::from);
        prop_assert_eq!(
            actual,
            expected,
            "(left: the index, right: the plain walk) {:?} by {:?}; expected {:#?}; actual {:#?}",
            request,
            user,
            expected.and_then(|index| schemas.get(index)),
            actual.and_then(|index| schemas.get(index))
        );
        matched += usize::from(expected.is_some());
    }
    Ok(matched)
}

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// 3,000 sets of schemas with 20 requests each.
#[test]
fn random_schemas() {
    let (matched, all) = (Cell::new(0), Cell::new(0));
    let inputs = (vec(schema(), 0..12), vec((user(), request()), 20));
    let outcome = TestRunner::new(cases(3000)).run(&inputs, |(schemas, requests)| {
        let schemas: Vec<_> = schemas.iter().collect();
        matched.set(matched.get() + compare(&schemas, &requests)?);
        all.set(all.get() + requests.len());
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
    let (matched, all) = (matched.get(), all.get());
    println!("{matched} of {all} requests matched");
    assert!(matched * 10 > all * 2 && matched * 10 < all * 8, "{matched} of {all} matched: hardly a test");
}

/// What thousands of schemas differ in, so that their clauses fill several blocks.
#[derive(Debug, Clone, Copy)]
enum Shape {
    User,
    Group,
    ServiceAccount,
    Namespace,
    Resource,
    Verb,
    ApiGroup,
    Path,
}

const SHAPES: [Shape; 8] = [
    Shape::User,
    Shape::Group,
    Shape::ServiceAccount,
    Shape::Namespace,
    Shape::Resource,
    Shape::Verb,
    Shape::ApiGroup,
    Shape::Path,
];

#[rustfmt::skip] // a table
fn schema_of(shape: Shape, number: usize) -> FlowSchema {
    let name = format!("x-{number}");
    let builder = FlowSchema::builder(&*name).priority_level("p");
    match shape {
        Shape::User => builder.rule(|r| r.user(name).everything()),
        Shape::Group => builder.rule(|r| r.group(name).everything()),
        Shape::ServiceAccount => builder.rule(|r| r.service_account(name, "*").everything()),
        Shape::Namespace => builder.rule(|r| r.group("all").resources(["*"]).namespaces([name]).verbs(["*"])),
        Shape::Resource => builder.rule(|r| r.group("all").resources([name]).verbs(["*"])),
        Shape::Verb => builder.rule(|r| r.group("all").resources(["*"]).verbs([name])),
        Shape::ApiGroup => builder.rule(|r| r.group("all").resources(["*"]).api_groups([name]).verbs(["*"])),
        Shape::Path => builder.rule(|r| r.group("all").non_resource_urls([format!("/{name}")]).verbs(["*"])),
    }
    .build()
}

fn request_of(shape: Shape, number: usize) -> (User, RequestInfo<'static>) {
    let name = format!("x-{number}");
    let mut user = User::new("someone", ["other", "all"]);
    let mut request = RequestInfo {
        is_resource_request: !matches!(shape, Shape::Path),
        verb: "get".into(),
        resource: "pods".into(),
        namespace: "shop".into(),
        path: format!("/{name}/below").into(),
        ..RequestInfo::default()
    };
    match shape {
        Shape::User => user.name = name.into(),
        Shape::Group => user.groups.push(name.into()),
        Shape::ServiceAccount => user.name = format!("system:serviceaccount:{name}:default").into(),
        Shape::Namespace => request.namespace = name.into(),
        Shape::Resource => request.resource = name.into(),
        Shape::Verb => request.verb = name.into(),
        Shape::ApiGroup => request.api_group = name.into(),
        Shape::Path => {}
    }
    (user, request)
}

/// Schemas of one shape, and some of the others strewn in: 10,000 in all, each name used by about three of them.
#[test]
fn many_schemas_of_each_shape() {
    const MANY: usize = 10_000;
    for shape in SHAPES {
        let inputs = (vec(0..MANY / 3, MANY), vec((0..SHAPES.len(), 0..MANY / 3), 30), vec(0..MANY / 2, 150));
        let outcome = TestRunner::new(cases(2)).run(&inputs, |(numbers, others, asked)| {
            let mut schemas: Vec<_> = numbers.iter().map(|number| schema_of(shape, *number)).collect();
            for (place, (other, number)) in others.iter().enumerate() {
                schemas[place * 331] = schema_of(SHAPES[*other], *number);
            }
            let mut requests: Vec<_> = asked.iter().map(|number| request_of(shape, *number)).collect();
            requests.extend(others.iter().map(|(other, number)| request_of(SHAPES[*other], *number)));
            let matched = compare(&schemas.iter().collect::<Vec<_>>(), &requests)?;
            prop_assert!(matched > 50, "{} of {} matched", matched, requests.len());
            Ok(())
        });
        outcome.unwrap_or_else(|error| panic!("{shape:?}: {error}"));
    }
}
