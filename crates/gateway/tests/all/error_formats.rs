//! The gateway's own error responses, in the form that clients expect, and who may read them.

use crate::support;

use std::net::SocketAddr;

use evenkeel_gateway::Config;
use serde_json::{Value, json};
use support::client::{Answer, Client, get};
use support::upstream::{Upstream, ok};
use support::{ONE_LEVEL, config, start, start_with};

/// One level that rejects what it has no seat for.
fn rejecting() -> String {
    ONE_LEVEL.replace("{type: Queue, queuing: {queues: 1, handSize: 1, queueLengthLimit: 10000}}", "{type: Reject}")
}

/// These settings, in front of these upstreams.
fn settings(upstreams: &[SocketAddr], text: &str) -> Config {
    let said = Config::parse("test.yaml", text).unwrap();
    Config { responses: said.responses, cors: said.cors, preset: said.preset, ..config(upstreams) }
}

/// The response to a request that is rejected with 429, because another one has the only seat.
async fn rejected(text: &str, headers: &str) -> Answer {
    let (upstream, mut told, leave) = Upstream::held().await;
    let running =
        start_with(Config { concurrency: Some(1.into()), ..settings(&[upstream.address], text) }, &rejecting()).await;
    let mut first = Client::connect(running.address).await;
    first.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    told.recv().await.unwrap();
    let answer = get(running.address, "/", headers).await;
    leave.add_permits(1);
    assert_eq!(first.answer().await.status, 200);
    drop(first);
    running.done().await;
    answer
}

/// The response of a gateway whose upstream is down.
async fn failed(text: &str, headers: &str) -> Answer {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let running = start(settings(&[nobody], text)).await;
    let answer = get(running.address, "/", headers).await;
    running.done().await;
    answer
}

fn body(answer: &Answer) -> Value {
    serde_json::from_slice(&answer.body).unwrap_or_else(|error| panic!("{error}: {}", answer.text()))
}

#[tokio::test]
async fn ordinary_services_reject_with_problem_details() {
    let answer = rejected("{}", "").await;
    assert_eq!(answer.status, 429);
    assert_eq!(answer.header("content-type").as_deref(), Some("application/problem+json"));
    let seconds = answer.header("retry-after").unwrap();
    let detail = format!("too many requests (concurrency-limit), try again in {seconds} s");
    assert_eq!(
        body(&answer),
        json!({"type": "about:blank", "title": "Too Many Requests", "status": 429, "detail": detail,
               "reason": "concurrency-limit", "level": "everybody", "retryAfterSeconds": seconds.parse::<u64>().unwrap()})
    );
    assert_eq!(answer.header("x-evenkeel-level").as_deref(), Some("everybody"));
    assert_eq!(answer.header("x-evenkeel-reason").as_deref(), Some("concurrency-limit"));
    let answer = failed("{}", "").await;
    assert_eq!(
        (answer.status, body(&answer)),
        (
            502,
            json!({"type": "about:blank", "title": "Bad Gateway", "status": 502,
                     "detail": "connecting to the upstream failed"})
        )
    );
}

#[tokio::test]
async fn a_kubernetes_api_keeps_its_own() {
    let answer = failed("preset: kubernetes", "").await;
    assert_eq!(answer.header("content-type").as_deref(), Some("application/json"));
    assert_eq!((&body(&answer)["kind"], &body(&answer)["code"]), (&json!("Status"), &json!(502)));
    for text in ["preset: kubernetes", "responses: {format: status}"] {
        let answer = rejected(text, "").await;
        assert_eq!(body(&answer)["kind"], "Status");
        assert!(answer.header("retry-after").is_some());
    }
}

#[tokio::test]
async fn clients_of_language_models_get_the_errors_that_they_know() {
    let answer = rejected("responses: {format: openai}", "").await;
    assert_eq!(body(&answer)["error"]["code"], "rate_limit_exceeded");
    assert!(answer.header("retry-after").is_some());
    assert_eq!(body(&failed("responses: {format: openai}", "").await)["error"]["type"], "server_error");
    let answer = rejected("responses: {format: anthropic}", "").await;
    assert_eq!(
        (&body(&answer)["type"], &body(&answer)["error"]["type"]),
        (&json!("error"), &json!("rate_limit_error"))
    );
}

#[tokio::test]
async fn a_template_says_it_in_the_operator_s_words() {
    let text = "responses: {format: template, template: {contentType: text/html, \
                body: '<h1>{{title}}</h1><p>{{message}}</p><p>{{reason}} {{retryAfterSeconds}}</p>'}}";
    let answer = failed(text, "").await;
    assert_eq!(answer.header("content-type").as_deref(), Some("text/html"));
    assert_eq!(answer.text(), "<h1>Bad Gateway</h1><p>connecting to the upstream failed</p><p> 0</p>");
    let answer = rejected(text, "").await;
    let seconds = answer.header("retry-after").unwrap();
    assert!(answer.text().ends_with(&format!("<p>concurrency-limit {seconds}</p>")), "{}", answer.text());
}

#[tokio::test]
async fn calls_of_grpc_get_a_status_of_grpc_whatever_the_format_is() {
    for text in ["{}", "responses: {format: openai}"] {
        let answer = failed(text, "Content-Type: application/grpc\r\n").await;
        assert_eq!((answer.status, answer.header("grpc-status").as_deref()), (200, Some("14")), "{}", answer.head);
        assert_eq!(answer.text(), "");
    }
}

#[tokio::test]
async fn who_is_not_identified_is_told_in_the_same_form() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens.csv");
    std::fs::write(&tokens, "secret,alice,1\n").unwrap();
    let upstream = Upstream::echo().await;
    let mut settings = settings(&[upstream.address], "{cors: {origins: [https://app.example]}}");
    settings.identity.sources = vec![serde_json::from_value(json!({"tokens": {"file": tokens}})).unwrap()];
    let running = start(settings).await;
    let answer = get(running.address, "/", "Authorization: Bearer wrong\r\nOrigin: https://app.example\r\n").await;
    assert_eq!((answer.status, &body(&answer)["title"]), (401, &json!("Unauthorized")));
    let detail = "the request has no valid credential; send a key, a token or a certificate that this service accepts";
    assert_eq!(body(&answer)["detail"], detail);
    assert_eq!(answer.header("access-control-allow-origin").as_deref(), Some("https://app.example"));
    running.done().await;
}

#[tokio::test]
async fn pages_of_allowed_origins_may_read_errors() {
    let text = "cors: {origins: [https://app.example]}";
    for answer in
        [failed(text, "Origin: https://app.example\r\n").await, rejected(text, "Origin: https://app.example\r\n").await]
    {
        assert_eq!(answer.header("access-control-allow-origin").as_deref(), Some("https://app.example"));
        assert_eq!(answer.header("access-control-allow-credentials").as_deref(), Some("true"));
        assert_eq!(answer.header("vary").as_deref(), Some("origin"));
        assert!(answer.header("access-control-expose-headers").unwrap().contains("retry-after"));
    }
    for (text, headers) in
        [(text, "Origin: https://evil.example\r\n"), (text, ""), ("{}", "Origin: https://app.example\r\n")]
    {
        assert_eq!(failed(text, headers).await.header("access-control-allow-origin"), None);
        assert_eq!(rejected(text, headers).await.header("access-control-allow-origin"), None);
    }
    let answer = failed("cors: {origins: ['*']}", "Origin: https://any.example\r\n").await;
    assert_eq!(answer.header("access-control-allow-origin").as_deref(), Some("*"));
    assert_eq!(answer.header("access-control-allow-credentials"), None);
}

#[tokio::test]
async fn preflights_pass_without_identity_if_the_operator_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens.csv");
    std::fs::write(&tokens, "secret,alice,1\n").unwrap();
    let upstream = Upstream::answering(|request| ok(request.head.split(' ').next().unwrap())).await;
    let preflight = "Origin: https://app.example\r\nAccess-Control-Request-Method: PUT\r\n";
    for (text, headers, status) in [
        ("cors: {preflights: pass}", preflight, 200),
        // An ordinary OPTIONS is no preflight.
        ("cors: {preflights: pass}", "Origin: https://app.example\r\n", 401),
        ("{}", preflight, 401),
    ] {
        let mut settings = settings(&[upstream.address], text);
        settings.identity.sources = vec![serde_json::from_value(json!({"tokens": {"file": tokens}})).unwrap()];
        settings.identity.anonymous = evenkeel_gateway::config::AnonymousRequests::Deny;
        let running = start(settings).await;
        let mut client = Client::connect(running.address).await;
        client.send(&format!("OPTIONS / HTTP/1.1\r\nHost: a\r\n{headers}\r\n")).await;
        assert_eq!(client.answer().await.status, status, "{text} {headers}");
        assert_eq!(get(running.address, "/", preflight).await.status, 401, "a GET needs an identity");
        drop(client);
        running.done().await;
    }
}

#[tokio::test]
async fn wrong_settings_are_named() {
    for (text, expected) in [
        ("responses: {format: template}", "responses.template: is missing"),
        ("responses: {template: {contentType: text/plain, body: x}}", "responses.template: is not used"),
        (
            "responses: {format: template, template: {contentType: text/plain, body: '{{user}}'}}",
            "responses.template.body: `{{user}}` is unknown",
        ),
        (
            "responses: {format: template, template: {contentType: image/png, body: x}}",
            "responses.template.contentType: \"image/png\" is not a type of text",
        ),
        ("cors: {origins: [app.example]}", "cors.origins[0]: \"app.example\" is not an origin"),
    ] {
        let config = Config::parse("x", &format!("{{upstreams: [{{url: 'http://a:1'}}], {text}}}")).unwrap();
        let problems: Vec<String> = config.check().iter().map(ToString::to_string).collect();
        assert!(problems.len() == 1 && problems[0].starts_with(expected), "{problems:?}");
    }
}
