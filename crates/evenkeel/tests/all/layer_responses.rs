//! What the layer adds to answers, and what it answers itself: headers and bodies, to the byte.

use crate::layer;

use evenkeel::identify::{Anonymous, FromExtension, Unidentified};
use evenkeel::service::{Refusal, RejectionForm};
use evenkeel_engine::User;
use http::request::Parts;
use http::{Request, Response, StatusCode};
use layer::{Mock, Reply, TestBody, ask, flow, get, send, text};
use std::sync::Arc;

const FLOW_SCHEMA: &str = "x-kubernetes-pf-flowschema-uid";
const PRIORITY_LEVEL: &str = "x-kubernetes-pf-prioritylevel-uid";

/// The headers in a fixed order, as text.
fn headers<B>(response: &Response<B>) -> Vec<String> {
    let headers = response.headers().iter();
    let mut lines: Vec<_> = headers.map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
    lines.sort();
    lines
}

#[tokio::test(start_paused = true)]
async fn hf_15_answers_carry_the_identities() {
    let layer = layer::layer();
    let response = ask(&layer, &Mock::empty(), get("/orders"));
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(headers(&response), [format!("{FLOW_SCHEMA}: schema-1"), format!("{PRIORITY_LEVEL}: level-1")]);
    let response = ask(&layer, &Mock::empty(), get("/queued"));
    assert_eq!(headers(&response), [format!("{FLOW_SCHEMA}: schema-2"), format!("{PRIORITY_LEVEL}: level-2")]);
}

#[tokio::test(start_paused = true)]
async fn hf_15_built_in_objects_have_empty_identities() {
    let layer = evenkeel::FlowControl::builder().kubernetes().build().layer(Anonymous);
    let response = ask(&layer, &Mock::empty(), get("/orders"));
    assert_eq!(headers(&response), [format!("{FLOW_SCHEMA}: "), format!("{PRIORITY_LEVEL}: ")]);
}

#[tokio::test(start_paused = true)]
async fn a_rejection_is_a_status() {
    let layer = layer::layer();
    let mut first = send(&layer, &Mock::stuck(), get("/orders"));
    assert!(first.poll().is_none());

    let mock = Mock::empty();
    let response = ask(&layer, &mock, get("/orders"));
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    let rejected = response.extensions().get::<evenkeel::Rejected>().unwrap();
    assert_eq!((rejected.flow_schema(), rejected.priority_level()), ("strict", "strict"));
    assert_eq!(
        headers(&response),
        [
            "content-type: application/json",
            "retry-after: 1",
            "x-kubernetes-pf-flowschema-uid: schema-1",
            "x-kubernetes-pf-prioritylevel-uid: level-1"
        ]
    );
    assert_eq!(
        text(response).await,
        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\",\
         \"message\":\"too many requests (concurrency-limit), try again in 1 s\",\"reason\":\"TooManyRequests\",\
         \"details\":{\"retryAfterSeconds\":1},\"code\":429}"
    );
    assert_eq!(mock.calls(), 0, "it did not get to the service");
}

#[tokio::test(start_paused = true)]
async fn hf_12_a_rejection_in_plain_text() {
    let layer = layer::layer().rejection_form(RejectionForm::PlainText);
    let mut first = send(&layer, &Mock::stuck(), get("/orders"));
    assert!(first.poll().is_none());

    let response = ask(&layer, &Mock::empty(), get("/orders"));
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(
        headers(&response),
        [
            "content-type: text/plain; charset=utf-8",
            "retry-after: 1",
            "x-content-type-options: nosniff",
            "x-kubernetes-pf-flowschema-uid: schema-1",
            "x-kubernetes-pf-prioritylevel-uid: level-1"
        ]
    );
    assert_eq!(text(response).await, "Too many requests, please try again later.\n");
}

/// An error format of a service of its own: the status and the parts of a refusal.
fn respond(refusal: &Refusal, parts: &Parts) -> Response<String> {
    let which = match refusal {
        Refusal::Rejected(rejected) => {
            format!("{} by {} of {}", rejected.reason.as_str(), rejected.priority_level(), rejected.flow_schema())
        }
        Refusal::Unidentified(_) => "unidentified".to_owned(),
        _ => "other".to_owned(),
    };
    let retry = refusal.retry_after().map(|time| time.as_secs());
    let text = format!("{} {}: {refusal} ({which}, {retry:?})", parts.method, parts.uri.path());
    Response::builder().status(refusal.status()).header("content-type", "text/x-own").body(text).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_service_makes_responses_in_a_format_of_its_own() {
    let (layer, first) = plain_layer(RejectionForm::Status);
    let own = layer.clone().on_refusal(respond);
    let response = ask(&own, &Mock::empty(), get("/orders?a=b"));
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(headers(&response), ["content-type: text/x-own"], "nothing is added");
    let seconds = response.extensions().get::<evenkeel::Rejected>().expect("outer layers see it").retry_after.as_secs();
    assert_eq!(
        text(response).await,
        format!(
            "GET /orders: too many requests (concurrency-limit), try again in {seconds} s \
             (concurrency-limit by strict of strict, Some({seconds}))"
        )
    );

    // A client of gRPC gets what it understands, and the last setting counts.
    let call = || Request::post("/shop.Orders/List").header("content-type", "application/grpc").body(()).unwrap();
    assert_eq!(ask(&own, &Mock::empty(), call()).headers()["grpc-status"], "8");
    let form = own.clone().rejection_form(RejectionForm::PlainText);
    assert_eq!(text(ask(&form, &Mock::empty(), get("/orders"))).await, "Too many requests, please try again later.\n");
    drop(first);

    let response = ask(&own, &Mock::empty(), get("/orders/%zz"));
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    assert_eq!(text(response).await, "GET /orders/%zz: the path has an invalid escape at byte 8 (other, None)");
    let nobody = flow().layer(|_: &Parts| Err::<User, _>(Unidentified::unauthorized())).on_refusal(respond);
    let response = ask(&nobody, &Mock::empty(), get("/orders"));
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(text(response).await, "GET /orders: Unauthorized (unidentified, None)");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_waited_too_long_gets_a_response_in_that_format_too() {
    let layer = layer::layer().on_refusal(respond);
    let mut first = send(&layer, &Mock::stuck(), get("/queued"));
    assert!(first.poll().is_none());
    let mut second = send(&layer, &Mock::empty(), get("/queued"));
    assert!(second.poll().is_none());
    let response = second.0.await.unwrap();
    assert!(text(response).await.starts_with("GET /queued: too many requests (time-out), try again in "));
}

#[tokio::test(start_paused = true)]
async fn a_rejection_of_grpc_has_trailers_only() {
    for form in [RejectionForm::Status, RejectionForm::PlainText] {
        let layer = layer::layer().rejection_form(form);
        let mut first = send(&layer, &Mock::stuck(), get("/orders"));
        assert!(first.poll().is_none());

        let request = Request::post("/shop.Orders/List").header("content-type", "application/grpc+proto");
        let response = ask(&layer, &Mock::empty(), request.body(()).unwrap());
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(
            headers(&response),
            [
                "content-type: application/grpc",
                "grpc-message: too many requests (concurrency-limit), try again in 1 s",
                "grpc-retry-pushback-ms: 1000",
                "grpc-status: 8",
                "x-kubernetes-pf-flowschema-uid: schema-1",
                "x-kubernetes-pf-prioritylevel-uid: level-1"
            ]
        );
        assert!(http_body::Body::is_end_stream(response.body()));
        assert_eq!(text(response).await, "");
    }
}

/// A flow control of an ordinary service whose one seat is taken, and the layer that rejects its requests.
fn plain_layer(form: RejectionForm) -> (evenkeel::FlowLayer<Anonymous>, layer::Answer) {
    let objects = layer::ONE_SEAT.replacen("Shares: 1,", "Shares: 10000,", 1);
    let flow = evenkeel::FlowControl::builder().server_concurrency(1).objects(&*objects);
    let layer = flow.build().layer(Anonymous).rejection_form(form);
    let mut first = send(&layer, &Mock::stuck(), get("/orders"));
    assert!(first.poll().is_none());
    (layer, first)
}

#[tokio::test(start_paused = true)]
async fn outside_of_kubernetes_a_rejection_says_level_reason_and_expected_wait() {
    let (layer, _first) = plain_layer(RejectionForm::Status);
    tokio::time::advance(std::time::Duration::from_millis(1_500)).await;
    let response = ask(&layer, &Mock::empty(), get("/orders"));
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    let rejected = response.extensions().get::<evenkeel::Rejected>().unwrap().clone();
    let (seconds, wait) = (rejected.retry_after.as_secs(), rejected.expected_wait.unwrap());
    // The one request has taken longer than this, and nothing else is known.
    assert!((1_200..=1_500).contains(&wait.as_millis()), "{wait:?}");
    assert!((2..=4).contains(&seconds), "{seconds}");
    let wait = format!("{:.3}", wait.as_secs_f64());
    assert_eq!(
        headers(&response),
        [
            "content-type: application/json".to_owned(),
            format!("retry-after: {seconds}"),
            format!("x-evenkeel-expected-wait: {wait}"),
            "x-evenkeel-level: strict".to_owned(),
            "x-evenkeel-reason: concurrency-limit".to_owned(),
        ]
    );
    assert_eq!(
        text(response).await,
        format!(
            "{{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{{}},\"status\":\"Failure\",\
             \"message\":\"too many requests (concurrency-limit), try again in {seconds} s\",\
             \"reason\":\"TooManyRequests\",\"details\":{{\"name\":\"strict\",\
             \"group\":\"flowcontrol.apiserver.k8s.io\",\"kind\":\"prioritylevelconfigurations\",\
             \"causes\":[{{\"reason\":\"concurrency-limit\",\"message\":\"expected wait: {wait} s\"}}],\
             \"retryAfterSeconds\":{seconds}}},\"code\":429}}"
        )
    );
}

#[tokio::test(start_paused = true)]
async fn every_form_of_a_rejection_says_it_in_headers() {
    let (layer, _first) = plain_layer(RejectionForm::PlainText);
    let response = ask(&layer, &Mock::empty(), get("/orders"));
    let seconds = response.extensions().get::<evenkeel::Rejected>().unwrap().retry_after.as_secs();
    assert_eq!(
        headers(&response),
        [
            "content-type: text/plain; charset=utf-8".to_owned(),
            format!("retry-after: {seconds}"),
            "x-content-type-options: nosniff".to_owned(),
            "x-evenkeel-expected-wait: 0.000".to_owned(),
            "x-evenkeel-level: strict".to_owned(),
            "x-evenkeel-reason: concurrency-limit".to_owned(),
        ]
    );
    let request = Request::post("/shop.Orders/List").header("content-type", "application/grpc");
    let response = ask(&layer, &Mock::empty(), request.body(()).unwrap());
    let seconds = response.extensions().get::<evenkeel::Rejected>().unwrap().retry_after.as_secs();
    assert_eq!(
        headers(&response),
        [
            "content-type: application/grpc".to_owned(),
            format!("grpc-message: too many requests (concurrency-limit), try again in {seconds} s"),
            format!("grpc-retry-pushback-ms: {}", seconds * 1_000),
            "grpc-status: 8".to_owned(),
            "x-evenkeel-expected-wait: 0.000".to_owned(),
            "x-evenkeel-level: strict".to_owned(),
            "x-evenkeel-reason: concurrency-limit".to_owned(),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_digested_is_answered() {
    let (layer, mock) = (layer::layer(), Mock::empty());
    for (target, status, body) in [
        (
            "/orders/%zz",
            400,
            "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\",\
             \"message\":\"the path has an invalid escape at byte 8\",\"reason\":\"BadRequest\",\"code\":400}",
        ),
        (
            "/api/v1/watch",
            500,
            "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\",\"message\":\"unable to \
             determine kind and namespace from url: nothing follows \\\"watch\\\"\",\"reason\":\"InternalError\",\
             \"code\":500}",
        ),
    ] {
        let response = ask(&layer, &mock, get(target));
        assert_eq!(response.status(), status);
        assert_eq!(headers(&response), ["content-type: application/json"], "it was not classified");
        assert_eq!(text(response).await, body);
    }
    assert_eq!(mock.calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_identified_is_answered() {
    let mock = Mock::empty();
    let refuse = |_: &Parts| -> Result<Arc<User>, Unidentified> { Err(Unidentified::unauthorized()) };
    let response = ask(&flow().layer(refuse), &mock, get("/orders"));
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    assert!(text(response).await.contains(r#""message":"Unauthorized","reason":"Unauthorized","code":401}"#));

    let layer = flow().layer(FromExtension::<Arc<User>>::new());
    let response = ask(&layer, &mock, get("/orders"));
    assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);

    let tell =
        |_: &Parts| -> Result<Arc<User>, Unidentified> { Err(Unidentified::new(StatusCode::FORBIDDEN, "50 % nö")) };
    let request = Request::get("/orders").header("content-type", "application/grpc").body(()).unwrap();
    let response = ask(&flow().layer(tell), &mock, request);
    let expected = ["content-type: application/grpc", "grpc-message: 50 %25 n%C3%B6", "grpc-status: 7"];
    assert_eq!(headers(&response), expected);
    assert_eq!(mock.calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn hf_2_long_running_requests_bypass() {
    let layer = layer::layer();
    let stuck = Mock::stuck();
    let mut running: Vec<_> = (0..3).map(|_| send(&layer, &stuck, get("/api/v1/namespaces/a/pods/b/log"))).collect();
    assert!(running.iter_mut().all(|answer| answer.poll().is_none()));
    assert_eq!(stuck.calls(), 3, "there is one seat only, and they do not need any");

    let response = ask(&layer, &Mock::empty(), get("/api/v1/namespaces/a/pods/b/exec"));
    assert_eq!(headers(&response), [""; 0]);
    assert!(ask(&layer, &Mock::empty(), get("/orders")).headers().contains_key(FLOW_SCHEMA));
}

#[tokio::test(start_paused = true)]
async fn the_headers_of_the_service_are_kept() {
    let mock = Mock::new(|_| {
        let response = Response::builder().status(404).header("x-own", "1").header(FLOW_SCHEMA, "forged");
        Reply::Now(response.body(TestBody::empty()).unwrap())
    });
    let response = ask(&layer::layer(), &mock, get("/orders"));
    assert_eq!(response.status(), StatusCode::NOT_FOUND);
    assert_eq!(
        headers(&response),
        [&format!("{FLOW_SCHEMA}: schema-1"), &format!("{PRIORITY_LEVEL}: level-1"), "x-own: 1"]
    );
}
