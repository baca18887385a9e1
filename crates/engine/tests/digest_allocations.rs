//! Ordinary requests are digested and estimated without allocating.

use evenkeel_counting_allocator::{Counting, allocations};
use evenkeel_engine::digest::routes::{Attribute, Route, RouteTable};
use evenkeel_engine::digest::{FieldSelector, Kubernetes, LabelSelector, Query};
use evenkeel_engine::time::{Instant, SECOND};
use evenkeel_engine::work::{Circumstances, Estimator, ObjectCounts, WatchCounts};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn the_counter_counts() {
    assert_eq!(allocations(|| drop(std::hint::black_box(Box::new(1)))), 1);
}

#[test]
fn ordinary_requests_allocate_nothing() {
    let kubernetes = Kubernetes::default();
    let estimator = Estimator::default();
    let mut objects = ObjectCounts::default();
    let mut watches = WatchCounts::default();
    for key in ["pods", "deployments.apps"] {
        objects.set(key, 5000, 2000, Instant::from_nanos(0));
    }
    let informer = "/apis/apps/v1/deployments?watch=1";
    let registration = watches.register(&kubernetes.digest("GET", informer).unwrap(), Query::of_target(informer));
    let circumstances = Circumstances {
        now: Instant::from_nanos(SECOND),
        level_cap: Some(20),
        objects: &objects,
        watches: &watches,
        consistent_reads_from_cache: true,
    };
    for (method, target) in [
        ("GET", "/healthz"),
        ("OPTIONS", "/a/b/c"),
        ("GET", "/api/v1/namespaces/shop/pods/web-1"),
        ("GET", "/api/v1/pods?limit=500&resourceVersion=0"),
        ("GET", "/apis/apps/v1/deployments?watch=true&resourceVersion=12&allowWatchBookmarks=true&timeoutSeconds=300"),
        ("GET", "/api/v1/pods?labelSelector=app=web,!canary&fieldSelector=metadata.name=web-1,spec.nodeName!=n1"),
        ("POST", "/api/v1/namespaces/shop/pods"),
        ("PUT", "/apis/apps/v1/namespaces/shop/deployments/web/status"),
        ("PATCH", "/apis/apps/v1/namespaces/shop/deployments/web?fieldManager=kubectl"),
        ("DELETE", "/api/v1/namespaces/shop/pods?labelSelector=app=web"),
        ("GET", "/api/v1/watch/namespaces/shop/pods/web-1"),
    ] {
        let count = allocations(|| {
            let request = kubernetes.digest(method, target).unwrap();
            std::hint::black_box(estimator.estimate(Some(&request), Query::of_target(target), &circumstances));
        });
        assert_eq!(count, 0, "{method} {target}");
    }
    watches.forget(registration.unwrap());
}

/// What a malformed selector costs must not grow with its faults: anybody may send one.
#[test]
fn malformed_selectors_are_not_put_into_words_to_be_ignored() {
    let kubernetes = Kubernetes::default();
    for (selector, message_allocations) in [("a,".repeat(32_768), 2), ("a=b=c,".repeat(10_000), 0)] {
        let target = format!("/api/v1/pods?fieldSelector={selector}");
        let count = allocations(|| drop(std::hint::black_box(kubernetes.digest("GET", &target))));
        assert_eq!(count, 0, "to digest");
        let count = allocations(|| drop(std::hint::black_box(FieldSelector::parse(&selector))));
        assert_eq!(count, message_allocations, "to make the one error that is told");
    }
    let values: Vec<_> = (0..10_000).map(|number| format!("-{number}")).collect();
    let selector = format!("a in ({})", values.join(","));
    let mut is_valid = true;
    let count = allocations(|| is_valid = LabelSelector::is_valid(&selector));
    assert!(!is_valid && count < 20, "{count} allocations: no more than a list of values takes to grow");
}

#[test]
fn route_tables_allocate_nothing_for_requests() {
    let table = RouteTable::new([
        Route::new("/v2/tenants/{namespace}/{resource}"),
        Route::new("/v2/tenants/{namespace}/{resource}/{name}"),
        Route::new("/v2/tenants/{_}/orders/{name...}").fix(Attribute::Resource, "orders").method("GET").verb("read"),
    ])
    .unwrap();
    for target in ["/v2/tenants/a/orders", "/v2/tenants/a/orders/1/2", "/v2/tenants/a/carts/1?x=%20", "/other"] {
        let count = allocations(|| drop(std::hint::black_box(table.digest("GET", target))));
        assert_eq!(count, 0, "{target}");
    }
}
