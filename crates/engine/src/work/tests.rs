//! The vectors of the specification for lists (WE-14) and for watches (WE-23), and what they leave out.

use super::*;
use crate::digest::{Kubernetes, Query};
use crate::time::{Instant, SECOND};
use crate::{RequestInfo, WorkEstimate};

struct Fixed(Statistics, u64);

impl ObjectStatistics for Fixed {
    fn statistics(&self, _: &str, _: &str, _: Instant) -> Statistics {
        self.0
    }
}

impl WatchInterest for Fixed {
    fn interested(&self, _: &RequestInfo<'_>) -> u64 {
        self.1
    }
}

fn fresh(count: i64, average_bytes: i64) -> Statistics {
    Statistics::Fresh { count, average_bytes }
}

fn estimate(
    estimator: &Estimator,
    target: &str,
    verb: &str,
    known: &Fixed,
    cap: u32,
    consistent: bool,
) -> WorkEstimate {
    let mut request = Kubernetes::default().digest("GET", target).unwrap();
    request.verb = verb.to_owned().into();
    let circumstances = Circumstances {
        now: Instant::from_nanos(SECOND),
        level_cap: Some(cap),
        objects: known,
        watches: known,
        consistent_reads_from_cache: consistent,
    };
    estimator.estimate(Some(&request), Query::of_target(target), &circumstances)
}

#[test]
fn we_14_vectors() {
    const EXACT: &str = "resourceVersion=1&resourceVersionMatch=Exact";
    const NOT_OLDER: &str = "resourceVersion=1&resourceVersionMatch=NotOlderThan";
    const SENT: &str = "resourceVersion=1&sendInitialEvents=true";
    const SELECTED: &str = "labelSelector=app%3Dx&resourceVersion=0&limit=29";
    let [by_size, by_count] = [Estimator::default(), Estimator::new(EstimatorConfig::by_count())];
    for (verb, name, query, statistics, cap, seats) in [
        ("list", "", "", fresh(399, 10_000), 100, [40, 10, 8]),
        ("list", "", "limit=399", fresh(699, 10_000), 100, [40, 10, 8]),
        ("list", "", "limit=399&resourceVersion=1", fresh(699, 10_000), 100, [40, 40, 8]),
        ("list", "", "resourceVersion=1", fresh(699, 10_000), 100, [10, 10, 7]),
        ("list", "", "resourceVersion=1", fresh(69, 10_000), 100, [7, 7, 1]),
        ("list", "", "resourceVersion=0&limit=20", fresh(399, 10_000), 100, [2, 2, 4]),
        ("list", "", "resourceVersion=0", fresh(799, 10_000), 100, [10, 10, 8]),
        ("list", "", "continue=t&limit=399", fresh(699, 10_000), 100, [40, 40, 8]),
        ("list", "", EXACT, fresh(5000, 10_000), 20, [20, 20, 10]),
        ("list", "", NOT_OLDER, fresh(79, 10_000), 100, [8, 8, 1]),
        ("list", "", "resourceVersionMatch=foo", fresh(200, 10_000), 100, [20, 20, 4]),
        ("list", "", "limit=abc", fresh(799, 10_000), 100, [100, 100, 10]),
        ("list", "", "labelSelector=app%3Dx", fresh(799, 10_000), 100, [80, 10, 10]),
        ("list", "", "labelSelector=app%3Dx&limit=49", fresh(799, 10_000), 100, [40, 5, 9]),
        ("list", "", "labelSelector=app%3Dx&limit=699", fresh(799, 10_000), 100, [70, 10, 10]),
        ("list", "", SELECTED, fresh(799, 10_000), 100, [3, 3, 8]),
        ("list", "", "", fresh(1, 0), 100, [15, 10, 1]),
        ("list", "", "resourceVersion=0&limit=499", fresh(1, 0), 100, [10, 10, 1]),
        ("list", "", "", fresh(0, 0), 100, [1, 1, 1]),
        ("list", "", "", Statistics::Stale, 100, [100, 10, 10]),
        ("list", "", "limit=1", Statistics::Stale, 100, [15, 10, 1]),
        ("list", "", "", Statistics::NeverRecorded, 100, [1, 1, 1]),
        ("list", "/p1", "", fresh(799, 200_000), 100, [2, 2, 1]),
        ("list", "/p1", "", fresh(799, 1_500_000), 100, [15, 10, 1]),
        ("watch", "", "", fresh(799, 1_000), 100, [8, 8, 8]),
        ("watch", "", "resourceVersion=1", fresh(799, 1_000), 100, [1, 1, 1]),
        ("watch", "", SENT, fresh(799, 1_000), 100, [8, 8, 8]),
        ("watch", "", "resourceVersion=0", fresh(79_900, 10_000), 100, [10, 10, 10]),
    ] {
        let target = format!("/api/v1/pods{name}?{query}");
        let known = Fixed(statistics, 1000);
        let estimates = [(&by_size, false), (&by_size, true), (&by_count, false)]
            .map(|(estimator, consistent)| estimate(estimator, &target, verb, &known, cap, consistent));
        assert_eq!(estimates, seats.map(WorkEstimate::seats), "{verb} {target} {statistics:?}");
    }
}

#[test]
fn we_3_other_verbs_cost_the_minimum_and_watches_too_without_the_gate() {
    let known = Fixed(fresh(100_000, 10_000), 1000);
    let plain = EstimatorConfig {
        seats_min: 2,
        watch_costs_like_list: false,
        mutating_costs_by_watches: false,
        ..EstimatorConfig::default()
    };
    let plain = Estimator::new(plain);
    for verb in ["get", "deletecollection", "proxy", "", "post", "put", "watch", "create", "patch"] {
        assert_eq!(estimate(&plain, "/api/v1/pods", verb, &known, 50, false), WorkEstimate::seats(2), "{verb}");
    }
    let usual = Estimator::default();
    for verb in ["create", "update", "patch", "delete"] {
        assert_eq!(estimate(&usual, "/api/v1/pods", verb, &known, 50, false).final_seats, 10, "{verb}");
        let token = estimate(&usual, "/api/v1/namespaces/a/serviceaccounts/b/token", verb, &known, 50, false);
        assert_eq!(token, WorkEstimate::ONE_SEAT, "WE-17");
    }
}

#[test]
fn numbers_that_cannot_be_do_no_harm() {
    let usual = Estimator::default();
    let counts = Estimator::new(EstimatorConfig::by_count());
    for (count, size, seats) in [(i64::MAX, i64::MAX, 100), (i64::MIN, 1, 1), (-1, -1, 1), (i64::MIN, i64::MIN, 1)] {
        let known = Fixed(fresh(count, size), 0);
        for query in ["", "?labelSelector=a", "?limit=-1", "?limit=9223372036854775807"] {
            let target = format!("/api/v1/pods{query}");
            assert_eq!(
                estimate(&usual, &target, "list", &known, 0, false).initial_seats,
                seats,
                "{count} {size} {query}"
            );
            assert!(estimate(&counts, &target, "list", &known, 0, false).initial_seats <= 10);
        }
    }
}

fn register(watches: &mut WatchCounts, target: &str) -> Option<WatchRegistration> {
    let request = Kubernetes::default().digest("GET", target).unwrap();
    watches.register(&request, Query::of_target(target))
}

fn interested(watches: &WatchCounts, method: &str, target: &str) -> u64 {
    watches.interested(&Kubernetes::default().digest(method, target).unwrap())
}

#[test]
fn we_23_vectors() {
    let mut watches = WatchCounts::default();
    let mut registrations: Vec<_> = [
        "/api/v1/pods?watch=1",
        "/api/v1/namespaces/foo/pods?watch=1",
        "/api/v1/namespaces/foo/pods?watch=1&fieldSelector=metadata.name=mypod",
        "/api/v1/watch/namespaces/bar/pods/mypod",
        "/apis/group/v1/namespaces/foo/pods?watch=1",
        "/apis/group/v1/namespaces/bar/pods?watch=1&fieldSelector=metadata.name=mypod",
    ]
    .map(|target| register(&mut watches, target).unwrap())
    .into();
    assert_eq!(register(&mut watches, "/api/v1/pods"), None, "WE-20: a list is no watch");

    let vectors = [
        ("POST", "/api/v1/namespaces/foo/pods", 2),
        ("PUT", "/api/v1/namespaces/foo/pods/mypod", 3),
        ("PATCH", "/api/v1/namespaces/foo/pods/mypod", 3),
        ("DELETE", "/api/v1/namespaces/foo/pods/mypod", 3),
        ("PUT", "/api/v1/namespaces/foo/pods/otherpod", 2),
        ("POST", "/api/v1/namespaces/bar/pods", 1),
        ("PUT", "/api/v1/namespaces/bar/pods/mypod", 2),
        ("PUT", "/apis/group/v1/namespaces/foo/pods/mypod", 1),
        ("PUT", "/apis/group/v1/namespaces/bar/pods/mypod", 1),
        ("PUT", "/apis/group/v1/namespaces/bar/pods/otherpod", 0),
        ("GET", "/api/v1/namespaces/foo/pods/mypod", 0),
        ("GET", "/api/v1/namespaces/foo/pods", 0),
        ("GET", "/api/v1/namespaces/foo/pods?watch=1", 0),
        ("GET", "/api/v1/proxy/namespaces/foo/pods/mypod", 0),
    ];
    for (method, target, count) in vectors {
        assert_eq!(interested(&watches, method, target), count, "{method} {target}");
    }

    let on_nodes = ["", "node1"].map(|node| {
        register(&mut watches, &format!("/api/v1/namespaces/foo/pods?watch=1&fieldSelector=spec.nodeName%3D{node}"))
    });
    assert!(on_nodes[0].is_some() && on_nodes[1].is_none(), "WE-21");
    for (method, target, count) in vectors {
        let more = u64::from(count > 0 && target.starts_with("/api/v1/namespaces/foo/"));
        assert_eq!(interested(&watches, method, target), count + more, "{method} {target}");
    }

    registrations.extend(on_nodes.into_iter().flatten());
    for registration in registrations {
        assert!(!watches.is_empty());
        watches.forget(registration);
    }
    assert!(watches.is_empty(), "nothing is kept of watches that have ended");
}

#[test]
fn we_22_a_watch_on_one_namespace_object_is_missed() {
    let mut watches = WatchCounts::default();
    let watch = register(&mut watches, "/api/v1/namespaces?watch=1&fieldSelector=metadata.name=foo").unwrap();
    assert_eq!(interested(&watches, "PUT", "/api/v1/namespaces/foo"), 0);
    watches.forget(watch);
    let watch = register(&mut watches, "/api/v1/nodes?watch=1&fieldSelector=metadata.name=n1").unwrap();
    assert_eq!(interested(&watches, "PUT", "/api/v1/nodes/n1"), 1);
    assert_eq!(interested(&watches, "POST", "/api/v1/nodes"), 0);
    // A registration of another set of counts takes nothing away.
    WatchCounts::default().forget(watch);
}

#[test]
fn we_21_only_a_selector_that_decodes_names_a_node() {
    let mut watches = WatchCounts::default();
    for (query, is_counted) in [
        ("fieldSelector=spec.nodeName%3Dn1", false),
        ("fieldSelector=spec.nodeName%3Dn1&limit=bad", true),
        ("fieldSelector=spec.nodeName%3Dn1,bad", true),
        ("fieldSelector=spec.nodeName%3Dn1&labelSelector=!!", true),
        ("fieldSelector=spec.nodeName!%3Dn1", true),
    ] {
        let registration = register(&mut watches, &format!("/apis/any/v1/pods?watch=1&{query}"));
        assert_eq!(registration.is_some(), is_counted, "{query}");
    }
    assert!(register(&mut watches, "/api/v1/nodes?watch=1&fieldSelector=spec.nodeName%3Dn1").is_some());
}
