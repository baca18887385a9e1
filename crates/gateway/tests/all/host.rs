//! What hosts a service of our own: streams of HTTP/2, and how many connections a client may have.

use crate::authority;
use crate::support;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use evenkeel::identify::Identify;
use evenkeel_gateway::config::{AnonymousRequests, IdentityConfig, IdentitySource, ListenConfig, TokenIdentity};
use evenkeel_gateway::host::{Host, HostIdentity, HostLimits};
use evenkeel_gateway::identity::Identification;
use http::header::CONTENT_LENGTH;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo};
use support::PATIENCE;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use authority::Authority;

#[tokio::test]
async fn a_stream_that_nobody_reads_is_cut() {
    let authority = Authority::new();
    authority.sign("server", "host.test");
    let listen = ListenConfig {
        address: "127.0.0.1:0".parse().unwrap(),
        tls: Some(authority.listen()),
        ..ListenConfig::default()
    };
    let identification = Identification::open(&IdentityConfig::default()).unwrap();
    let limits = HostLimits { stall: Duration::from_millis(150), ..HostLimits::default() };
    let host = Host::bind(&listen, identification, limits).await.unwrap();
    let address = host.address();
    // Each answer has no end, and keeps a sender for as long as it is there.
    let (kept, mut all_gone) = mpsc::channel::<()>(1);
    let service = tower::service_fn(move |_: Request<Incoming>| {
        let kept = kept.clone();
        let parts = std::iter::repeat_with(move || {
            let _ = &kept;
            Ok::<_, Infallible>(Frame::data(Bytes::from_static(&[b'x'; 1024])))
        });
        std::future::ready(Ok::<_, Infallible>(Response::new(StreamBody::new(tokio_stream::iter(parts)))))
    });
    let (stop, stopped) = watch::channel(false);
    let serving = tokio::spawn(host.serve(move |_| service.clone(), stopped));

    let mut unread = Vec::new();
    for window in [65_535, 0] {
        let stream = authority.connect_to(address, "host.test", None, &["h2"]).await.unwrap();
        let mut client = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
        client.initial_stream_window_size(window);
        let (mut sender, connection) = client.handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let request = Request::get(format!("https://{address}/")).body(Empty::<Bytes>::new()).unwrap();
        unread.push((sender.send_request(request).await.unwrap(), sender));
    }
    // The service goes with the host, and has a sender too.
    stop.send(true).unwrap();
    timeout(PATIENCE, serving).await.expect("connections end when their streams were cut").unwrap();
    assert_eq!(timeout(PATIENCE, all_gone.recv()).await.expect("nobody keeps what is not read"), None);
    drop(unread);
}

#[tokio::test]
async fn api_3_an_answer_to_head_has_no_body_in_http2() {
    let authority = Authority::new();
    authority.sign("server", "host.test");
    let listen = ListenConfig {
        address: "127.0.0.1:0".parse().unwrap(),
        tls: Some(authority.listen()),
        ..ListenConfig::default()
    };
    let identification = Identification::open(&IdentityConfig::default()).unwrap();
    let host = Host::bind(&listen, identification, HostLimits::default()).await.unwrap();
    let address = host.address();
    let service = tower::service_fn(|_: Request<Incoming>| {
        let mut response = Response::new(Full::new(Bytes::from_static(b"why not")));
        *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
        std::future::ready(Ok::<_, Infallible>(response))
    });
    let (_stop, stopped) = watch::channel(false);
    tokio::spawn(host.serve(move |_| service, stopped));
    let stream = authority.connect_to(address, "host.test", None, &["h2"]).await.unwrap();
    let client = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
    let (mut sender, connection) = client.handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    for (method, expected) in [(Method::HEAD, ""), (Method::GET, "why not"), (Method::HEAD, "")] {
        let request = Request::builder().method(method).uri(format!("https://{address}/"));
        let request = request.body(Empty::<Bytes>::new()).unwrap();
        let response = timeout(PATIENCE, sender.send_request(request)).await.unwrap().unwrap();
        assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(response.headers()[CONTENT_LENGTH], "7");
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), expected);
    }
}

/// Sends a request without TLS, and returns the status of its response.
async fn ask(stream: &mut TcpStream) -> u16 {
    stream.write_all(b"GET / HTTP/1.1\r\nHost: host.test\r\n\r\n").await.unwrap();
    let mut head = [0; 12];
    timeout(PATIENCE, stream.read_exact(&mut head)).await.unwrap().unwrap();
    std::str::from_utf8(&head[9..]).unwrap().parse().unwrap()
}

/// A connection from that address.
async fn connect_from(source: &str, address: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(format!("{source}:0").parse().unwrap()).unwrap();
    timeout(PATIENCE, socket.connect(address)).await.unwrap().unwrap()
}

/// Whether the other end closes the connection without a word.
async fn is_closed(stream: &mut TcpStream) -> bool {
    matches!(timeout(PATIENCE, stream.read(&mut [0])).await.unwrap(), Ok(0) | Err(_))
}

/// A host for eight connections, two for each client, whose service tells users by their tokens.
async fn small_host(refused: &Arc<AtomicU64>) -> (SocketAddr, watch::Sender<bool>) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens.csv");
    std::fs::write(&file, "t1,ann,1\n").unwrap();
    let sources = vec![IdentitySource::Tokens(TokenIdentity { file })];
    let identity = IdentityConfig { sources, anonymous: AnonymousRequests::Allow, ..IdentityConfig::default() };
    let identification = Identification::open(&identity).unwrap();
    let listen = ListenConfig { address: "127.0.0.1:0".parse().unwrap(), tls: None, ..ListenConfig::default() };
    let limits = HostLimits { connections: 8, ..HostLimits::default() };
    let host = Host::bind(&listen, identification, limits).await.unwrap().count_refused(Arc::clone(refused));
    let address = host.address();
    let of_peer = |peer: HostIdentity| {
        tower::service_fn(move |request: Request<Incoming>| {
            let status = peer.identify(&request.into_parts().0).map_or_else(|error| error.status, |_| StatusCode::OK);
            let response = Response::builder().status(status).body(Full::new(Bytes::new()));
            std::future::ready(Ok::<_, Infallible>(response.unwrap()))
        })
    };
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(host.serve(of_peer, stopped));
    (address, stop)
}

#[tokio::test]
async fn silent_connections_of_one_address_leave_room_for_others() {
    let refused = Arc::default();
    let (address, _stop) = small_host(&refused).await;
    let mut silent = Vec::new();
    for _ in 0..100 {
        silent.push(connect_from("127.0.0.2", address).await);
    }
    let mut good = connect_from("127.0.0.1", address).await;
    assert_eq!(ask(&mut good).await, 200);
    for stream in &mut silent[2..] {
        assert!(is_closed(stream).await, "this address has its two");
    }
    assert_eq!(refused.load(Ordering::Relaxed), 98);
    // What was counted is given back.
    silent.clear();
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mut again = connect_from("127.0.0.2", address).await;
        let request = "GET / HTTP/1.1\r\nHost: host.test\r\nConnection: close\r\n\r\n";
        let mut response = String::new();
        if again.write_all(request.as_bytes()).await.is_ok()
            && again.read_to_string(&mut response).await.is_ok_and(|_| response.starts_with("HTTP/1.1 200"))
        {
            break;
        }
        assert!(Instant::now() < deadline, "its places are free again");
    }
}

#[tokio::test]
async fn a_connection_counts_for_its_user_once_that_is_known() {
    let refused = Arc::default();
    let (address, _stop) = small_host(&refused).await;
    let as_ann = async |stream: &mut TcpStream| {
        stream.write_all(b"GET / HTTP/1.1\r\nHost: host.test\r\nAuthorization: Bearer t1\r\n\r\n").await.unwrap();
        let mut head = [0; 12];
        timeout(PATIENCE, stream.read_exact(&mut head)).await.unwrap().unwrap();
        String::from_utf8(head[9..].to_vec()).unwrap()
    };
    let (mut first, mut second) = (connect_from("127.0.0.2", address).await, connect_from("127.0.0.2", address).await);
    assert_eq!((as_ann(&mut first).await.as_str(), as_ann(&mut second).await.as_str()), ("200", "200"));
    // They no longer count for the address, but a third one of the same user is one too many.
    let mut third = connect_from("127.0.0.2", address).await;
    assert_eq!(as_ann(&mut third).await, "429");
    let mut nobody = connect_from("127.0.0.2", address).await;
    assert_eq!(ask(&mut nobody).await, 200);
    assert_eq!(refused.load(Ordering::Relaxed), 1);
}
