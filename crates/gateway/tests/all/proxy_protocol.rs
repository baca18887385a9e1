//! Connections from TCP balancers that name their clients.

use crate::authority::Authority;
use crate::support;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use evenkeel::identify::Identify;
use evenkeel_gateway::Config;
use evenkeel_gateway::config::{AccessLogFormat, AddressIdentity, IdentityConfig, IdentitySource, ListenConfig};
use evenkeel_gateway::host::{Host, HostIdentity, HostLimits};
use evenkeel_gateway::identity::Identification;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use support::client::{Client, find, get};
use support::upstream::Upstream;
use support::{config, eventually, start};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::watch;

const V1: &[u8] = b"PROXY TCP4 192.0.2.7 192.0.2.1 50000 443\r\n";
const V1_UNKNOWN: &[u8] = b"PROXY UNKNOWN\r\n";
const V2_IPV6: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x21\x21\x00\x2c\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x07\
    \x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01\xc3\x50\x01\xbb\x04\x00\x05hello";
const V2_LOCAL: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x20\x00\x00\x00";

/// Settings under which 127.0.0.1 is a balancer, and users are known by address.
fn behind_balancer(upstream: &Upstream) -> Config {
    let mut settings = config(&[upstream.address]);
    settings.listen[0].proxy_protocol_from = vec!["127.0.0.1".parse().unwrap()];
    settings.identity.sources = vec![IdentitySource::Address(AddressIdentity::default())];
    settings.identity.tell_upstream = true;
    settings
}

/// A connection that begins with these bytes.
async fn connect(gateway: SocketAddr, first: &[u8]) -> Client {
    let mut client = Client::connect(gateway).await;
    client.stream.write_all(first).await.unwrap();
    client
}

/// A connection of somebody who is no balancer.
async fn connect_from_elsewhere(gateway: SocketAddr) -> Client {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
    Client::on(socket.connect(gateway).await.unwrap())
}

#[tokio::test]
async fn the_client_is_the_one_that_the_balancer_names() {
    let upstream = Upstream::echo().await;
    let folder = tempfile::tempdir().unwrap();
    let mut settings = behind_balancer(&upstream);
    settings.log.access = AccessLogFormat::Json;
    settings.log.access_file = Some(folder.path().join("access.log"));
    let running = start(settings).await;
    for (header, client, user) in [
        (V1, "192.0.2.7", "address:192.0.2.7"),
        (V2_IPV6, "2001:db8::7", "address:2001:db8::/64"),
        // The balancer speaks for itself, or does not say for whom.
        (V2_LOCAL, "127.0.0.1", "address:127.0.0.1"),
        (V1_UNKNOWN, "127.0.0.1", "address:127.0.0.1"),
    ] {
        let mut connection = connect(running.address, header).await;
        for _ in 0..2 {
            connection.send("GET / HTTP/1.1\r\nHost: shop.example\r\nX-Forwarded-For: 6.6.6.6\r\n\r\n").await;
            let seen = connection.answer().await.text();
            assert_eq!(find(&seen, "x-forwarded-for").as_deref(), Some(client));
            assert_eq!(find(&seen, "x-remote-user").as_deref(), Some(user));
        }
    }
    running.done().await;
    let log = std::fs::read_to_string(folder.path().join("access.log")).unwrap();
    for client in ["192.0.2.7", "2001:db8::7"] {
        let lines = log.lines().filter(|line| line.contains(&format!(r#""client":"{client}""#))).count();
        assert_eq!(lines, 2, "{log}");
    }
}

#[tokio::test]
async fn a_balancer_has_to_send_the_header_and_nobody_else_may() {
    let upstream = Upstream::echo().await;
    let mut settings = behind_balancer(&upstream);
    settings.admin.address = Some("127.0.0.1:0".parse().unwrap());
    settings.timeouts.head = Duration::from_millis(300);
    let running = start(settings).await;
    for first in [
        // A request, and things that only look like a header.
        &b"GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n"[..],
        b"PROXY TCP4 192.0.2.7 192.0.2.1 50000\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x01xGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        // Part of one, and no more.
        b"PROXY TCP4 192.0.2.7",
    ] {
        assert!(connect(running.address, first).await.is_closed_hard().await, "{first:?}");
    }
    // A balancer that only looks whether the port is open.
    drop(connect(running.address, b"").await);
    let mut stranger = connect_from_elsewhere(running.address).await;
    stranger.send("GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n").await;
    assert_eq!(find(&stranger.answer().await.text(), "x-forwarded-for").as_deref(), Some("127.0.0.2"));
    // Whatever it looks like, it is not a request of HTTP/1.1.
    for (header, status) in [(V1, 505), (V2_IPV6, 400)] {
        let mut stranger = connect_from_elsewhere(running.address).await;
        stranger.stream.write_all(header).await.unwrap();
        stranger.send("GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n").await;
        assert_eq!(stranger.answer().await.status, status);
    }
    let page = get(running.gateway.admin_address().unwrap(), "/metrics", "").await.text();
    assert!(page.lines().any(|line| line == "evenkeel_proxy_headers_refused_total 4"), "{page}");
    assert_eq!(upstream.connections(), 1);
    running.done().await;
}

#[tokio::test]
async fn the_header_comes_before_tls() {
    let authority = Authority::new();
    authority.sign("server", "shop.example");
    let upstream = Upstream::echo().await;
    let mut settings = behind_balancer(&upstream);
    settings.listen[0].tls = Some(authority.listen());
    let running = start(settings).await;
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    stream.write_all(V1).await.unwrap();
    let mut client = Client::on(authority.handshake(stream, "shop.example").await.unwrap());
    client.send("GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n").await;
    let seen = client.answer().await.text();
    assert_eq!(find(&seen, "x-forwarded-for").as_deref(), Some("192.0.2.7"));
    assert_eq!(find(&seen, "x-forwarded-proto").as_deref(), Some("https"));
    drop(client);
    running.done().await;
}

#[tokio::test]
async fn clients_behind_one_balancer_have_limits_of_their_own() {
    let upstream = Upstream::echo().await;
    let mut settings = behind_balancer(&upstream);
    settings.limits.connections_per_client = 2;
    let running = start(settings).await;
    let mut open = Vec::new();
    for number in 0..3 {
        for client in ["192.0.2.7", "192.0.2.8"] {
            let header = format!("PROXY TCP4 {client} 192.0.2.1 50000 443\r\n");
            let mut connection = connect(running.address, header.as_bytes()).await;
            let _ = connection.stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
            assert_eq!(connection.answer().await.status, if number < 2 { 200 } else { 503 }, "{client} {number}");
            open.push(connection);
        }
    }
    drop(open);
    eventually("all are closed", || running.gateway.connections() == 0).await;
    running.done().await;
}

impl Client {
    /// Whether the other side has closed or reset the connection, with nothing to say.
    async fn is_closed_hard(&mut self) -> bool {
        self.rest().await.is_empty()
    }
}

/// A service of our own, such as the API, behind a balancer: it says who is calling.
#[tokio::test]
async fn a_hosted_service_knows_the_client_that_the_balancer_names() {
    let config = IdentityConfig {
        sources: vec![IdentitySource::Address(AddressIdentity::default())],
        ..IdentityConfig::default()
    };
    let listen = ListenConfig {
        address: "127.0.0.1:0".parse().unwrap(),
        proxy_protocol_from: vec!["127.0.0.1".parse().unwrap()],
        ..ListenConfig::default()
    };
    let limits = HostLimits { head_time: Duration::from_millis(300), ..HostLimits::default() };
    let host = Host::bind(&listen, Identification::open(&config).unwrap(), limits).await.unwrap();
    let address = host.address();
    let of_peer = |peer: HostIdentity| {
        tower::service_fn(move |request: Request<Incoming>| {
            let name =
                peer.identify(&request.into_parts().0).map_or_else(|_| String::new(), |user| user.name.to_string());
            std::future::ready(Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(name)))))
        })
    };
    let (stop, stopped) = watch::channel(false);
    let serving = tokio::spawn(host.serve(of_peer, stopped));
    for (header, client) in
        [(V1, "192.0.2.7"), (V2_IPV6, "2001:db8::"), (V1_UNKNOWN, "127.0.0.1"), (V2_LOCAL, "127.0.0.1")]
    {
        let mut connection = connect(address, header).await;
        connection.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert!(connection.answer().await.text().contains(client), "{client}");
    }
    // Without a valid header, and without any in time, the connection ends without a response.
    for wrong in [&b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"[..], b"PROXY nonsense\r\n", b"PROXY TCP4 192"] {
        let mut connection = connect(address, wrong).await;
        assert_eq!(connection.rest().await, b"");
    }
    let mut elsewhere = connect_from_elsewhere(address).await;
    elsewhere.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(elsewhere.answer().await.text().contains("127.0.0.2"));
    let mut pretends = connect_from_elsewhere(address).await;
    pretends.stream.write_all(V1).await.unwrap();
    let answer = String::from_utf8(pretends.rest().await).unwrap();
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    stop.send(true).unwrap();
    drop(elsewhere);
    serving.await.unwrap();
}
