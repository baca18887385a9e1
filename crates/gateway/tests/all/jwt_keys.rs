//! Signed tokens whose keys the issuer serves over TLS.

use crate::authority;
use crate::support;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use authority::{Authority, ClientCertificates};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use evenkeel_gateway::config::{AnonymousRequests, IdentitySource, JwtIdentity};
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair};
use support::client::{Answer, Client, find, get};
use support::upstream::{Upstream, ok};
use support::{PATIENCE, Running, config, start};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

struct Issuer(Ed25519KeyPair);

impl Issuer {
    fn new() -> Self {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self(Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap())
    }

    fn key_set(&self) -> String {
        let x = URL_SAFE_NO_PAD.encode(self.0.public_key().as_ref());
        format!(r#"{{"keys": [{{"kty": "OKP", "crv": "Ed25519", "kid": "one", "x": "{x}"}}]}}"#)
    }

    fn token(&self, user: &str) -> String {
        let expires = SystemTime::now() + Duration::from_secs(3600);
        let expires = expires.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
        let claims = format!(r#"{{"sub": "{user}", "exp": {expires}}}"#);
        let [head, claims] = [r#"{"alg": "EdDSA", "kid": "one"}"#, &claims].map(|part| URL_SAFE_NO_PAD.encode(part));
        let text = format!("{head}.{claims}");
        format!("{text}.{}", URL_SAFE_NO_PAD.encode(self.0.sign(text.as_bytes())))
    }
}

/// Serves the keys over TLS, as this authority has certified it.
async fn serve_keys(authority: &Authority, keys: String) -> SocketAddr {
    authority.sign("issuer", "127.0.0.1");
    let acceptor = TlsAcceptor::from(Arc::new(authority.server("issuer", &[], ClientCertificates::Ignored)));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let Ok(stream) = acceptor.accept(stream).await else { continue };
            let mut client = Client::on(stream);
            let head = client.answer().await.head;
            let is_right = head.starts_with("GET /keys?tenant=1 HTTP/1.1\r\n") && find(&head, "host").is_some();
            client.send(&if is_right { ok(&keys) } else { "HTTP/1.1 404 Not Found\r\n\r\n".to_owned() }).await;
        }
    });
    address
}

async fn gateway(upstream: &Upstream, issuer: SocketAddr, authority: &Authority) -> Running {
    let mut settings = config(&[upstream.address]);
    settings.admin.address = Some(SocketAddr::from(([127, 0, 0, 1], 0)).into());
    settings.identity.sources = vec![IdentitySource::Jwt(JwtIdentity {
        keys: format!("https://{issuer}/keys?tenant=1").parse().unwrap(),
        keys_ca: Some(authority.path("ca.pem")),
        ..JwtIdentity::default()
    })];
    settings.identity.anonymous = AnonymousRequests::Deny;
    settings.identity.tell_upstream = true;
    settings.identity.open_paths = vec!["/healthz".to_owned()];
    start(settings).await
}

async fn ask(running: &Running, path: &str, token: &str) -> Answer {
    get(running.address, path, &format!("Authorization: Bearer {token}\r\n")).await
}

async fn metrics(running: &Running) -> String {
    get(running.gateway.admin_address().unwrap(), "/metrics", "").await.text()
}

#[tokio::test]
async fn tokens_are_believed_by_the_keys_that_the_issuer_serves() {
    let (authority, issuer, upstream) = (Authority::new(), Issuer::new(), Upstream::echo().await);
    let address = serve_keys(&authority, issuer.key_set()).await;
    let running = gateway(&upstream, address, &authority).await;
    let answer = ask(&running, "/", &issuer.token("alice")).await;
    assert_eq!((answer.status, find(&answer.text(), "x-remote-user").as_deref()), (200, Some("alice")));
    assert_eq!(ask(&running, "/", &Issuer::new().token("alice")).await.status, 401);
    assert_eq!(get(running.address, "/", "").await.status, 401);
    let metrics = metrics(&running).await;
    assert!(metrics.contains("evenkeel_jwt_key_fetches_total{outcome=\"succeeded\"} 1"), "{metrics}");
    running.done().await;
}

#[tokio::test]
async fn a_server_that_is_not_believed_gives_no_keys_and_tokens_are_told_so() {
    let (authority, issuer, upstream) = (Authority::new(), Issuer::new(), Upstream::echo().await);
    let address = serve_keys(&Authority::new(), issuer.key_set()).await;
    let running = tokio::time::timeout(PATIENCE, gateway(&upstream, address, &authority)).await.unwrap();
    let answer = ask(&running, "/", &issuer.token("alice")).await;
    assert_eq!(answer.status, 503);
    assert!(answer.text().contains("the keys of the token's issuer are being fetched; try again"), "{}", answer.text());
    // Whoever shows no token is told so, and open paths stay open.
    assert_eq!(get(running.address, "/", "").await.status, 401);
    assert_eq!(ask(&running, "/healthz", &issuer.token("alice")).await.status, 200);
    let metrics = metrics(&running).await;
    assert!(metrics.contains("evenkeel_jwt_key_fetches_total{outcome=\"succeeded\"} 0"), "{metrics}");
    assert!(!metrics.contains("evenkeel_jwt_key_fetches_total{outcome=\"failed\"} 0"), "{metrics}");
    running.done().await;
}
