//! Classification, distinguisher and hash allocate nothing.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use evenkeel_api::bootstrap;
use evenkeel_engine::classify::{Classifier, distinguisher, match_order};
use evenkeel_engine::{Attributes, FlowHasher, RequestInfo, User};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[expect(
    unsafe_code,
    reason = "an allocator that counts cannot be written without; every call goes on to the system's"
)]
// SAFETY: everything is handed on as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: as promised to this function.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as promised to this function.
        unsafe { System.dealloc(pointer, layout) }
    }
}

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

    let before = ALLOCATIONS.get();
    let mut matched = 0;
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
    assert_eq!(ALLOCATIONS.get() - before, 0);
    assert_eq!(matched, 16, "all but those of the last user");
    drop(vec![0; 10]);
    assert!(ALLOCATIONS.get() > before, "the allocator counts");
}
