//! A server, and how it is asked.

use std::io::Write;

use anyhow::{Context, Result, anyhow, bail};
use bytes::Bytes;
use evenkeel_gateway::config::UpstreamTls;
use evenkeel_gateway::{Connection, FetchLimits, Fetcher};
use http::header::{ACCEPT, AUTHORIZATION};
use http::{HeaderMap, HeaderValue, Response, StatusCode, Uri};
use hyper::body::Incoming;
use tempfile::NamedTempFile;

use super::kubeconfig::{Access, Pem};

/// A server, and the files that exist for as long as it is asked.
#[derive(Debug)]
pub(crate) struct Server {
    url: String,
    path: String,
    fetcher: Fetcher,
    headers: HeaderMap,
    _files: Vec<NamedTempFile>,
}

/// A connection to a server, for one request after the other.
#[derive(Debug)]
pub(crate) struct Link<'a> {
    server: &'a Server,
    connection: Connection,
    is_used: bool,
}

// === impl Server ===

impl Server {
    pub(crate) fn new(access: &Access, limits: FetchLimits) -> Result<Self> {
        let url = access.server.trim_end_matches('/').to_owned();
        let uri: Uri = url.parse().with_context(|| format!("{url:?} is not a URL"))?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.host().is_none() {
            bail!("{url:?} is not a URL; it must begin with http:// or https://");
        }
        let mut files = Vec::new();
        let mut path = |pem: &Option<Pem>| -> Result<_> {
            Ok(match pem {
                None => None,
                Some(Pem::File(path)) => Some(path.clone()),
                Some(Pem::Text(text)) => {
                    // Only its owner may read such a file.
                    let mut file = NamedTempFile::new().context("cannot write a temporary file")?;
                    file.write_all(text).context("cannot write a temporary file")?;
                    let path = file.path().to_owned();
                    files.push(file);
                    Some(path)
                }
            })
        };
        let tls = UpstreamTls {
            ca: path(&access.ca)?,
            certificate: path(&access.certificate)?,
            key: path(&access.key)?,
            server_name: access.server_name.clone(),
        };
        let fetcher = Fetcher::new(&uri, &tls, "", limits).with_context(|| format!("cannot connect to {url}"))?;
        let mut headers = HeaderMap::new();
        if let Some(token) = &access.token {
            let mut value =
                HeaderValue::try_from(format!("Bearer {token}")).context("the token has invalid characters")?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let path = uri.path().trim_end_matches('/').to_owned();
        Ok(Self { url, path, fetcher, headers, _files: files })
    }

    /// The URL without a slash at its end.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Fetches a JSON document, with a connection of its own.
    pub(crate) async fn get(&self, target: &str) -> Result<(StatusCode, Bytes)> {
        let response = self.fetcher.get(&self.target(target), self.headers_for("application/json")).await;
        let response = response.map_err(|error| anyhow!("cannot read from {}: {error}", self.url))?;
        Ok((response.status(), response.into_body()))
    }

    /// Connects, for several requests. Errors are without the URL.
    pub(crate) async fn connect(&self) -> Result<Link<'_>, String> {
        Ok(Link { server: self, connection: self.fetcher.connect().await?, is_used: false })
    }

    fn target(&self, target: &str) -> String {
        format!("{}{target}", self.path)
    }

    fn headers_for(&self, media_type: &'static str) -> HeaderMap {
        let mut headers = self.headers.clone();
        headers.insert(ACCEPT, HeaderValue::from_static(media_type));
        headers
    }
}

// === impl Link ===

impl Link<'_> {
    /// Fetches a document of this media type. Errors are without the URL.
    pub(crate) async fn get(&mut self, target: &str, media_type: &'static str) -> Result<Response<Bytes>, String> {
        let target = self.server.target(target);
        let response = self.connection.get(&target, self.server.headers_for(media_type)).await;
        if response.is_ok() || !self.is_used {
            self.is_used = true;
            return response;
        }
        // A server may close a connection after any response: only a new one can tell what is wrong.
        *self = self.server.connect().await?;
        self.connection.get(&target, self.server.headers_for(media_type)).await
    }

    /// Asks for a document of this media type that may have no end. Errors are without the URL.
    pub(crate) async fn open(&mut self, target: &str, media_type: &'static str) -> Result<Response<Incoming>, String> {
        self.connection.open(&self.server.target(target), self.server.headers_for(media_type)).await
    }
}
