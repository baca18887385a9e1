//! Classification, distinguisher and hash allocate nothing.

use evenkeel_api::bootstrap;
use evenkeel_counting_allocator::{Counting, allocations};
use evenkeel_engine::classify::{Classifier, distinguisher, match_order};
use evenkeel_engine::{Attributes, FlowHasher, RequestInfo, User};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn nothing_is_allocated() {
    let mut schemas: Vec<_> = bootstrap::flow_schemas().iter().collect();
    schemas.sort_by(|a, b| match_order(a, b));
    let hashers: Vec<_> = schemas.iter().map(|schema| FlowHasher::new(schema.name())).collect();
    let classifier = Classifier::compile(schemas.iter().copied());

    let many_groups: Vec<String> = (0..100).map(|number| format!("group-{number}")).collect();
    let users = [
        User::new("alice", many_groups.iter().map(|group| &**group).chain(["system:authenticated"])),
        User::new("system:serviceaccount:kube-system:coredns", ["system:serviceaccounts", "system:authenticated"]),
        User::new("system:node:node-1", ["system:nodes", "system:authenticated"]),
        User::new("system:kube-scheduler", ["system:authenticated"; 40]),
        User::new("nobody", [""; 0]),
    ];
    let long = "x".repeat(5000);
    let requests = [
        RequestInfo { verb: "get".into(), path: "/healthz/etcd".into(), ..RequestInfo::default() },
        RequestInfo { verb: "get".into(), path: "/a/b/c/d/e/f/g".into(), ..RequestInfo::default() },
        RequestInfo {
            is_resource_request: true,
            verb: "patch".into(),
            resource: "nodes".into(),
            subresource: "status".into(),
            ..RequestInfo::default()
        },
        RequestInfo {
            is_resource_request: true,
            verb: "get".into(),
            resource: (&*long).into(),
            subresource: (&*long).into(),
            namespace: (&*long).into(),
            ..RequestInfo::default()
        },
    ];

    let mut matched = 0;
    let count = allocations(|| {
        for user in &users {
            for request in &requests {
                let attributes = Attributes { user, request };
                if let Some(index) = classifier.classify(attributes) {
                    let text = distinguisher(schemas[index.get()].spec.distinguisher_method.as_ref(), attributes);
                    std::hint::black_box(hashers[index.get()].hash(text));
                    matched += 1;
                }
            }
        }
    });
    assert_eq!(count, 0);
    assert_eq!(matched, 16, "all but those of the last user");
    assert_eq!(allocations(|| drop(std::hint::black_box(vec![0; 10]))), 1, "the allocator counts");
}
