//! A client that hangs up while its request waits: the request leaves its queue, over real sockets.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use evenkeel::FlowControl;
use evenkeel::identify::Anonymous;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::timeout;

/// One seat, and one place to wait.
const OBJECTS: &str = "
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: narrow}
spec:
  type: Limited
  limited:
    nominalConcurrencyShares: 1
    limitResponse: {type: Queue, queuing: {queues: 1, handSize: 1, queueLengthLimit: 1}}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: narrow}
spec:
  priorityLevelConfiguration: {name: narrow}
  rules:
  - subjects: [{kind: Group, group: {name: system:unauthenticated}}]
    nonResourceRules: [{verbs: ['*'], nonResourceURLs: ['*']}]
";

/// Sends a request, and does not wait for its answer.
async fn send(address: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET /work HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n").await.unwrap();
    stream
}

/// The beginning of the answer.
async fn status(stream: &mut TcpStream) -> String {
    let mut line = [0; 12];
    stream.read_exact(&mut line).await.unwrap();
    String::from_utf8_lossy(&line).into_owned()
}

/// Waits until so many requests wait.
async fn until_waiting(flow: &FlowControl, count: usize) {
    let is_reached = async {
        while flow.status().iter().map(|level| level.waiting).sum::<usize>() != count {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(Duration::from_secs(60), is_reached).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_hangs_up_leaves_its_queue() {
    let (begun, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (begins, waits) = (Arc::clone(&begun), Arc::clone(&go_on));
    let work = async move || {
        begins.notify_one();
        waits.notified().await;
        "done"
    };
    let flow = FlowControl::builder().kubernetes().server_concurrency(1).objects(OBJECTS).build();
    let app = Router::new().route("/work", get(work)).layer(flow.layer(Anonymous));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move { axum::serve(listener, app).await });

    let mut first = send(address).await;
    begun.notified().await;
    let (mut second, mut third) = (send(address).await, send(address).await);
    // Whichever comes first waits, and there is no room for the other one.
    let (turned_away, waiting) = tokio::select! {
        status = status(&mut second) => (status, third),
        status = status(&mut third) => (status, second),
    };
    assert_eq!(turned_away, "HTTP/1.1 429");

    drop(waiting);
    until_waiting(&flow, 0).await;
    let mut fourth = send(address).await;
    until_waiting(&flow, 1).await;
    go_on.notify_one();
    begun.notified().await;
    go_on.notify_one();
    let mut text = String::new();
    first.read_to_string(&mut text).await.unwrap();
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    text.clear();
    fourth.read_to_string(&mut text).await.unwrap();
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    server.abort();
}
