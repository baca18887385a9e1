//! The plain preset: what an ordinary HTTP service gets without saying anything.

use crate::layer;

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};

use evenkeel::api::v1::{FlowSchema, PriorityLevelConfiguration};
use evenkeel::identify::{Anonymous, TrustedHeaders};
use evenkeel::objects::IntoObjects;
use evenkeel::{FlowControl, Preset};
use evenkeel_api::decode::Problems;
use evenkeel_engine::{Attributes, RequestInfo, User, WorkEstimate};
use http::{HeaderValue, Request, StatusCode};

use layer::{Mock, ask, get, send};

fn flow(seats: u32) -> FlowControl {
    FlowControl::builder().server_concurrency(seats).drive_by_hand().build()
}

fn level_of(flow: &FlowControl, user: &User, method: &str, path: &str) -> String {
    let request =
        RequestInfo { verb: method.to_owned().into(), path: path.to_owned().into(), ..RequestInfo::default() };
    let mut admit = Box::pin(flow.arrive(Attributes { user, request: &request }, WorkEstimate::ONE_SEAT));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match admit.as_mut().poll(&mut context) {
        std::task::Poll::Ready(Ok(permit)) => permit.priority_level().to_owned(),
        std::task::Poll::Ready(Err(rejected)) => rejected.to_string(),
        std::task::Poll::Pending => "waits".to_owned(),
    }
}

#[test]
fn all_seats_are_in_one_level_and_no_more_requests_run() {
    let flow = flow(8);
    let layer = flow.layer(Anonymous);
    let mock = Mock::stuck();
    let mut answers: Vec<_> = (0..20).map(|_| send(&layer, &mock, get("/orders"))).collect();
    assert!(answers.iter_mut().all(|answer| answer.poll().is_none()));
    let level = flow.status().into_iter().find(|level| level.name == "everyone").unwrap();
    assert_eq!((level.limits.nominal, level.kept_seats, mock.calls()), (8, 2, 6), "two are kept for other clients");
    assert_eq!(flow.preset(), Preset::Plain);
}

#[test]
fn urls_of_kubernetes_mean_nothing() {
    let flow = flow(1);
    let layer = flow.layer(Anonymous);
    for url in ["/api/v1/pods?watch=1", "/debug/pprof/heap", "/api/v1/namespaces/a/pods/b/log"] {
        let mock = Mock::stuck();
        let mut first = send(&layer, &mock, get(url));
        assert!(first.poll().is_none());
        let mut second = send(&layer, &mock, get(url));
        assert!(second.poll().is_none());
        assert_eq!(mock.calls(), 1, "{url} takes a seat, and keeps it");
    }
}

#[test]
fn a_flow_control_for_kubernetes_reads_them() {
    let flow = FlowControl::builder().kubernetes().server_concurrency(1).drive_by_hand().build();
    let mock = Mock::stuck();
    let layer = flow.layer(Anonymous);
    let mut answers: Vec<_> = (0..3).map(|_| send(&layer, &mock, get("/debug/pprof/heap"))).collect();
    assert!(answers.iter_mut().all(|answer| answer.poll().is_none()));
    assert_eq!(mock.calls(), 3, "they are not limited");
}

fn named(user: &'static str, groups: &[&'static str]) -> Request<()> {
    let mut request = get("/orders");
    request.headers_mut().insert("x-remote-user", HeaderValue::from_static(user));
    for group in groups {
        request.headers_mut().append("x-remote-group", HeaderValue::from_static(group));
    }
    request
}

#[test]
fn nobody_names_itself_into_the_system() {
    let flow = flow(1);
    let layer = flow.layer(TrustedHeaders::default());
    let mock = Mock::empty();
    for user in ["system:admin", "system:anonymous", "system:serviceaccount:a:b"] {
        assert_eq!(ask(&layer, &mock, named(user, &[])).status(), StatusCode::UNAUTHORIZED, "{user}");
    }
    assert_eq!(ask(&layer, &mock, named("alice", &["staff"])).status(), StatusCode::OK);

    // The one seat is taken, so that only the exempt get through.
    let stuck = Mock::stuck();
    let mut holder = send(&layer, &stuck, named("bob", &[]));
    assert!(holder.poll().is_none());
    let mut claims = send(&layer, &mock, named("alice", &["system:masters"]));
    assert!(claims.poll().is_none(), "the group is left out");
    let mut masters = send(&layer.clone().allow_system_names(), &mock, named("alice", &["system:masters"]));
    assert!(masters.poll().is_some());
}

#[test]
fn health_checks_get_through_whatever_the_objects_are() {
    let flow = FlowControl::builder().server_concurrency(1).exempt_paths(["/healthz"]).drive_by_hand().build();
    let user = User::new("probe", ["system:unauthenticated"]);
    let exempt = |flow: &FlowControl| {
        assert_eq!(level_of(flow, &user, "get", "/healthz"), "exempt");
        assert_eq!(level_of(flow, &user, "head", "/healthz/ready"), "exempt");
        assert_ne!(level_of(flow, &user, "post", "/healthz"), "exempt");
        assert_ne!(level_of(flow, &user, "get", "/orders"), "exempt");
    };
    exempt(&flow);
    let level = PriorityLevelConfiguration::builder("other").limited(|l| l.shares(1).reject()).build();
    flow.apply(level).unwrap();
    exempt(&flow);
}

#[test]
fn a_path_that_would_exempt_every_request_is_refused() {
    for path in ["/", "", "healthz"] {
        let invalid = FlowControl::builder().exempt_paths([path, "/livez"]).drive_by_hand().try_build().unwrap_err();
        let text = invalid.to_string();
        assert!(text.contains(&format!("the path {path:?} cannot be exempt: begin paths with a slash")), "{text}");
        assert_eq!(invalid.iter().count(), 1);
    }
    let user = User::new("probe", ["system:unauthenticated"]);
    let flow = FlowControl::builder().exempt_paths(["/*"]).drive_by_hand().build();
    assert_eq!(level_of(&flow, &user, "get", "/orders"), "exempt", "it is meant so");
}

/// It once kept the thread busy for ever.
#[test]
fn a_request_may_take_no_seats() {
    let flow = FlowControl::builder().server_concurrency(1).drive_by_hand().build();
    let (user, info) = (User::new("alice", ["system:authenticated"]), RequestInfo::default());
    let attributes = Attributes { user: &user, request: &info };
    let mut context = Context::from_waker(Waker::noop());
    let mut arrive = |seats| pin!(flow.arrive(attributes, WorkEstimate::seats(seats))).poll(&mut context);
    let (free, one) = (arrive(0), arrive(1));
    assert!(free.is_ready() && one.is_ready(), "the first takes no seat from the second");
    assert!(arrive(0).is_ready(), "it starts although no seat is free");
    drop((free, one));
    assert!(flow.status().iter().all(evenkeel::status::LevelStatus::is_idle));
}

#[test]
fn mandatory_levels_are_part_of_every_set_of_objects() {
    for builder in [FlowControl::builder(), FlowControl::builder().kubernetes()] {
        let schema = |name: &str, level: &str, path: &str| {
            let schema = FlowSchema::builder(name).priority_level(level);
            schema.rule(|r| r.user("*").non_resource_urls([path]).verbs(["get"])).build()
        };
        let bare = "
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: exempt}
spec: {type: Exempt}
";
        let user = User::new("alice", ["system:authenticated"]);
        let builder = builder.server_concurrency(10).drive_by_hand();
        let schemas = [schema("probes", "exempt", "/healthz"), schema("rest", "catch-all", "/rest")];
        for builder in [builder.clone(), builder.objects(bare)] {
            let flow = builder.objects(schemas.to_vec()).build();
            let report = flow.report();
            assert!(report.dangling.is_empty(), "{report:?}");
            assert_eq!(report.unusable, []);
            assert_eq!(level_of(&flow, &user, "get", "/healthz"), "exempt");
            assert_eq!(level_of(&flow, &user, "get", "/rest"), "catch-all");
        }
    }
}

const BLOCKED: &str = "
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: blocked}
spec: {type: Limited, limited: {nominalConcurrencyShares: 0, limitResponse: {type: Reject}}}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: blocked}
spec:
  matchingPrecedence: 100
  priorityLevelConfiguration: {name: blocked}
  rules:
  - subjects: [{kind: User, user: {name: mallory}}]
    nonResourceRules: [{verbs: [post, put], nonResourceURLs: ['*']}]
";

#[test]
fn a_user_is_blocked_by_method() -> Result<(), Problems> {
    let objects = BLOCKED.into_objects(Preset::Plain)?;
    let flow = FlowControl::builder().server_concurrency(10).drive_by_hand();
    let flow = flow.objects(evenkeel::objects::Objects::from(Preset::Plain));
    let flow = flow.objects(objects).build();
    let [mallory, alice] = ["mallory", "alice"].map(|name| User::new(name, ["system:authenticated"]));
    for method in ["post", "put"] {
        for _ in 0..3 {
            assert!(level_of(&flow, &mallory, method, "/orders").contains("concurrency-limit"), "{method}");
        }
        assert_eq!(level_of(&flow, &alice, method, "/orders"), "everyone");
    }
    assert_eq!(level_of(&flow, &mallory, "get", "/orders"), "everyone");

    let problems = BLOCKED.into_objects(Preset::Kubernetes).unwrap_err().to_string();
    assert!(problems.contains("spec.rules[0].nonResourceRules[0].verbs: Unsupported value"), "{problems}");
    let verbs = BLOCKED.replace("[post, put]", "[list]").into_objects(Preset::Plain).unwrap_err().to_string();
    assert!(
        verbs.contains(r#"supported values: "connect", "delete", "get", "head", "options", "patch", "post""#),
        "{verbs}"
    );
    Ok(())
}

#[tokio::test]
async fn responses_have_no_headers_of_kubernetes() {
    let manifest = "
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: closed, uid: level-1}
spec: {type: Limited, limited: {nominalConcurrencyShares: 0, limitResponse: {type: Reject}}}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: closed, uid: schema-1}
spec:
  matchingPrecedence: 100
  priorityLevelConfiguration: {name: closed}
  rules:
  - subjects: [{kind: Group, group: {name: system:unauthenticated}}]
    nonResourceRules: [{verbs: ['*'], nonResourceURLs: [/closed]}]
";
    let objects = evenkeel_engine::controller::Objects::from(Preset::Plain);
    let flow = FlowControl::builder().objects(manifest).objects(objects).build();
    let inner = tower::service_fn(async |_: http::Request<()>| {
        Ok::<_, std::convert::Infallible>(http::Response::new(http_body_util::Empty::<bytes::Bytes>::new()))
    });
    let names = async |path: &str| {
        let service = tower::Layer::layer(&flow.layer(evenkeel::identify::Anonymous), inner);
        let request = http::Request::get(path).body(()).unwrap();
        let response = tower::ServiceExt::oneshot(service, request).await.unwrap();
        (response.status().as_u16(), response.headers().keys().map(ToString::to_string).collect::<Vec<_>>())
    };
    // Nothing was added, so that a response without headers needs no memory for them.
    assert_eq!(names("/orders").await, (200, vec![]));
    let hold = {
        let user = evenkeel::identify::anonymous();
        let request = evenkeel::RequestInfo { path: "/closed".into(), verb: "get".into(), ..Default::default() };
        flow.arrive(evenkeel::Attributes { user: &user, request: &request }, evenkeel::WorkEstimate::ONE_SEAT)
    };
    // The level has no seats, so nobody knows how long to wait.
    let of_rejection = ["content-type", "retry-after", "x-evenkeel-level", "x-evenkeel-reason"];
    assert_eq!(names("/closed").await, (429, of_rejection.map(str::to_owned).to_vec()));
    drop(hold);
}
