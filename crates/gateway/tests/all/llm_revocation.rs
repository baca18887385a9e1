//! Requests of revocable levels through the gateway: their streams end with an error that SDKs understand, and others get the seats (LM-7).

use crate::support;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use evenkeel_gateway::Config;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use support::client::{Answer, Client};
use support::upstream::{Upstream, has_more};
use support::{Running, start};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// An API: its path, the type of its streams, an event, and the last one of a stream that is told to end.
type Api = (&'static str, &'static str, &'static str, &'static str);

const OPEN_AI: Api = (
    "/v1/chat/completions",
    "text/event-stream",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"}}]}\n\n",
    "data: {\"error\":{\"code\":null,\"message\":\"the request was ended because others need its seats; try again\",\"param\":null,\
     \"type\":\"server_error\"}}\n\n",
);
const ANTHROPIC: Api = (
    "/v1/messages",
    "text/event-stream; charset=utf-8",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\"}\n\n",
    "event: error\ndata: {\"error\":{\"message\":\"the request was ended because others need its seats; try again\",\
     \"type\":\"overloaded_error\"},\"type\":\"error\"}\n\n",
);
const OLLAMA: Api = (
    "/api/chat",
    "application/x-ndjson",
    "{\"message\":{\"content\":\"x\"},\"done\":false}\n",
    "{\"error\":\"the request was ended because others need its seats; try again\"}\n",
);
/// A response in the middle of which no error can be.
const NO_STREAM: Api = ("/v1/completions", "application/json", "{\"choices\":[", "");

/// Two seats, one of people and one of jobs, which use both while people leave theirs.
fn settings(upstream: SocketAddr) -> Config {
    let text = format!(
        "preset: llm\nlisten: [{{address: 127.0.0.1:0}}]\nupstreams: [{{url: http://{upstream}}}]\nworkers: 1\nconcurrency: 2\n\
         admin: {{address: null}}\nflowControl: {{revokeAfter: 100ms}}\n\
         levels: {{people: {{share: 50, lend: all}}, jobs: {{share: 50, lend: all, revocable: true}}}}\n\
         match: [{{header: {{X-Team: jobs}}, level: jobs}}, {{level: people}}]"
    );
    Config::parse("evenkeel.yaml", &text).unwrap()
}

/// Begins a stream for a job, and responds to people at once. Tells when the gateway has ended a stream.
async fn upstream((_, content_type, event, _): Api) -> (Upstream, UnboundedReceiver<()>) {
    let (tells, told) = unbounded_channel();
    let upstream = Upstream::new(move |mut client, _| {
        let tells = tells.clone();
        async move {
            while has_more(&mut client).await {
                let text = client.answer().await.text();
                if text.contains("person") {
                    client
                        .send("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
                        .await;
                    continue;
                }
                if !text.contains("silent") {
                    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type";
                    client.send(&format!("{head}: {content_type}\r\n\r\n{:x}\r\n{event}\r\n", event.len())).await;
                }
                client.rest().await;
                let _ = tells.send(());
            }
        }
    });
    (upstream.await, told)
}

async fn begin(address: SocketAddr, path: &str, team: &str, body: &str) -> Client {
    let mut client = Client::connect(address).await;
    let length = body.len();
    let head =
        format!("POST {path} HTTP/1.1\r\nHost: shop.example\r\nX-Team: {team}\r\nContent-Length: {length}\r\n\r\n");
    client.send(&format!("{head}{body}")).await;
    client
}

/// What comes after an event, to the end of the response, or to that of the connection if the response is cut off.
async fn whole_end(job: &mut Client, last: &str) -> Vec<u8> {
    if last.is_empty() { job.rest().await } else { job.until(b"\r\n0\r\n\r\n").await }
}

async fn person(running: &Running, path: &str) -> Answer {
    let asked = Instant::now();
    let answer = begin(running.address, path, "people", "{\"model\":\"person\"}").await.answer().await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(asked.elapsed() < Duration::from_secs(20), "{:?}", asked.elapsed());
    answer
}

#[tokio::test]
async fn lm_7_streams_over_http1_end_with_an_error_of_their_api() {
    for api in [OPEN_AI, ANTHROPIC, OLLAMA, NO_STREAM] {
        let (path, _, event, last) = api;
        let (upstream, mut ended) = upstream(api).await;
        let running = start(settings(upstream.address)).await;
        let mut jobs = Vec::new();
        for _ in 0..2 {
            let mut job = begin(running.address, path, "jobs", "{\"model\":\"job\",\"stream\":true}").await;
            assert!(job.head().await.starts_with("HTTP/1.1 200"));
            job.until(event.as_bytes()).await;
            jobs.push(job);
        }
        person(&running, path).await;
        ended.recv().await.unwrap();
        let rest = String::from_utf8(whole_end(&mut jobs[1], last).await).unwrap();
        if last.is_empty() {
            assert_eq!(rest, "\r\n", "cut off");
        } else {
            assert_eq!(rest, format!("\r\n{:x}\r\n{last}\r\n0\r\n\r\n", last.len()), "{path}");
        }
        // The older one goes on, and the seat that was taken is one of people now: it does not come back to jobs by force.
        person(&running, path).await;
        assert!(ended.try_recv().is_err());
        // A client that closes in good order may only have ended its request.
        jobs.into_iter().for_each(Client::reset);
        running.no_seat_is_taken().await;
        running.done().await;
    }
}

#[tokio::test]
async fn lm_7_streams_over_http2_end_with_an_error_or_a_reset() {
    for api in [OPEN_AI, ANTHROPIC, NO_STREAM] {
        let (path, _, event, last) = api;
        let (upstream, mut ended) = upstream(api).await;
        let running = start(settings(upstream.address)).await;
        let stream = TokioIo::new(TcpStream::connect(running.address).await.unwrap());
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.unwrap();
        tokio::spawn(connection);
        let mut bodies = Vec::new();
        for _ in 0..2 {
            let request = Request::post(format!("http://shop.example{path}")).header("x-team", "jobs");
            let body = Full::new(Bytes::from_static(b"{\"model\":\"job\",\"stream\":true}"));
            let mut body = sender.send_request(request.body(body).unwrap()).await.unwrap().into_body();
            assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), event);
            bodies.push(body);
        }
        person(&running, path).await;
        ended.recv().await.unwrap();
        let rest = bodies.remove(1).collect().await;
        match last {
            "" => assert!(rest.is_err(), "cut off"),
            last => assert_eq!(rest.unwrap().to_bytes(), last, "{path}"),
        }
        drop((bodies, sender));
        running.no_seat_is_taken().await;
        running.done().await;
    }
}

#[tokio::test]
async fn lm_7_a_request_without_a_response_is_told_to_come_back() {
    let (upstream, mut ended) = upstream(OPEN_AI).await;
    let running = start(settings(upstream.address)).await;
    let mut jobs = Vec::new();
    for _ in 0..2 {
        jobs.push(begin(running.address, OPEN_AI.0, "jobs", "{\"model\":\"silent\"}").await);
        let count = jobs.len();
        support::eventually("the upstream has the request", || upstream.connections() >= count).await;
    }
    person(&running, OPEN_AI.0).await;
    ended.recv().await.unwrap();
    // Which of the two was the younger one is for the gateway to say.
    let (first, second) = jobs.split_at_mut(1);
    let answer = tokio::select! {
        answer = first[0].answer() => answer,
        answer = second[0].answer() => answer,
    };
    assert_eq!((answer.status, answer.header("x-evenkeel-reason").as_deref()), (503, Some("revoked")));
    assert!(answer.header("retry-after-ms").is_some() && answer.header("x-should-retry").is_none(), "{}", answer.head);
    assert!(answer.text().contains("server_error"), "{}", answer.text());
    jobs.into_iter().for_each(Client::reset);
    running.no_seat_is_taken().await;
    running.done().await;
}
