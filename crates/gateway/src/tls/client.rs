//! TLS to an upstream.

use std::io;
use std::sync::Arc;

use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, Error, InvalidMessage, RootCertStore, crypto::ring};

use super::files::{Fresh, Refresh, TlsError, TlsFile, authorities, certificates, key, pair_error};
use crate::config::UpstreamTls;
use crate::net::Socket;

/// TLS towards one upstream. Clones share its files.
#[derive(Debug, Clone)]
pub(crate) struct ClientTls {
    name: ServerName<'static>,
    config: Arc<Fresh<Offers>>,
}

/// The protocols that the gateway offers (ALPN).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Offer {
    Http1,
    Http2,
    Both,
}

/// A configuration for every offer.
#[derive(Debug)]
struct Offers {
    http1: Arc<ClientConfig>,
    http2: Arc<ClientConfig>,
    both: Arc<ClientConfig>,
}

// === impl ClientTls ===

impl ClientTls {
    /// Errors call the group of settings `group`.
    pub(crate) fn open(config: &UpstreamTls, group: &str, host: &str) -> Result<Self, TlsError> {
        let name = config.server_name.as_deref().unwrap_or(host);
        let name = ServerName::try_from(name.to_owned()).map_err(|_| TlsError::Name(name.to_owned()))?;
        let files = [&config.ca, &config.certificate, &config.key].into_iter().flatten().cloned().collect();
        let (config, group) = (config.clone(), group.to_owned());
        Ok(Self { name, config: Fresh::new(files, move || Offers::new(&config, &group))? })
    }

    pub(crate) async fn connect(&self, stream: Socket, offer: Offer) -> io::Result<TlsStream<Socket>> {
        let config = {
            let offers = self.config.get();
            match offer {
                Offer::Http1 => Arc::clone(&offers.http1),
                Offer::Http2 => Arc::clone(&offers.http2),
                Offer::Both => Arc::clone(&offers.both),
            }
        };
        TlsConnector::from(config).connect(self.name.clone(), stream).await.map_err(explain)
    }

    pub(crate) fn files(&self) -> Arc<dyn Refresh> {
        Arc::clone(&self.config) as Arc<dyn Refresh>
    }
}

/// An error of the library about a corrupt message usually means a response without TLS: its first byte begins no message of TLS.
fn explain(error: io::Error) -> io::Error {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref());
    match cause {
        Some(Error::InvalidMessage(InvalidMessage::InvalidContentType)) => {
            io::Error::new(error.kind(), "the server does not speak TLS; is `http://` meant instead of `https://`?")
        }
        _ => error,
    }
}

// === impl Offers ===

impl Offers {
    fn new(config: &UpstreamTls, group: &str) -> Result<Self, TlsError> {
        let base = base(config, group)?;
        let with = |protocols: &[&str]| {
            let mut made = base.clone();
            made.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
            Arc::new(made)
        };
        Ok(Self { http1: with(&["http/1.1"]), http2: with(&["h2"]), both: with(&["h2", "http/1.1"]) })
    }
}

fn base(config: &UpstreamTls, group: &str) -> Result<ClientConfig, TlsError> {
    let ca = config.ca.as_ref().map(|path| TlsFile::new(group, "ca", path));
    let roots = match &ca {
        Some(file) => authorities(file)?,
        None => machine_roots()?,
    };
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| TlsError::Unsupported(error.to_string()))?
        .with_root_certificates(roots);
    match (&config.certificate, &config.key) {
        (None, None) => Ok(builder.with_no_client_auth()),
        (Some(certificate), Some(path)) => {
            let (certificate, key_file) =
                (TlsFile::new(group, "certificate", certificate), TlsFile::new(group, "key", path));
            builder
                .with_client_auth_cert(certificates(&certificate)?, key(&key_file)?)
                .map_err(|error| pair_error(&error, &certificate, &key_file))
        }
        _ => Err(TlsError::Half),
    }
}

fn machine_roots() -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() { Err(TlsError::NoRoots) } else { Ok(roots) }
}
