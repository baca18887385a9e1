//! TLS of a listener.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{ServerConfig, crypto::ring};
use tokio_rustls::server::TlsStream;

use super::files::{Fresh, Refresh, TlsError, TlsFile, authorities, certificates, key, pair_error};
use crate::config::ServerTls;
use crate::identity::ClientCertificate;
use crate::net::Socket;
use crate::observe::log::Throttle;

/// TLS of one listener, shared by all workers.
#[derive(Debug)]
pub(crate) struct ListenerTls {
    config: Arc<Fresh<ServerConfig>>,
    asks_for_certificates: bool,
    warnings: Mutex<Throttle>,
}

/// A certificate and its private key in PEM, which could not be written to files.
///
/// Not `#[non_exhaustive]`: it is a pair.
#[derive(Clone)]
pub struct ServingPair {
    /// The certificate.
    pub certificate: String,
    /// The private key.
    pub key: String,
}

/// A connection on which TLS has been agreed.
#[derive(Debug)]
pub(crate) struct AcceptedTls {
    pub(crate) stream: TlsStream<Socket>,
    pub(crate) is_http2: bool,
    pub(crate) certificate: Option<Arc<ClientCertificate>>,
}

// === impl ServingPair ===

impl fmt::Debug for ServingPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServingPair").finish_non_exhaustive()
    }
}

// === impl ListenerTls ===

impl ListenerTls {
    /// Errors call the group of settings `name`.
    pub(crate) fn open(config: &ServerTls, name: &str) -> Result<Self, TlsError> {
        Self::open_with(config, name, None)
    }

    /// With a certificate that could not be written to the files, until they change.
    pub(crate) fn open_with(config: &ServerTls, name: &str, unwritten: Option<ServingPair>) -> Result<Self, TlsError> {
        let mut files = vec![config.certificate.clone(), config.key.clone()];
        files.extend(config.client_ca.clone());
        let asks_for_certificates = config.client_ca.is_some();
        let (config, name, unwritten) = (config.clone(), name.to_owned(), Mutex::new(unwritten));
        let config = Fresh::new(files, move || {
            let unwritten = unwritten.lock().unwrap_or_else(PoisonError::into_inner).take();
            rustls_config(&config, &name, unwritten.as_ref())
        })?;
        Ok(Self { config, asks_for_certificates, warnings: Mutex::default() })
    }

    /// Whether clients are asked for a certificate.
    pub(crate) fn asks_for_certificates(&self) -> bool {
        self.asks_for_certificates
    }

    pub(crate) async fn accept(&self, stream: Socket) -> io::Result<AcceptedTls> {
        let config = Arc::clone(&self.config.get());
        let stream = TlsAcceptor::from(config).accept(stream).await?;
        let (_, session) = stream.get_ref();
        let is_http2 = session.alpn_protocol() == Some(b"h2");
        // The certificate has been verified: only those that lead to a trusted authority get here. In a session that was resumed, that
        // was when the session began; whether the certificate has expired since, each request finds out.
        let certificate = session.peer_certificates().and_then(|chain| chain.first());
        let certificate = certificate.map(|certificate| Arc::new(self.read(certificate)));
        Ok(AcceptedTls { stream, is_http2, certificate })
    }

    /// The owner of a certificate; empty if the certificate names none.
    fn read(&self, certificate: &[u8]) -> ClientCertificate {
        ClientCertificate::from_der(certificate).unwrap_or_else(|problem| {
            if self.warnings.lock().unwrap_or_else(PoisonError::into_inner).may_log() {
                tracing::warn!("a client certificate is not accepted: {problem}");
            }
            ClientCertificate::default()
        })
    }

    pub(crate) fn files(&self) -> Arc<dyn Refresh> {
        Arc::clone(&self.config) as Arc<dyn Refresh>
    }
}

fn rustls_config(config: &ServerTls, name: &str, unwritten: Option<&ServingPair>) -> Result<ServerConfig, TlsError> {
    let certificate = TlsFile::new(name, "certificate", &config.certificate);
    let key_file = TlsFile::new(name, "key", &config.key);
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| certificate.unusable(&error))?;
    let builder = match &config.client_ca {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let file = TlsFile::new(name, "clientCa", path);
            let roots = Arc::new(authorities(&file)?);
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider).allow_unauthenticated();
            builder.with_client_cert_verifier(verifier.build().map_err(|error| file.unusable(&error))?)
        }
    };
    let (chain, private_key) = match unwritten {
        None => (certificates(&certificate)?, key(&key_file)?),
        Some(pair) => (
            CertificateDer::pem_slice_iter(pair.certificate.as_bytes())
                .collect::<Result<_, _>>()
                .map_err(|error| certificate.unusable(&error))?,
            PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).map_err(|error| key_file.unusable(&error))?,
        ),
    };
    let mut made =
        builder.with_single_cert(chain, private_key).map_err(|error| pair_error(&error, &certificate, &key_file))?;
    made.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(made)
}
