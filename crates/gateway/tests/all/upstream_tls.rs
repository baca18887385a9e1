//! TLS towards upstreams: what is believed, what is spoken, and who the gateway says it is.

use crate::authority;
use crate::support;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arc_swap::ArcSwap;
use bytes::Bytes;
use evenkeel_gateway::config::{Protocol, UpstreamConfig, UpstreamTls};
use evenkeel_gateway::{FetchLimits, Fetcher};
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use support::client::{Client, get};
use support::{PATIENCE, Running, config, start};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

use authority::{Authority, ClientCertificates};

const BOTH: [&str; 2] = ["h2", "http/1.1"];

/// An upstream under TLS that answers with the version it was spoken to in, and says how many certificates it was shown.
struct Upstream {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
    config: Arc<ArcSwap<ServerConfig>>,
    /// Ends the connections that there are.
    cut: Arc<Notify>,
}

impl Upstream {
    async fn start(config: ServerConfig) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (connections, config) = (Arc::new(AtomicUsize::new(0)), Arc::new(ArcSwap::from_pointee(config)));
        let cut = Arc::new(Notify::new());
        let (count, current, told) = (Arc::clone(&connections), Arc::clone(&config), Arc::clone(&cut));
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let Ok(stream) = TlsAcceptor::from(current.load_full()).accept(stream).await else { continue };
                count.fetch_add(1, Ordering::SeqCst);
                let session = stream.get_ref().1;
                let is_http2 = session.alpn_protocol() == Some(b"h2");
                let shown = session.peer_certificates().map_or(0, <[_]>::len);
                let service =
                    service_fn(move |request| std::future::ready(Ok::<_, Infallible>(answer(&request, shown))));
                let (stream, told) = (TokioIo::new(stream), Arc::clone(&told));
                tokio::spawn(async move {
                    let served = async {
                        if is_http2 {
                            let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                            builder.serve_connection(stream, service).await
                        } else {
                            hyper::server::conn::http1::Builder::new().serve_connection(stream, service).await
                        }
                    };
                    tokio::select! {
                        _ = served => {}
                        () = told.notified() => {}
                    }
                });
            }
        });
        Self { address, connections, config, cut }
    }

    /// A gateway in front of it.
    async fn gateway(&self, protocol: Protocol, tls: UpstreamTls) -> Running {
        let mut settings = config(&[]);
        let mut upstream = UpstreamConfig::new(&format!("https://{}", self.address)).unwrap();
        (upstream.protocol, upstream.tls) = (protocol, tls);
        settings.upstreams.push(upstream);
        start(settings).await
    }
}

fn answer(request: &Request<Incoming>, shown: usize) -> Response<Full<Bytes>> {
    Response::new(Full::from(format!("{:?} {} {shown}", request.version(), request.uri().path())))
}

async fn ask(running: &Running) -> (u16, String) {
    let answer = get(running.address, "/a", "").await;
    (answer.status, answer.text())
}

#[tokio::test]
async fn an_upstream_must_have_the_name_that_is_expected() {
    let authority = Authority::new();
    authority.sign("upstream", "inner.example");
    let upstream = Upstream::start(authority.server("upstream", &[], ClientCertificates::Ignored)).await;
    for (name, status) in [("inner.example", 200), ("other.example", 502)] {
        let running = upstream.gateway(Protocol::Auto, authority.towards(name)).await;
        assert_eq!(ask(&running).await.0, status, "{name}");
        running.done().await;
    }
}

#[tokio::test]
async fn a_server_without_tls_is_told_from_one_with_bad_tls() {
    let authority = Authority::new();
    let plain = support::upstream::Upstream::new(|mut client, _| async move {
        client.send("HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n").await;
        client.rest().await;
    });
    let plain = plain.await;
    let url = format!("https://{}", plain.address).parse().unwrap();
    let limits = FetchLimits { time: PATIENCE, bytes: 1024 };
    let fetcher = Fetcher::new(&url, &authority.towards("inner.example"), "", limits).unwrap();
    let error = fetcher.get("/", http::HeaderMap::new()).await.unwrap_err();
    assert_eq!(error, "no TLS: the server does not speak TLS; is `http://` meant instead of `https://`?");
}

#[tokio::test]
async fn what_is_spoken_is_agreed_on() {
    let authority = Authority::new();
    authority.sign("upstream", "inner.example");
    for (spoken, protocol, expected) in [
        (&BOTH[..], Protocol::Auto, "HTTP/2.0 /a 0"),
        (&BOTH[..], Protocol::Http1, "HTTP/1.1 /a 0"),
        (&BOTH[..], Protocol::Http2, "HTTP/2.0 /a 0"),
        (&["http/1.1"], Protocol::Auto, "HTTP/1.1 /a 0"),
        (&["h2"], Protocol::Auto, "HTTP/2.0 /a 0"),
        (&[], Protocol::Auto, "HTTP/1.1 /a 0"),
    ] {
        let upstream = Upstream::start(authority.server("upstream", spoken, ClientCertificates::Ignored)).await;
        let running = upstream.gateway(protocol, authority.towards("inner.example")).await;
        for _ in 0..3 {
            assert_eq!(ask(&running).await, (200, expected.to_owned()), "{spoken:?} {protocol:?}");
        }
        // The first connection does for all of them, whatever is spoken on it.
        assert_eq!(upstream.connections.load(Ordering::SeqCst), 1, "{spoken:?} {protocol:?}");
        running.done().await;
    }
    for (spoken, protocol) in [("http/1.1", Protocol::Http2), ("h2", Protocol::Http1)] {
        let upstream = Upstream::start(authority.server("upstream", &[spoken], ClientCertificates::Ignored)).await;
        let running = upstream.gateway(protocol, authority.towards("inner.example")).await;
        let (status, text) = ask(&running).await;
        assert!(status == 502 && text.contains("connecting to the upstream failed"), "{spoken} {status} {text}");
        running.done().await;
    }
}

#[tokio::test]
async fn an_upstream_that_speaks_something_else_from_now_on_is_asked_again() {
    let authority = Authority::new();
    authority.sign("upstream", "inner.example");
    let server = |spoken: &str| authority.server("upstream", &[spoken], ClientCertificates::Ignored);
    let upstream = Upstream::start(server("h2")).await;
    let running = upstream.gateway(Protocol::Auto, authority.towards("inner.example")).await;
    for (spoken, version) in [("h2", "HTTP/2.0"), ("http/1.1", "HTTP/1.1"), ("h2", "HTTP/2.0")] {
        upstream.config.store(Arc::new(server(spoken)));
        upstream.cut.notify_waiters();
        let expected = (200, format!("{version} /a 0"));
        let changed = async { while ask(&running).await != expected {} };
        tokio::time::timeout(PATIENCE, changed).await.unwrap_or_else(|_| panic!("{spoken} is never spoken"));
    }
    running.done().await;
}

#[tokio::test]
async fn an_upgrade_goes_over_http1_though_http2_is_spoken() {
    let authority = Authority::new();
    authority.sign("upstream", "inner.example");
    let upstream = Upstream::start(authority.server("upstream", &BOTH, ClientCertificates::Ignored)).await;
    let running = upstream.gateway(Protocol::Auto, authority.towards("inner.example")).await;
    assert_eq!(ask(&running).await.1, "HTTP/2.0 /a 0");
    let mut client = Client::connect(running.address).await;
    client.send("GET /b HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n").await;
    assert_eq!(client.answer().await.text(), "HTTP/1.1 /b 0");
    running.done().await;
}

#[tokio::test]
async fn the_gateway_shows_its_certificate_to_an_upstream_that_wants_one() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    authority.sign("upstream", "inner.example");
    authority.sign("gateway", "gateway.example");
    stranger.sign("gateway", "gateway.example");
    let towards = |shows: Option<&Authority>| UpstreamTls {
        certificate: shows.map(|authority| authority.path("gateway.pem")),
        key: shows.map(|authority| authority.path("gateway.key")),
        ..authority.towards("inner.example")
    };
    for spoken in [&["h2"][..], &["http/1.1"]] {
        let upstream = Upstream::start(authority.server("upstream", spoken, ClientCertificates::Required)).await;
        let running = upstream.gateway(Protocol::Auto, towards(Some(&authority))).await;
        let (status, text) = ask(&running).await;
        assert!(status == 200 && text.ends_with(" 1"), "{spoken:?}: {status} {text}");
        running.done().await;
        for shows in [None, Some(&stranger)] {
            let running = upstream.gateway(Protocol::Auto, towards(shows)).await;
            assert_eq!(ask(&running).await.0, 502, "{spoken:?}");
            running.done().await;
        }
        assert_eq!(upstream.connections.load(Ordering::SeqCst), 1);
    }
}

/// A response that ends with its connection is complete only if TLS says so: anybody on the way can close a connection.
#[tokio::test]
async fn a_response_that_ends_without_a_close_of_tls_is_broken_for_the_client_too() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let authority = Authority::new();
    authority.sign("upstream", "inner.example");
    let config = authority.server("upstream", &["http/1.1"], ClientCertificates::Ignored);
    for is_orderly in [true, false] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config.clone()));
        tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let mut stream = acceptor.accept(stream).await.unwrap();
            let _ = stream.read(&mut [0; 4096]).await;
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nhalf").await.unwrap();
            stream.flush().await.unwrap();
            if is_orderly {
                stream.shutdown().await.unwrap();
            } else {
                stream.get_mut().0.shutdown().await.unwrap();
            }
        });
        let mut settings = support::config(&[]);
        let mut upstream = UpstreamConfig::new(&format!("https://{address}")).unwrap();
        upstream.tls = authority.towards("inner.example");
        settings.upstreams = vec![upstream];
        let running = start(settings).await;
        let mut client = Client::connect(running.address).await;
        client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
        let response = String::from_utf8(client.rest().await).unwrap();
        assert!(response.contains("half"), "{response}");
        assert_eq!(response.ends_with("0\r\n\r\n"), is_orderly, "{response}");
        running.done().await;
    }
}
