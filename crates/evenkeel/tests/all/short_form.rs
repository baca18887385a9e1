//! Levels and rules as methods of the builder (SF-5), and header matches through the layer (SF-2).

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use evenkeel::api::short::Per;
use evenkeel::identify::authenticated;
use evenkeel::{Attributes, FlowControl, FlowSchema, RequestInfo, User, WorkEstimate};
use http::{Request, Response, StatusCode};
use http_body_util::Empty;
use tower::{Layer, Service, service_fn};

fn flow() -> FlowControl {
    FlowControl::builder()
        .server_concurrency(20)
        .level("interactive", |l| l.share(70).lend(50).wait(Duration::from_secs(3)))
        .level("blocked", |l| l.share(0))
        .rule(|r| r.path("/healthz").exempt())
        .rule(|r| r.header("X-Plan", "free").level("blocked"))
        .rule(|r| r.path("/wide").level("interactive").seats(4).per(Per::Path))
        .rule(|r| r.level("interactive"))
        .drive_by_hand()
        .build()
}

#[test]
fn sf_5_rules_are_tried_in_their_order() {
    let flow = flow();
    let explained = |path: &str| {
        let user = User::new("alice", ["staff"]);
        flow.explain(Attributes { user: &user, request: &RequestInfo::for_path("get", path) }, WorkEstimate::ONE_SEAT)
    };
    assert_eq!(explained("/healthz").priority_level, "exempt");
    assert_eq!(explained("/orders").flow_schema, "interactive-2");
    let wide = explained("/wide");
    assert_eq!((wide.seats.initial, &*wide.flow, &*wide.flow_schema), (4, "/wide", "interactive-1"));
    assert_eq!(wide.seats.rule, "annotation evenkeel.dev/seats of the flow schema");
    assert_eq!(explained("/healthz/db").flow_schema, "interactive-2", "a path is exact");
    let tried: Vec<_> = explained("/orders").tried.into_iter().map(|tried| tried.failed).collect();
    assert_eq!(tried[2], "metadata.annotations[evenkeel.dev/match-headers]");
}

#[tokio::test]
async fn sf_2_the_layer_matches_by_header() {
    let echo = service_fn(async |_: Request<()>| Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new())));
    let mut service = flow().layer(|_: &_| Ok(authenticated("alice", ["staff"]))).layer(echo);
    for (plans, status) in [
        (&["gold"][..], StatusCode::OK),
        (&["free"], StatusCode::TOO_MANY_REQUESTS),
        (&[], StatusCode::OK),
        (&["free", "gold"], StatusCode::OK),
    ] {
        let request = plans.iter().fold(Request::get("/orders"), |request, plan| request.header("x-plan", *plan));
        assert_eq!(service.call(request.body(()).unwrap()).await.unwrap().status(), status, "{plans:?}");
    }
}

#[test]
fn sf_5_everything_that_is_wrong_is_told_at_the_end() {
    let invalid = |builder: evenkeel::FlowControlBuilder| builder.drive_by_hand().try_build().unwrap_err().to_string();
    assert_eq!(
        invalid(FlowControl::builder().level("a", |l| l.lend(120)).rule(|r| r.path("a").level("a"))),
        "the objects of the flow control have 2 problems:\n  \
         levels.a.lend: is 120%, but must be from 0% to 100%, or `all`\n  \
         match[0].path: \"a\" does not begin with a slash; write `/a`"
    );
    let schema = FlowSchema::builder("s").priority_level("exempt").rule(|r| r.user("*").everything()).build();
    let both = FlowControl::builder().level("a", |l| l).rule(|r| r.level("a")).objects(schema);
    assert!(invalid(both).contains("there are objects and levels or rules"));
    let kubernetes = FlowControl::builder().kubernetes().level("a", |l| l).rule(|r| r.level("a"));
    assert!(invalid(kubernetes).contains("levels and rules are for ordinary services"));
}
