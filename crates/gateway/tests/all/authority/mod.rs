//! An authority whose certificates a test gives to gateways, clients and upstreams.
#![allow(dead_code, unreachable_pub, reason = "no test uses all of it")]

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use evenkeel_gateway::config::{ServerTls, UpstreamTls};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tokio::net::TcpStream;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig, crypto::ring};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::support::Running;

/// An authority, and a folder for what it signs.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: tempfile::TempDir,
}

/// Whether a server wants to see a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientCertificates {
    Ignored,
    Required,
}

impl Authority {
    pub fn new() -> Self {
        let mut parameters = CertificateParams::new(Vec::new()).unwrap();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(parameters, KeyPair::generate().unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.pem"), issuer.pem()).unwrap();
        Self { issuer, folder }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a certificate for this name, or for none if that is empty, and its key.
    pub fn sign(&self, file: &str, name: &str) {
        self.sign_until(file, name, None);
    }

    /// The same, with an end of its own.
    pub fn sign_until(&self, file: &str, name: &str, not_after: Option<SystemTime>) {
        let key = KeyPair::generate().unwrap();
        let mut parameters =
            CertificateParams::new(Vec::from_iter((!name.is_empty()).then(|| name.to_owned()))).unwrap();
        parameters.distinguished_name = rcgen::DistinguishedName::new();
        if !name.is_empty() {
            parameters.distinguished_name.push(DnType::CommonName, name);
        }
        parameters.distinguished_name.push(DnType::OrganizationName, "staff");
        if let Some(end) = not_after {
            let since_1970 = end.duration_since(SystemTime::UNIX_EPOCH).unwrap();
            parameters.not_after = rcgen::date_time_ymd(1970, 1, 1) + since_1970;
        }
        let certificate = parameters.signed_by(&key, &self.issuer).unwrap();
        std::fs::write(self.path(&format!("{file}.key")), key.serialize_pem()).unwrap();
        std::fs::write(self.path(&format!("{file}.pem")), certificate.pem()).unwrap();
    }

    fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).unwrap();
        roots
    }

    fn read(&self, file: &str) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
        let chain = PemObject::pem_file_iter(self.path(&format!("{file}.pem"))).unwrap().map(Result::unwrap).collect();
        (chain, PrivateKeyDer::from_pem_file(self.path(&format!("{file}.key"))).unwrap())
    }

    /// The settings of a listener with the certificate `server`.
    pub fn listen(&self) -> ServerTls {
        ServerTls {
            certificate: self.path("server.pem"),
            key: self.path("server.key"),
            client_ca: Some(self.path("ca.pem")),
        }
    }

    /// The settings towards an upstream of this name.
    pub fn towards(&self, name: &str) -> UpstreamTls {
        UpstreamTls { ca: Some(self.path("ca.pem")), server_name: Some(name.to_owned()), ..UpstreamTls::default() }
    }

    /// What a server with this certificate does, and speaks.
    pub fn server(&self, file: &str, protocols: &[&str], clients: ClientCertificates) -> ServerConfig {
        let (chain, key) = self.read(file);
        let provider = Arc::new(ring::default_provider());
        let builder =
            ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions().unwrap();
        let builder = match clients {
            ClientCertificates::Ignored => builder.with_no_client_auth(),
            ClientCertificates::Required => {
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(self.roots()), provider);
                builder.with_client_cert_verifier(verifier.build().unwrap())
            }
        };
        let mut config = builder.with_single_cert(chain, key).unwrap();
        config.alpn_protocols = wire_names(protocols);
        config
    }

    pub async fn connect(
        &self,
        running: &Running,
        name: &str,
        shows: Option<&str>,
    ) -> std::io::Result<TlsStream<TcpStream>> {
        self.connect_offering(running, name, shows, &[]).await
    }

    /// Connects to a gateway, which must have this name, and offers these protocols.
    pub async fn connect_offering(
        &self,
        running: &Running,
        name: &str,
        shows: Option<&str>,
        protocols: &[&str],
    ) -> std::io::Result<TlsStream<TcpStream>> {
        self.connect_to(running.address, name, shows, protocols).await
    }

    /// Connects to whoever is there.
    pub async fn connect_to(
        &self,
        address: SocketAddr,
        name: &str,
        shows: Option<&str>,
        protocols: &[&str],
    ) -> std::io::Result<TlsStream<TcpStream>> {
        self.connect_with(&self.client(shows, protocols), address, name).await
    }

    /// What a client does. With the same settings it takes up the sessions that it had before.
    pub fn client(&self, shows: Option<&str>, protocols: &[&str]) -> Arc<ClientConfig> {
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(self.roots());
        let mut config = match shows {
            None => builder.with_no_client_auth(),
            Some(file) => {
                let (chain, key) = self.read(file);
                builder.with_client_auth_cert(chain, key).unwrap()
            }
        };
        config.alpn_protocols = wire_names(protocols);
        Arc::new(config)
    }

    pub async fn connect_with(
        &self,
        config: &Arc<ClientConfig>,
        address: SocketAddr,
        name: &str,
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(address).await?;
        TlsConnector::from(Arc::clone(config)).connect(ServerName::try_from(name.to_owned()).unwrap(), stream).await
    }

    /// Agrees on TLS with whoever is at the other end of a connection.
    pub async fn handshake(&self, stream: TcpStream, name: &str) -> std::io::Result<TlsStream<TcpStream>> {
        let connector = TlsConnector::from(self.client(None, &[]));
        connector.connect(ServerName::try_from(name.to_owned()).unwrap(), stream).await
    }
}

fn wire_names(protocols: &[&str]) -> Vec<Vec<u8>> {
    protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect()
}
