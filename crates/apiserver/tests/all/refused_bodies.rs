//! A client that sends all of a large body before it looks for a response gets the response, and not a broken connection.

use crate::server;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use evenkeel_apiserver::ApiServerOptions;
use server::TestServer;

/// More than the buffers of a connection hold, and more than a body may have (API-93).
const BODY_BYTES: usize = 8_000_000;
const PATIENCE: Duration = Duration::from_secs(60);
const SCHEMAS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";

/// The head of a request with a large body.
fn head(path: &str, token: &str, more: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer {token}\r\nContent-Length: {BODY_BYTES}\r\n{more}\r\n"
    )
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// The status in the response's first line.
fn status(mut stream: TcpStream) -> u16 {
    let mut start = [0; 12];
    stream.read_exact(&mut start).unwrap();
    String::from_utf8_lossy(&start[9..]).parse().unwrap()
}

/// Sends all, and then reads.
fn send(address: SocketAddr, path: &str, token: &str, more: &str) -> u16 {
    let mut stream = connect(address);
    stream.write_all(head(path, token, more).as_bytes()).unwrap();
    stream.write_all(&vec![b' '; BODY_BYTES]).unwrap();
    status(stream)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn api_5_a_refusal_gets_through_to_a_client_that_is_still_sending() {
    let server = TestServer::start(ApiServerOptions::default()).await;
    let address = server.address;
    let statuses = tokio::task::spawn_blocking(move || {
        [
            send(address, SCHEMAS, "made-up", ""),
            send(address, SCHEMAS, "nobody-token", ""),
            send(address, &format!("{SCHEMAS}/one"), "admin-token", ""),
            send(address, SCHEMAS, "admin-token", "Content-Type: text/html\r\n"),
            send(address, &format!("{SCHEMAS}?dryRun=x"), "admin-token", ""),
            send(address, SCHEMAS, "admin-token", ""),
        ]
    });
    assert_eq!(statuses.await.unwrap(), [401, 403, 405, 415, 422, 413]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_asks_before_it_sends_and_one_that_never_sends_are_refused_too() {
    let server = TestServer::start(ApiServerOptions::default()).await;
    let address = server.address;
    let ask = |more: &'static str| {
        tokio::task::spawn_blocking(move || {
            let mut stream = connect(address);
            stream.write_all(head(SCHEMAS, "nobody-token", more).as_bytes()).unwrap();
            status(stream)
        })
    };
    let started_at = Instant::now();
    assert_eq!(ask("Expect: 100-continue\r\n").await.unwrap(), 403);
    assert_eq!(ask("").await.unwrap(), 403);
    assert!(started_at.elapsed() < PATIENCE);
}
