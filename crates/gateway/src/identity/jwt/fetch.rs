//! Fetches keys from the issuer's server.

use std::fmt::Display;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CACHE_CONTROL, HOST, USER_AGENT};
use http::{HeaderMap, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use crate::config::{Protocol, UpstreamTls};
use crate::tls::{ClientTls, Offer};

/// Where the keys of an issuer are.
#[derive(Debug)]
pub(super) struct KeySource {
    url: Uri,
    host: String,
    port: u16,
    tls: Option<ClientTls>,
}

/// What was fetched.
#[derive(Debug)]
pub(super) struct Fetched {
    pub(super) bytes: Bytes,
    /// How long the server says it stays good.
    pub(super) max_age: Option<Duration>,
}

/// How long it may take in all.
const FETCH_MAX: Duration = Duration::from_secs(10);
/// A key set is a few kilobytes.
const BYTES_MAX: usize = 1 << 20;

// === impl KeySource ===

impl KeySource {
    pub(super) fn new(url: &Uri, ca: Option<&Path>) -> Result<Self, String> {
        let is_tls = url.scheme_str() == Some("https");
        let host = url.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']').to_owned();
        let config = UpstreamTls { ca: ca.map(Into::into), ..UpstreamTls::default() };
        let tls = is_tls.then(|| ClientTls::open(&config, &host, Protocol::Http1)).transpose();
        let tls = tls.map_err(|error| format!("the keys of {url} cannot be fetched: {error}"))?;
        Ok(Self { url: url.clone(), host, port: url.port_u16().unwrap_or(if is_tls { 443 } else { 80 }), tls })
    }

    pub(super) fn url(&self) -> &Uri {
        &self.url
    }

    /// Fetches the keys. Errors say what went wrong, without the URL.
    pub(super) async fn fetch(&self) -> Result<Fetched, String> {
        let fetched = tokio::time::timeout(FETCH_MAX, self.fetch_patiently()).await;
        fetched.unwrap_or_else(|_| Err(format!("it took longer than {FETCH_MAX:?}")))
    }

    async fn fetch_patiently(&self) -> Result<Fetched, String> {
        let stream = match self.host.parse::<IpAddr>() {
            Ok(address) => TcpStream::connect((address, self.port)).await,
            Err(_) => TcpStream::connect((&*self.host, self.port)).await,
        };
        let stream = stream.map_err(|error| format!("no connection: {error}"))?;
        let response = match &self.tls {
            None => self.ask(stream).await?,
            Some(tls) => {
                // The file of the authorities may have changed.
                tls.files().refresh();
                let stream = tls.connect(stream, Offer::Http1).await;
                self.ask(stream.map_err(|error| format!("no TLS: {error}"))?).await?
            }
        };
        // Redirections are not followed: they could lead anywhere.
        if response.status() != StatusCode::OK {
            return Err(format!("the response has status {}", response.status()));
        }
        let max_age = max_age(response.headers());
        let body = Limited::new(response.into_body(), BYTES_MAX).collect().await;
        let bytes = body.map_err(|error| format!("the response cannot be read: {error}"))?.to_bytes();
        Ok(Fetched { bytes, max_age })
    }

    async fn ask(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    ) -> Result<Response<Incoming>, String> {
        let fault = |error: &dyn Display| format!("no response: {error}");
        let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = handshake.map_err(|error| fault(&error))?;
        tokio::spawn(connection);
        let request = Request::get(self.url.path_and_query().map_or("/", http::uri::PathAndQuery::as_str))
            .header(HOST, self.url.authority().map_or("", http::uri::Authority::as_str))
            .header(ACCEPT, "application/jwk-set+json, application/json, */*;q=0.1")
            .header(USER_AGENT, concat!("evenkeel/", env!("CARGO_PKG_VERSION")))
            .body(Empty::<Bytes>::new())
            .map_err(|error| fault(&error))?;
        sender.send_request(request).await.map_err(|error| fault(&error))
    }
}

/// What `Cache-Control` says.
fn max_age(headers: &HeaderMap) -> Option<Duration> {
    let values = headers.get_all(CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok());
    let mut directives = values.flat_map(|value| value.split(',')).map(str::trim);
    directives.find_map(|directive| {
        let (name, value) = directive.split_once('=')?;
        let seconds = value.trim_matches('"').parse().ok().filter(|_| name.eq_ignore_ascii_case("max-age"))?;
        Some(Duration::from_secs(seconds))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_age_is_read_from_cache_control() {
        for (values, seconds) in [
            (&[] as &[&str], None),
            (&["public, max-age=300, must-revalidate"], Some(300)),
            (&["no-transform", "Max-Age=\"60\""], Some(60)),
            (&["s-maxage=5"], None),
            (&["max-age=soon"], None),
            (&["max-age=-1"], None),
        ] {
            let headers = values.iter().map(|value| (CACHE_CONTROL, value.parse().unwrap())).collect();
            assert_eq!(max_age(&headers), seconds.map(Duration::from_secs), "{values:?}");
        }
    }
}
