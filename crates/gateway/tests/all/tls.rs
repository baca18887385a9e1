//! TLS of a listener, and certificates that change.

use crate::authority;
use crate::support;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use evenkeel::identify::Identify;
use evenkeel_gateway::config::{
    AddressIdentity, CertificateIdentity, IdentityConfig, IdentitySource, ListenConfig, ServerTls, UpstreamConfig,
    UpstreamTls,
};
use evenkeel_gateway::host::{Host, HostIdentity, HostLimits};
use evenkeel_gateway::identity::Identification;
use evenkeel_gateway::{Config, StartError};
use http::{Request, Version};
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use support::client::{Client, find};
use support::upstream::Upstream;
use support::{PATIENCE, config, start};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::rustls::HandshakeKind;

use authority::Authority;

fn settings(authority: &Authority, upstream: &Upstream) -> Config {
    let mut settings = config(&[upstream.address]);
    settings.listen[0].tls = Some(authority.listen());
    settings
}

#[tokio::test]
async fn requests_arrive_encrypted() {
    let authority = Authority::new();
    authority.sign("server", "shop.example");
    let upstream = Upstream::echo().await;
    let running = start(settings(&authority, &upstream)).await;
    let mut client = Client::on(authority.connect(&running, "shop.example", None).await.unwrap());
    for _ in 0..2 {
        client.send("GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n").await;
        let seen = client.answer().await.text();
        assert_eq!(find(&seen, "x-forwarded-proto").as_deref(), Some("https"));
    }
    drop(client);
    running.done().await;
}

#[tokio::test]
async fn a_client_certificate_must_be_trusted() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    authority.sign("server", "shop.example");
    authority.sign("client", "alice");
    stranger.sign("client", "mallory");
    std::fs::copy(stranger.path("client.pem"), authority.path("mallory.pem")).unwrap();
    std::fs::copy(stranger.path("client.key"), authority.path("mallory.key")).unwrap();
    let upstream = Upstream::echo().await;
    let mut settings = settings(&authority, &upstream);
    settings.identity.sources = vec![IdentitySource::ClientCertificate(CertificateIdentity::default())];
    settings.identity.tell_upstream = true;
    let running = start(settings).await;
    let mut client = Client::on(authority.connect(&running, "shop.example", Some("client")).await.unwrap());
    client.send("GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n").await;
    assert_eq!(client.answer().await.status, 200);
    // Under TLS 1.3 a client learns that it is refused when it reads.
    if let Ok(stream) = authority.connect(&running, "shop.example", Some("mallory")).await {
        assert!(Client::on(stream).is_closed().await);
    }
    drop(client);
    running.done().await;
}

#[tokio::test]
async fn a_certificate_whose_name_is_not_believed_is_answered_with_401() {
    let authority = Authority::new();
    authority.sign("server", "shop.example");
    let upstream = Upstream::echo().await;
    let mut settings = settings(&authority, &upstream);
    let address = IdentitySource::Address(AddressIdentity::default());
    settings.identity.sources = vec![IdentitySource::ClientCertificate(CertificateIdentity::default()), address];
    let running = start(settings).await;
    for (name, status) in [("alice", 200), ("system:admin", 401), ("", 401)] {
        authority.sign("client", name);
        let mut client = Client::on(authority.connect(&running, "shop.example", Some("client")).await.unwrap());
        client.send("GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n").await;
        assert_eq!(client.answer().await.status, status, "{name:?}");
    }
    running.done().await;
}

#[tokio::test]
async fn a_client_that_does_not_get_on_with_tls_is_given_up() {
    let authority = Authority::new();
    authority.sign("server", "shop.example");
    let upstream = Upstream::echo().await;
    let mut settings = settings(&authority, &upstream);
    settings.timeouts.head = std::time::Duration::from_millis(150);
    let running = start(settings).await;
    // Nothing at all, the beginning of a hello, and something else.
    for said in ["", "\x16\x03\x01\x02\x00\x01\x00", "GET / HTTP/1.1\r\nHost: a\r\n\r\n"] {
        let mut client = Client::connect(running.address).await;
        client.send(said).await;
        client.rest().await;
    }
    // Nor is one that agrees, and then says nothing.
    for protocol in ["http/1.1", "h2"] {
        // On a slow machine it may be given up before it has agreed.
        if let Ok(stream) = authority.connect_offering(&running, "shop.example", None, &[protocol]).await {
            Client::on(stream).rest().await;
        }
    }
    running.done().await;
}

#[tokio::test]
async fn certificates_are_read_again_when_they_change() {
    let authority = Authority::new();
    authority.sign("server", "old.example");
    authority.sign("other", "other-old.example");
    let upstream = Upstream::echo().await;
    let mut settings = settings(&authority, &upstream);
    let mut other = settings.listen[0].clone();
    let files = (authority.path("other.pem"), authority.path("other.key"));
    other.tls = other.tls.map(|tls| ServerTls { certificate: files.0, key: files.1, ..tls });
    settings.listen.push(other);
    let running = start(settings).await;
    let [first, second] = running.gateway.addresses()[..] else { panic!("two listeners") };
    let is_used = async |address, name| authority.connect_to(address, name, None, &[]).await.is_ok();
    let until_used = async |address, name| {
        let changed = async {
            while !is_used(address, name).await {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, changed).await.expect("the new certificate is never used");
    };
    assert!(is_used(first, "old.example").await && is_used(second, "other-old.example").await);
    // What cannot be used changes nothing. It has been looked at when a later change of the second listener is in effect.
    std::fs::write(authority.path("server.pem"), "nonsense").unwrap();
    authority.sign("other", "other-new.example");
    until_used(second, "other-new.example").await;
    assert!(is_used(first, "old.example").await);
    authority.sign("server", "new.example");
    until_used(first, "new.example").await;
    assert!(!is_used(first, "old.example").await);
    running.done().await;
}

#[tokio::test]
async fn the_protocol_is_the_best_that_the_client_offers() {
    let authority = Authority::new();
    authority.sign("server", "shop.example");
    let upstream = Upstream::echo().await;
    let running = start(settings(&authority, &upstream)).await;
    for (offered, chosen) in [
        (&["h2", "http/1.1"][..], Some("h2")),
        (&["http/1.1", "h2"], Some("h2")),
        (&["h2"], Some("h2")),
        (&["http/1.1"], Some("http/1.1")),
        (&["spdy/3", "http/1.1"], Some("http/1.1")),
        (&[], None),
    ] {
        let stream = authority.connect_offering(&running, "shop.example", None, offered).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), chosen.map(str::as_bytes), "{offered:?}");
        let seen = if chosen == Some("h2") {
            let (mut sender, connection) =
                hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
            tokio::spawn(connection);
            let request = Request::get("https://shop.example/").body(Empty::<Bytes>::new()).unwrap();
            let response = sender.send_request(request).await.unwrap();
            assert_eq!((response.status().as_u16(), response.version()), (200, Version::HTTP_2));
            String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
        } else {
            let mut client = Client::on(stream);
            client.send("GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n").await;
            client.answer().await.text()
        };
        assert_eq!(find(&seen, "x-forwarded-proto").as_deref(), Some("https"), "{offered:?}");
    }
    // Those who offer nothing that is spoken here are told so at once.
    assert!(authority.connect_offering(&running, "shop.example", None, &["spdy/3"]).await.is_err());
    running.done().await;
}

/// Why a gateway does not start with these settings.
async fn refusal(settings: Config) -> String {
    let objects = evenkeel_gateway::objects::source(&settings);
    let result = evenkeel_gateway::Gateway::start(settings, objects).await;
    let Err(StartError::Tls(error)) = result else { panic!("it has started") };
    error.to_string()
}

/// A key with a password, in the format that OpenSSL writes now.
const ENCRYPTED_KEY: &str = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
/// And in the one that it wrote before.
const ENCRYPTED_KEY_BEFORE: &str = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\nAAAA\n\
                                    -----END RSA PRIVATE KEY-----\n";

#[tokio::test]
async fn what_is_wrong_with_a_file_is_said_with_its_setting_and_what_to_do() {
    let authority = Authority::new();
    let upstream = Upstream::echo().await;
    let write = |name: &str, text: &str| std::fs::write(authority.path(name), text).unwrap();
    authority.sign("server", "shop.example");
    authority.sign("other", "other.example");
    let (certificate, key) = (authority.path("server.pem"), authority.path("server.key"));
    let [certificate_text, key_text, other_key] =
        ["server.pem", "server.key", "other.key"].map(|name| std::fs::read_to_string(authority.path(name)).unwrap());
    let (certificate, key) = (certificate.display(), key.display());
    let of_key = format!("listen[0].tls.key: {key}: ");
    let encrypted = format!(
        "{of_key}the key is encrypted, which is not supported; decrypt it with `openssl pkey -in {key} -out new.key`, and keep \
         the new file private"
    );
    for (certificate_file, key_file, expected) in [
        (&*certificate_text, "nothing", format!("{of_key}this file contains no private key in PEM")),
        (&certificate_text, ENCRYPTED_KEY, encrypted.clone()),
        (&certificate_text, ENCRYPTED_KEY_BEFORE, encrypted),
        (
            &certificate_text,
            &other_key,
            format!(
                "{of_key}the key does not belong to the certificate in {certificate}; name the key that belongs to it"
            ),
        ),
        (
            &key_text,
            &certificate_text,
            format!(
                "listen[0].tls.certificate: {certificate}: this is a private key, and a certificate is wanted; are the two \
                 files swapped?"
            ),
        ),
        (
            &certificate_text,
            &certificate_text,
            format!("{of_key}this is a certificate, and its private key is wanted; are the two files swapped?"),
        ),
        (
            "nothing",
            &key_text,
            format!("listen[0].tls.certificate: {certificate}: this file contains no certificate in PEM"),
        ),
    ] {
        write("server.pem", certificate_file);
        write("server.key", key_file);
        assert_eq!(refusal(settings(&authority, &upstream)).await, expected);
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_file_for_an_upstream_is_said_with_its_setting() {
    let authority = Authority::new();
    let mut settings = config(&["127.0.0.1:9".parse().unwrap()]);
    settings.upstreams.push(UpstreamConfig::new("https://inner.example").unwrap());
    settings.upstreams[1].tls = UpstreamTls { ca: Some(authority.path("gone.crt")), ..UpstreamTls::default() };
    let (found, file) = (refusal(settings).await, authority.path("gone.crt"));
    let expected = format!(
        "upstreams[1].tls.ca: {}: No such file or directory (os error 2); name a file that exists and is readable",
        file.display()
    );
    assert_eq!(found, expected);
}

/// The status of a request on this connection.
async fn status(client: &mut Client<impl AsyncRead + AsyncWrite + Unpin>) -> u16 {
    client.send("GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n").await;
    client.answer().await.status
}

/// A service of our own that answers whom it knows with 200.
async fn hosted(listen: &ListenConfig, identity: &IdentityConfig) -> SocketAddr {
    let identification = Identification::open(identity).unwrap();
    let host = Host::bind(listen, identification, HostLimits::default()).await.unwrap();
    let address = host.address();
    let of_peer = |peer: HostIdentity| {
        tower::service_fn(move |request: Request<Incoming>| {
            let (parts, _) = request.into_parts();
            let status = peer.identify(&parts).map_or_else(|error| error.status, |_| http::StatusCode::OK);
            let response = http::Response::builder().status(status).body(Full::new(Bytes::new()));
            std::future::ready(Ok::<_, Infallible>(response.unwrap()))
        })
    };
    let (stop, stopped) = tokio::sync::watch::channel(false);
    tokio::spawn(async move {
        host.serve(of_peer, stopped).await;
        drop(stop);
    });
    address
}

/// Whether the certificate lived long enough for the first requests. Then they are refused after its end, be it on the
/// connection from before or in a session that is resumed.
async fn is_refused_after_its_end(lifetime: Duration) -> bool {
    let authority = Authority::new();
    authority.sign("server", "shop.example");
    // Certificates count in seconds.
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let end = SystemTime::UNIX_EPOCH + Duration::from_secs(since_1970.as_secs()) + lifetime;
    authority.sign_until("client", "alice", Some(end));
    let upstream = Upstream::echo().await;
    let mut settings = settings(&authority, &upstream);
    let address = IdentitySource::Address(AddressIdentity::default());
    settings.identity.sources = vec![IdentitySource::ClientCertificate(CertificateIdentity::default()), address];
    let hosted = hosted(&settings.listen[0], &settings.identity).await;
    let running = start(settings).await;

    let mut clients = Vec::new();
    for address in [running.address, hosted] {
        let config = authority.client(Some("client"), &["http/1.1"]);
        let Ok(stream) = authority.connect_with(&config, address, "shop.example").await else { return false };
        let mut client = Client::on(stream);
        if status(&mut client).await != 200 {
            return false;
        }
        clients.push((address, config, client));
    }
    while SystemTime::now() <= end {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    for (address, config, mut client) in clients {
        assert_eq!(status(&mut client).await, 401, "the connection outlives the certificate");
        let stream = authority.connect_with(&config, address, "shop.example").await.unwrap();
        assert_eq!(stream.get_ref().1.handshake_kind(), Some(HandshakeKind::Resumed));
        assert_eq!(status(&mut Client::on(stream)).await, 401, "the session outlives the certificate");
    }
    running.done().await;
    true
}

#[tokio::test]
async fn a_session_is_not_believed_for_longer_than_its_certificate() {
    for seconds in [2, 8, 32] {
        if is_refused_after_its_end(Duration::from_secs(seconds)).await {
            return;
        }
    }
    panic!("the first request is never answered");
}
