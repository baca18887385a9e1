//! What metrics and dumps tell of requests that come through the layer.

use crate::layer;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use evenkeel::clock::ManualClock;
use evenkeel::debug::RequestColumns;
use evenkeel::digest::{Route, RouteTable};
use evenkeel::identify::Anonymous;
use evenkeel::work::{EstimateWork, EstimatorConfig, KubernetesWork, WorkInput};
use evenkeel::{FlowControl, RequestInfo, WorkEstimate};
use http::Request;
use layer::{Mock, ask, flow, get};
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;

/// The value of a series of the flow schema `strict` in the level of that name; `None` if there is none.
fn value(flow: &FlowControl, metric: &str, more: &str) -> Option<f64> {
    let mut registry = Registry::default();
    flow.register_metrics(&mut registry).unwrap();
    let mut page = String::new();
    text::encode(&mut page, &registry).unwrap();
    let labels = "flow_schema=\"strict\",priority_level=\"strict\"";
    let series = format!("apiserver_flowcontrol_{metric}{{{labels}{more}}} ");
    page.lines().find_map(|line| line.strip_prefix(&series)).map(|number| number.parse().unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_watch_is_told_from_ordinary_requests() {
    let flow = flow();
    let layer = flow.clone().layer(Anonymous).work(KubernetesWork::default());
    let (mock, _frames) = Mock::streaming();
    let _body = ask(&layer, &mock, get("/api/v1/pods?watch=1")).into_body();
    drop(ask(&layer, &Mock::empty(), get("/orders")));
    drop(ask(&layer, &Mock::empty(), get("/orders")));
    let executions = |kind: &str| value(&flow, "request_execution_seconds_count", &format!(",type=\"{kind}\""));
    assert_eq!((executions("watch"), executions("regular")), (Some(1.0), Some(2.0)));
    assert_eq!(value(&flow, "dispatched_requests_total", ""), Some(3.0));
    assert_eq!(value(&flow, "current_executing_requests", ""), Some(0.0));
}

#[tokio::test(start_paused = true)]
async fn bm_4_long_running_requests_have_metrics_of_their_own() {
    let page = |flow: &FlowControl| {
        let mut registry = Registry::default();
        flow.register_metrics(&mut registry).unwrap();
        let mut page = String::new();
        text::encode(&mut page, &registry).unwrap();
        page.lines().filter(|line| line.starts_with("evenkeel_long_running_")).map(str::to_owned).collect::<Vec<_>>()
    };
    let flow = flow();
    let layer = flow.clone().layer(Anonymous);
    let watch = || {
        let (mock, frames) = Mock::streaming();
        (ask(&layer, &mock, get("/api/v1/pods?watch=1")), frames)
    };
    drop(ask(&layer, &Mock::empty(), get("/orders")));
    assert_eq!(page(&flow), [""; 0], "nothing is shown of what nobody uses");

    let (first, _frames) = watch();
    let running = "evenkeel_long_running_requests{priority_level=\"strict\"}";
    let rejected = "evenkeel_long_running_rejected_requests_total{priority_level=\"strict\"}";
    assert_eq!(page(&flow), [format!("{running} 1")]);

    let annotated = "name: strict, annotations: {evenkeel.dev/max-long-running: '1'}";
    flow.apply(&*layer::ONE_SEAT.replacen("name: strict", annotated, 1)).unwrap();
    let (second, _frames) = watch();
    assert_eq!(second.status(), 429);
    let limit = "evenkeel_long_running_limit{priority_level=\"strict\"} 1".to_owned();
    assert_eq!(page(&flow), [format!("{running} 1"), limit.clone(), format!("{rejected} 1")]);
    assert_eq!(value(&flow, "dispatched_requests_total", ""), Some(2.0));
    for reason in ["queue-full", "concurrency-limit", "time-out"] {
        assert_eq!(value(&flow, "rejected_requests_total", &format!(",reason=\"{reason}\"")), None, "{reason}");
    }
    drop(first);
    assert_eq!(page(&flow), [format!("{running} 0"), limit, format!("{rejected} 1")]);
}

#[tokio::test(start_paused = true)]
async fn we_18_changes_sample_the_watches_that_they_concern() {
    let flow = flow();
    let layer = flow.clone().layer(Anonymous).work(KubernetesWork::default());
    let (mock, _frames) = Mock::streaming();
    let _body = ask(&layer, &mock, get("/api/v1/pods?watch=1")).into_body();
    for target in ["/api/v1/namespaces/a/pods", "/api/v1/namespaces/a/serviceaccounts/b/token"] {
        let create = Request::post(target).body(()).unwrap();
        drop(ask(&layer, &Mock::empty(), create));
    }
    // A token is made without a look at the watches (WE-17), and reads are no changes.
    assert_eq!(value(&flow, "watch_count_samples_count", ""), Some(1.0));
    assert_eq!(value(&flow, "watch_count_samples_sum", ""), Some(1.0));
}

/// Counts other watches every time it is asked.
struct Unsteady {
    asked: AtomicU64,
    kubernetes: KubernetesWork,
}

impl EstimateWork for Unsteady {
    fn estimate(&self, request: &WorkInput<'_>) -> WorkEstimate {
        self.kubernetes.estimate(request)
    }

    fn interested_watches(&self, _request: &RequestInfo<'_>, _extra: &()) -> Option<u64> {
        Some(20 + 100 * self.asked.fetch_add(1, Ordering::Relaxed))
    }
}

#[tokio::test(start_paused = true)]
async fn we_18_the_sample_and_the_estimate_see_the_same_watches() {
    let flow = flow();
    let layer = flow.clone().layer(Anonymous).work(Unsteady { asked: 0.into(), kubernetes: KubernetesWork::default() });
    drop(ask(&layer, &Mock::empty(), Request::post("/api/v1/namespaces/a/pods").body(()).unwrap()));
    assert_eq!(value(&flow, "watch_count_samples_sum", ""), Some(20.0));
    // Ten watches to a seat.
    assert_eq!(value(&flow, "work_estimated_seats_sum", ""), Some(2.0));
}

#[test]
fn we_15_numbers_of_objects_grow_old_by_the_clock_that_is_set_by_hand() {
    let clock = ManualClock::new();
    let builder = FlowControl::builder().kubernetes().server_concurrency(300).manual_clock(clock.clone());
    let flow = builder.objects(layer::ONE_SEAT).build();
    let work = KubernetesWork::with_manual_clock(EstimatorConfig::default(), clock.clone());
    work.set_objects("pods", 399, 10_000);
    let layer = flow.layer(Anonymous).work(work);
    let list = || {
        let sum = || value(&flow, "work_estimated_seats_sum", "").unwrap_or_default();
        let before = sum();
        drop(ask(&layer, &Mock::empty(), get("/api/v1/pods")));
        // Seats are whole numbers.
        format!("{}", sum() - before)
    };
    let fresh = list();
    clock.advance(Duration::from_secs(170));
    assert_eq!(list(), fresh);
    clock.advance(Duration::from_secs(20));
    assert_ne!(list(), fresh);
}

#[tokio::test(start_paused = true)]
async fn dumps_show_who_asks_for_what() {
    let flow = flow();
    let layer = flow.clone().layer(Anonymous);
    for path in ["/api/v1/namespaces/a/pods/b", "/api/v1/namespaces/c/secrets/d"] {
        // The second one has the box of the first.
        let mut stuck = layer::send(&layer, &Mock::stuck(), get(path));
        assert!(stuck.poll().is_none());
        let dump = flow.dump_requests(RequestColumns::WithDetails);
        assert_eq!(dump.matches(path).count(), 1, "{dump}");
        assert!(dump.contains("system:anonymous"), "{dump}");
        drop(stuck);
        assert!(!flow.dump_requests(RequestColumns::WithDetails).contains(path));
    }
}

#[tokio::test(start_paused = true)]
async fn ob_13_dumps_show_what_the_layer_made_of_a_request() {
    let flow = flow();
    let shown = |dump: &str| {
        let line = dump.lines().nth(1).unwrap_or_default();
        let cells: Vec<_> = line.split(',').map(|cell| cell.trim().to_owned()).collect();
        // Verb, namespace, name and resource.
        [11, 13, 14, 16].map(|column| cells.get(column).cloned().unwrap_or_default())
    };
    let orders = || get("/api/shops/17/orders");

    // As Kubernetes understands it, "shops" is a version.
    let kubernetes = flow.layer(Anonymous);
    let mut stuck = layer::send(&kubernetes, &Mock::stuck(), orders());
    assert!(stuck.poll().is_none());
    assert_eq!(shown(&flow.dump_requests(RequestColumns::WithDetails)), ["get", "", "orders", "17"]);
    drop(stuck);

    let table = RouteTable::new([Route::new("/api/shops/{namespace}/{resource}")]).unwrap();
    let routed = flow.layer(Anonymous).digest(table);
    let mut stuck = layer::send(&routed, &Mock::stuck(), orders());
    assert!(stuck.poll().is_none());
    assert_eq!(shown(&flow.dump_requests(RequestColumns::WithDetails)), ["list", "17", "", "orders"]);
    drop(stuck);

    let closure = flow.layer(Anonymous).digest_with(|parts| {
        Ok(RequestInfo { verb: "sell".into(), namespace: parts.uri.path()[11..13].into(), ..RequestInfo::default() })
    });
    let mut stuck = layer::send(&closure, &Mock::stuck(), orders());
    assert!(stuck.poll().is_none());
    assert_eq!(shown(&flow.dump_requests(RequestColumns::WithDetails)), ["sell", "17", "", ""]);
}
