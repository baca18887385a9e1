//! A layer without the types of its parts decides as the one that it was made of.

use std::convert::Infallible;

use bytes::Bytes;
use evenkeel::digest::DigestError;
use evenkeel::identify::{Unidentified, authenticated};
use evenkeel::service::{AdmittedRequest, BoxedFlowLayer, PassAdmitted};
use evenkeel::work::LevelInfo;
use evenkeel::{Attributes, FlowControl, RequestInfo, WorkEstimate};
use http::request::Parts;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use tower::{Layer, Service, ServiceExt, service_fn};

/// The point of it all: a field that holds a layer.
struct Shared {
    layer: BoxedFlowLayer<PassAdmitted>,
}

type Answer = Response<Full<Bytes>>;

/// Whatever is sent, a request asks for this.
#[expect(clippy::unnecessary_wraps, reason = "a digest may fail")]
fn shown(_parts: &Parts) -> Result<RequestInfo<'_>, DigestError> {
    Ok(RequestInfo::for_path("get", "/shown"))
}

async fn describe(AdmittedRequest { request, admitted }: AdmittedRequest<()>) -> Result<Answer, Infallible> {
    let level = admitted.class.as_ref().map_or("none", |class| class.priority_level());
    let text = format!("{} {} {level} {}", request.uri(), admitted.user.name, admitted.seats);
    Ok(Response::new(Full::new(text.into())))
}

async fn respond<S, B>(service: S, request: Request<()>) -> (u16, Bytes)
where
    S: Service<Request<()>, Response = Response<B>, Error = Infallible>,
    B: http_body::Body<Data = Bytes, Error = Infallible>,
{
    let response = service.oneshot(request).await.unwrap();
    (response.status().as_u16(), response.into_body().collect().await.unwrap().to_bytes())
}

#[tokio::test]
async fn a_boxed_layer_decides_as_the_layer_that_it_was() {
    let flow = FlowControl::builder().server_concurrency(10).exempt_paths(["/shown"]).drive_by_hand().build();
    let who = |parts: &Parts| match parts.headers.get("x-user").map(|name| name.to_str().unwrap()) {
        Some(name) => Ok(authenticated(name, ["staff"])),
        None => Err(Unidentified::unauthorized()),
    };
    let work = |_: Attributes<'_>, _: &LevelInfo| WorkEstimate::seats(3);
    let layer = flow.layer(who).digest_with(shown).work(work).pass_admitted();
    let shared = Shared { layer: layer.clone().boxed() };

    let alice = || Request::get("/orders").header("x-user", "alice").body(()).unwrap();
    let nobody = || Request::get("/orders").body(()).unwrap();
    for (request, status, text) in
        [(alice as fn() -> Request<()>, 200, Some("/orders alice exempt 3")), (nobody as fn() -> _, 401, None)]
    {
        let [typed, boxed] = [
            respond(layer.layer(service_fn(describe)), request()).await,
            respond(shared.layer.layer(service_fn(describe)), request()).await,
        ];
        assert_eq!(typed, boxed);
        assert_eq!(boxed.0, status);
        assert!(text.is_none_or(|text| boxed.1 == text), "{boxed:?}");
    }
}

#[tokio::test]
async fn dumps_show_what_the_digest_of_a_boxed_layer_saw() {
    let flow = FlowControl::builder().server_concurrency(1).drive_by_hand().build();
    let mut service = {
        let layer = flow.layer(evenkeel::identify::Anonymous).digest_with(shown).boxed();
        layer.layer(service_fn(async |_: Request<()>| std::future::pending::<Result<Answer, Infallible>>().await))
    };
    let call = |service: &mut _| Service::<Request<()>>::call(service, Request::get("/sent").body(()).unwrap());
    let (_running, _waiting) = (call(&mut service), call(&mut service));
    let dump = flow.dump_requests(evenkeel::debug::RequestColumns::WithDetails);
    assert!(dump.contains("/shown") && !dump.contains("/sent"), "{dump}");
}
