//! TLS on both sides, and certificates that change.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::path::Path;
use std::sync::Arc;

use evenkeel_gateway::config::{CertificateIdentity, IdentitySource, ServerTls, UpstreamConfig};
use evenkeel_gateway::{Config, StartError};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use support::client::{Client, find};
use support::upstream::{Upstream, ok};
use support::{PATIENCE, config, start};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, ServerName, pem::PemObject};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig, crypto::ring};
use tokio_rustls::{TlsAcceptor, TlsConnector, client::TlsStream};

/// An authority, and a folder for what it signs.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: tempfile::TempDir,
}

impl Authority {
    fn new() -> Self {
        let mut parameters = CertificateParams::new(Vec::new()).unwrap();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(parameters, KeyPair::generate().unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.pem"), issuer.pem()).unwrap();
        Self { issuer, folder }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a certificate for this name, and its key.
    fn sign(&self, file: &str, name: &str) {
        let key = KeyPair::generate().unwrap();
        let mut parameters = CertificateParams::new(vec![name.to_owned()]).unwrap();
        parameters.distinguished_name = rcgen::DistinguishedName::new();
        parameters.distinguished_name.push(DnType::CommonName, name);
        parameters.distinguished_name.push(DnType::OrganizationName, "staff");
        let certificate = parameters.signed_by(&key, &self.issuer).unwrap();
        std::fs::write(self.path(&format!("{file}.key")), key.serialize_pem()).unwrap();
        std::fs::write(self.path(&format!("{file}.pem")), certificate.pem()).unwrap();
    }

    fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).unwrap();
        roots
    }

    fn listen(&self) -> ServerTls {
        ServerTls {
            certificate: self.path("server.pem"),
            key: self.path("server.key"),
            client_ca: Some(self.path("ca.pem")),
        }
    }

    async fn connect(
        &self,
        running: &support::Running,
        name: &str,
        shows: Option<&str>,
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(self.roots());
        let config = match shows {
            None => builder.with_no_client_auth(),
            Some(file) => {
                let (chain, key) = read(self.folder.path(), file);
                builder.with_client_auth_cert(chain, key).unwrap()
            }
        };
        let stream = TcpStream::connect(running.address).await?;
        TlsConnector::from(Arc::new(config)).connect(ServerName::try_from(name.to_owned()).unwrap(), stream).await
    }
}

type Pair = (Vec<tokio_rustls::rustls::pki_types::CertificateDer<'static>>, PrivateKeyDer<'static>);

fn read(folder: &Path, file: &str) -> Pair {
    let chain = PemObject::pem_file_iter(folder.join(format!("{file}.pem"))).unwrap().map(Result::unwrap).collect();
    (chain, PrivateKeyDer::from_pem_file(folder.join(format!("{file}.key"))).unwrap())
}

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
async fn certificates_are_read_again_when_they_change() {
    let authority = Authority::new();
    authority.sign("server", "old.example");
    let upstream = Upstream::echo().await;
    let running = start(settings(&authority, &upstream)).await;
    assert!(authority.connect(&running, "old.example", None).await.is_ok());
    // What cannot be used changes nothing.
    std::fs::write(authority.path("server.pem"), "nonsense").unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
    assert!(authority.connect(&running, "old.example", None).await.is_ok());
    authority.sign("server", "new.example");
    let changed = async {
        while authority.connect(&running, "new.example", None).await.is_err() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, changed).await.expect("the new certificate is never used");
    assert!(authority.connect(&running, "old.example", None).await.is_err());
    running.done().await;
}

#[tokio::test]
async fn upstreams_are_spoken_to_encrypted() {
    let authority = Authority::new();
    authority.sign("upstream", "inner.example");
    let (chain, key) = read(authority.folder.path(), "upstream");
    let config_of_server = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let acceptor = TlsAcceptor::from(Arc::new(config_of_server));
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let Ok(stream) = acceptor.accept(stream).await else { continue };
            let mut client = Client::on(stream);
            client.answer().await;
            client.send(&ok("inner")).await;
        }
    });
    for (name, status) in [("inner.example", 200), ("other.example", 502)] {
        let mut settings = config(&[]);
        let mut upstream = UpstreamConfig::new(&format!("https://{address}")).unwrap();
        upstream.tls.ca = Some(authority.path("ca.pem"));
        upstream.tls.server_name = Some(name.to_owned());
        settings.upstreams.push(upstream);
        let running = start(settings).await;
        assert_eq!(support::client::get(running.address, "/", "").await.status, status, "{name}");
        running.done().await;
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_file_is_said() {
    let authority = Authority::new();
    let upstream = Upstream::echo().await;
    authority.sign("server", "shop.example");
    std::fs::write(authority.path("server.key"), "nothing").unwrap();
    let result = evenkeel_gateway::Gateway::start(settings(&authority, &upstream), support::objects()).await;
    let Err(StartError::Tls(error)) = result else { panic!("it has started") };
    assert!(error.to_string().ends_with("server.key: there is no private key in PEM in this file"), "{error}");
}
