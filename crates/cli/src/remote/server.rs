//! A server, and how it is asked.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, anyhow, bail};
use bytes::Bytes;
use evenkeel_gateway::config::UpstreamTls;
use evenkeel_gateway::{Connection, FetchLimits, Fetcher};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Uri};
use hyper::body::Incoming;
use tempfile::NamedTempFile;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::credential_plugin::{ClientCertificate, Credential, CredentialPlugin, PluginTerminal};
use super::kubeconfig::{Access, Pem};

/// The shortest time before a plugin is run again because the server has rejected its credential.
const RENEWAL_PERIOD_MIN: Duration = Duration::from_secs(60);

/// A server, and how to authenticate there.
#[derive(Debug)]
pub(crate) struct Server {
    url: String,
    uri: Uri,
    path: String,
    limits: FetchLimits,
    access: Access,
    /// `None` until a plugin has been run for the first time.
    session: Mutex<Option<Arc<Session>>>,
}

/// A way to ask a server that holds for some time, and the files that exist for as long.
#[derive(Debug)]
struct Session {
    fetcher: Fetcher,
    headers: HeaderMap,
    /// The credential of a plugin.
    credential: Option<Credential>,
    began: Instant,
    _files: Vec<NamedTempFile>,
}

/// A connection to a server, for one request after the other.
#[derive(Debug)]
pub(crate) struct Link<'a> {
    server: &'a Server,
    session: Arc<Session>,
    connection: Connection,
    is_used: bool,
}

// === impl Server ===

impl Server {
    pub(crate) fn new(access: &Access, limits: FetchLimits) -> Result<Self> {
        let mut access = access.clone();
        // A token or a certificate counts more than a plugin, as with kubectl.
        if access.token.is_some() || access.certificate.is_some() {
            access.plugin = None;
        }
        let url = access.server.trim_end_matches('/').to_owned();
        let uri: Uri = url.parse().with_context(|| format!("{url:?} is not a URL"))?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.host().is_none() {
            bail!("{url:?} is not a URL; it must begin with http:// or https://");
        }
        let path = uri.path().trim_end_matches('/').to_owned();
        let mut server = Self { url, uri, path, limits, access, session: Mutex::default() };
        if server.access.plugin.is_none() {
            *server.session.get_mut() = Some(Arc::new(server.begin(None)?));
        }
        Ok(server)
    }

    /// The URL without a slash at its end.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Runs the credential plugin, if there is one, while it can have the terminal.
    pub(crate) async fn sign_in(&self) -> Result<()> {
        self.session().await.map(drop)
    }

    /// Fetches a JSON document, with a connection of its own.
    pub(crate) async fn get(&self, target: &str) -> Result<(StatusCode, Bytes)> {
        self.send(Method::GET, target, None, Bytes::new()).await
    }

    /// Sends a request with a body of this media type, with a connection of its own. The response is JSON.
    pub(crate) async fn send(
        &self,
        method: Method,
        target: &str,
        media_type: Option<&'static str>,
        body: Bytes,
    ) -> Result<(StatusCode, Bytes)> {
        let mut session = self.session().await?;
        loop {
            let mut headers = session.headers_for("application/json");
            if let Some(media_type) = media_type {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
            }
            let target = self.target(target);
            let response = session.fetcher.send(method.clone(), &target, headers, body.clone()).await;
            let response = response.map_err(|error| anyhow!("cannot read from {}: {error}", self.url))?;
            if response.status() == StatusCode::UNAUTHORIZED
                && let Some(renewed) = self.session_in_place_of(&session).await?
            {
                session = renewed;
                continue;
            }
            return Ok((response.status(), response.into_body()));
        }
    }

    /// Connects, for several requests. Errors are without the URL.
    pub(crate) async fn connect(&self) -> Result<Link<'_>, String> {
        let session = self.session().await.map_err(|error| format!("{error:#}"))?;
        let connection = session.fetcher.connect().await?;
        Ok(Link { server: self, session, connection, is_used: false })
    }

    fn target(&self, target: &str) -> String {
        format!("{}{target}", self.path)
    }

    /// The session of now: a new one if there is none, or if its credential has expired.
    async fn session(&self) -> Result<Arc<Session>> {
        let mut session = self.session.lock().await;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let now = i64::try_from(now).unwrap_or(i64::MAX);
        match &*session {
            Some(session) if !session.credential.as_ref().is_some_and(|credential| credential.is_expired(now)) => {
                Ok(session.clone())
            }
            _ => self.renew(&mut session).await,
        }
    }

    /// A session in place of one whose credential the server has rejected. `None` if there can be no other.
    async fn session_in_place_of(&self, rejected: &Arc<Session>) -> Result<Option<Arc<Session>>> {
        let mut session = self.session.lock().await;
        match &*session {
            Some(session) if !Arc::ptr_eq(session, rejected) => Ok(Some(session.clone())),
            _ if self.access.plugin.is_none() || rejected.began.elapsed() < RENEWAL_PERIOD_MIN => Ok(None),
            _ => self.renew(&mut session).await.map(Some),
        }
    }

    async fn renew(&self, session: &mut Option<Arc<Session>>) -> Result<Arc<Session>> {
        // The first time is before anything is shown.
        let terminal = if session.is_none() { PluginTerminal::Shared } else { PluginTerminal::Withheld };
        let credential = match &self.access.plugin {
            Some(plugin) => Some(CredentialPlugin::run(plugin, terminal).await?),
            None => None,
        };
        let begun = Arc::new(self.begin(credential)?);
        *session = Some(begun.clone());
        Ok(begun)
    }

    fn begin(&self, credential: Option<Credential>) -> Result<Session> {
        let access = &self.access;
        let mut files = Vec::new();
        let mut file = |text: &[u8]| -> Result<PathBuf> {
            // Only its owner may read such a file.
            let mut file = NamedTempFile::new().context("cannot write a temporary file")?;
            file.write_all(text).context("cannot write a temporary file")?;
            let path = file.path().to_owned();
            files.push(file);
            Ok(path)
        };
        let mut path = |pem: &Option<Pem>| match pem {
            None => Ok(None),
            Some(Pem::File(path)) => Ok(Some(path.clone())),
            Some(Pem::Text(text)) => file(text).map(Some),
        };
        let mut tls = UpstreamTls {
            ca: path(&access.ca)?,
            certificate: path(&access.certificate)?,
            key: path(&access.key)?,
            server_name: access.server_name.clone(),
        };
        if let Some(ClientCertificate { certificate, key }) =
            credential.as_ref().and_then(|own| own.certificate.as_ref())
        {
            (tls.certificate, tls.key) = (Some(file(certificate)?), Some(file(key)?));
        }
        let fetcher = Fetcher::new(&self.uri, &tls, "", self.limits);
        let fetcher = fetcher.with_context(|| format!("cannot connect to {}", self.url))?;
        let mut headers = HeaderMap::new();
        let token = access.token.as_ref().or(credential.as_ref().and_then(|own| own.token.as_ref()));
        if let Some(token) = token {
            let mut value =
                HeaderValue::try_from(format!("Bearer {token}")).context("the token has invalid characters")?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        Ok(Session { fetcher, headers, credential, began: Instant::now(), _files: files })
    }
}

// === impl Session ===

impl Session {
    fn headers_for(&self, media_type: &'static str) -> HeaderMap {
        let mut headers = self.headers.clone();
        headers.insert(ACCEPT, HeaderValue::from_static(media_type));
        headers
    }

    fn certificate(&self) -> Option<&ClientCertificate> {
        self.credential.as_ref().and_then(|credential| credential.certificate.as_ref())
    }
}

// === impl Link ===

impl Link<'_> {
    /// Fetches a document of this media type. Errors are without the URL.
    pub(crate) async fn get(&mut self, target: &str, media_type: &'static str) -> Result<Response<Bytes>, String> {
        let session = self.server.session().await.map_err(|error| format!("{error:#}"))?;
        self.follow(session).await?;
        let response = self.get_once(target, media_type).await?;
        if response.status() == StatusCode::UNAUTHORIZED {
            let renewed = self.server.session_in_place_of(&self.session).await.map_err(|error| format!("{error:#}"))?;
            if let Some(session) = renewed {
                self.follow(session).await?;
                return self.get_once(target, media_type).await;
            }
        }
        Ok(response)
    }

    async fn get_once(&mut self, target: &str, media_type: &'static str) -> Result<Response<Bytes>, String> {
        let target = self.server.target(target);
        let response = self.connection.get(&target, self.session.headers_for(media_type)).await;
        if response.is_ok() || !self.is_used {
            self.is_used = true;
            return response;
        }
        // A server may close a connection after any response: only a new one can tell what is wrong.
        *self = self.server.connect().await?;
        self.connection.get(&target, self.session.headers_for(media_type)).await
    }

    /// Asks for a document of this media type that may have no end. Errors are without the URL.
    pub(crate) async fn open(&mut self, target: &str, media_type: &'static str) -> Result<Response<Incoming>, String> {
        self.connection.open(&self.server.target(target), self.session.headers_for(media_type)).await
    }

    /// Goes on with another session. A connection knows the certificate that it was opened with.
    async fn follow(&mut self, session: Arc<Session>) -> Result<(), String> {
        if session.certificate() != self.session.certificate() {
            (self.connection, self.is_used) = (session.fetcher.connect().await?, false);
        }
        self.session = session;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
