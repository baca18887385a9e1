//! Public types can be sent to other threads, shared among them, and shown (C-SEND-SYNC, C-DEBUG of the Rust API
//! guidelines), whatever closures they were made with.

use std::convert::Infallible;
use std::fmt::Debug;
use std::future::{Ready, ready};

use bytes::Bytes;
use evenkeel::clock::ManualClock;
use evenkeel::identify::{Anonymous, TrustedHeaders, Unidentified, authenticated};
use evenkeel::metrics::{MetricsPage, RegisterError};
use evenkeel::objects::{InvalidObjects, ObjectsReport, Problems};
use evenkeel::request::{Admit, Arrived, Class, LongRunning, SharedPermit};
use evenkeel::service::{AdmittedRequest, FlowBody, Refusal};
use evenkeel::work::KubernetesWork;
use evenkeel::{Admitted, FlowControl, FlowControlBuilder, Permit, Rejected};
use http::request::Parts;
use http::{Request, Response};
use http_body_util::Empty;
use tower::{Layer, Service, service_fn};

fn respond(_request: Request<()>) -> Ready<Result<Response<Empty<Bytes>>, Infallible>> {
    ready(Ok(Response::new(Empty::new())))
}

fn is_shared<T: Send + Sync + Debug>() {}
fn is_error<T: std::error::Error + Send + Sync + 'static>() {}

#[test]
fn types_are_send_sync_and_debug() {
    is_shared::<Admit<'_>>();
    is_shared::<Admitted>();
    is_shared::<AdmittedRequest<()>>();
    is_shared::<Arrived>();
    is_shared::<FlowControlBuilder>();
    is_shared::<Class>();
    is_shared::<FlowBody<Empty<Bytes>>>();
    is_shared::<FlowControl>();
    is_shared::<KubernetesWork>();
    is_shared::<LongRunning>();
    is_shared::<ManualClock>();
    is_shared::<MetricsPage>();
    is_shared::<Permit>();
    is_shared::<ObjectsReport>();
    is_shared::<SharedPermit>();
    is_shared::<TrustedHeaders>();
    is_error::<InvalidObjects>();
    is_error::<Problems>();
    is_error::<Refusal>();
    is_error::<RegisterError>();
    is_error::<Rejected>();
    is_error::<Unidentified>();
    is_error::<evenkeel::division::UnknownBorrowing>();
    is_error::<evenkeel::digest::DigestError>();
    is_error::<evenkeel::digest::RouteErrors>();
}

#[test]
fn layers_and_services_can_be_shown_and_shared_with_closures_in_them() {
    fn check<T: Send + Sync + Debug + Clone>(value: &T, expected: &str) {
        assert!(format!("{value:?}").contains(expected), "{value:?}");
    }
    let flow = FlowControl::builder().drive_by_hand().build();
    let layer = flow
        .layer(|_: &Parts| authenticated("alice", ["staff"]))
        .on_refusal(|refusal, _| Response::builder().status(refusal.status()).body("").unwrap());
    check(&layer, "refusals: Custom");
    check(&flow.layer(Anonymous), "refusals: Status");
    let mut service = layer.layer(service_fn(respond as fn(_) -> _));
    check(&service, "FlowService");
    let future = service.call(Request::new(()));
    assert!(format!("{future:?}").contains("FlowFuture"));
}
