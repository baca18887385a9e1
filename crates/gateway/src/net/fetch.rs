//! `Fetcher`: asks another server for documents or sends it some, over HTTP/1.1 with TLS or without.

use std::fmt::Display;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use http::header::{HOST, USER_AGENT};
use http::uri::Authority;
use http::{HeaderMap, Method, Request, Response, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::config::UpstreamTls;
use crate::net::{Socket, Stream};
use crate::tls::{ClientTls, Offer, TlsError};

/// Fetches documents from one server. Each has a connection of its own, and redirections are not followed: they could lead
/// anywhere.
#[derive(Debug)]
pub struct Fetcher {
    authority: String,
    host: String,
    port: u16,
    tls: Option<ClientTls>,
    limits: FetchLimits,
}

/// A connection to a server, for one request after the other.
#[derive(Debug)]
pub struct Connection {
    authority: String,
    sender: SendRequest<Full<Bytes>>,
    limits: FetchLimits,
}

/// How much a response may take.
///
/// Not `#[non_exhaustive]`: callers make it, and have to give all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchLimits {
    /// How long it may take in all.
    pub time: Duration,
    /// How many bytes it may have.
    pub bytes: usize,
}

// === impl Fetcher ===

impl Fetcher {
    /// For the server of this URL. A URL of the scheme `https` is asked with TLS, whose settings errors call `group`: a name
    /// such as `tracing.tls`, or an empty one.
    pub fn new(url: &Uri, tls: &UpstreamTls, group: &str, limits: FetchLimits) -> Result<Self, TlsError> {
        let is_tls = url.scheme_str() == Some("https");
        let host = url.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']').to_owned();
        let tls = is_tls.then(|| ClientTls::open(tls, group, &host)).transpose()?;
        let authority = url.authority().map_or("", Authority::as_str).to_owned();
        Ok(Self { authority, host, port: url.port_u16().unwrap_or(if is_tls { 443 } else { 80 }), tls, limits })
    }

    /// Fetches what is at this path, with any status. Errors say what went wrong, without the URL.
    pub async fn get(&self, target: &str, headers: HeaderMap) -> Result<Response<Bytes>, String> {
        self.send(Method::GET, target, headers, Bytes::new()).await
    }

    /// Sends a request with this body, and returns the response, with any status. Errors are as those of [`get`](Self::get).
    pub async fn send(
        &self,
        method: Method,
        target: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Bytes>, String> {
        let send = async { self.connect_patiently().await?.send_patiently(method, target, headers, body).await };
        self.limits.within(send).await
    }

    /// Connects, for several requests.
    pub async fn connect(&self) -> Result<Connection, String> {
        self.limits.within(self.connect_patiently()).await
    }

    /// Opens a connection to the server, with TLS if its URL says so. There is no limit of time.
    pub(crate) async fn stream(&self, offer: Offer) -> Result<Stream, String> {
        let stream = match self.host.parse::<IpAddr>() {
            Ok(address) => TcpStream::connect((address, self.port)).await,
            Err(_) => TcpStream::connect((&*self.host, self.port)).await,
        };
        let stream = stream.map_err(|error| match error.kind() {
            ErrorKind::ConnectionRefused => format!("no connection: {error}; is it running, and is the port right?"),
            _ => format!("no connection: {error}"),
        })?;
        // If it fails, the connection is gone already.
        let _ = stream.set_nodelay(true);
        let stream = Socket::Tcp(stream);
        let Some(tls) = &self.tls else { return Ok(Stream::Plain(stream)) };
        // The file of the authorities may have changed.
        tls.files().refresh();
        let stream = tls.connect(stream, offer).await.map_err(|error| format!("no TLS: {error}"))?;
        Ok(Stream::Tls(Box::new(stream.into())))
    }

    async fn connect_patiently(&self) -> Result<Connection, String> {
        let stream = self.stream(Offer::Http1).await?;
        let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
        let (sender, connection) = handshake.map_err(|error| no_response(&error))?;
        tokio::spawn(connection);
        Ok(Connection { authority: self.authority.clone(), sender, limits: self.limits })
    }
}

// === impl Connection ===

impl Connection {
    /// Fetches what is at this path, with any status. Errors say what went wrong, without the URL.
    pub async fn get(&mut self, target: &str, headers: HeaderMap) -> Result<Response<Bytes>, String> {
        self.limits.within(self.send_patiently(Method::GET, target, headers, Bytes::new())).await
    }

    /// Asks for what is at this path, with any status. Only the head of the response has to come within the limits: the body
    /// may have no end.
    pub async fn open(&mut self, target: &str, headers: HeaderMap) -> Result<Response<Incoming>, String> {
        self.limits.within(self.ask(Method::GET, target, headers, Bytes::new())).await
    }

    async fn send_patiently(
        &mut self,
        method: Method,
        target: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Bytes>, String> {
        let (head, body) = self.ask(method, target, headers, body).await?.into_parts();
        let body = Limited::new(body, self.limits.bytes).collect().await;
        let bytes = body.map_err(|error| format!("the response cannot be read: {error}"))?.to_bytes();
        Ok(Response::from_parts(head, bytes))
    }

    async fn ask(
        &mut self,
        method: Method,
        target: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Incoming>, String> {
        self.sender.ready().await.map_err(|error| no_response(&error))?;
        let mut request = Request::builder()
            .method(method)
            .uri(target)
            .header(HOST, &self.authority)
            .header(USER_AGENT, concat!("evenkeel/", env!("CARGO_PKG_VERSION")))
            .body(Full::new(body))
            .map_err(|error| no_response(&error))?;
        request.headers_mut().extend(headers);
        self.sender.send_request(request).await.map_err(|error| no_response(&error))
    }
}

fn no_response(error: &dyn Display) -> String {
    format!("no response: {error}")
}

// === impl FetchLimits ===

impl FetchLimits {
    async fn within<T>(self, work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
        let done = tokio::time::timeout(self.time, work).await;
        done.unwrap_or_else(|_| Err(format!("it took longer than {:?}", self.time)))
    }
}
