//! `CollectorClient`: sends messages of OTLP to a collector, over gRPC or HTTP.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, RETRY_AFTER, TE, USER_AGENT};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};

use super::TracingError;
use super::exporter::RETRY_AFTER_MAX;
use super::headers_file::HeadersFile;
use super::protobuf_reader::{Field, find};
use super::retry_info::RetryInfo;
use crate::config::{OtlpProtocol, TracingConfig};
use crate::net::fetch::{FetchLimits, Fetcher};
use crate::tls::Offer;

/// A collector, and the connection to it.
#[derive(Debug)]
pub(super) struct CollectorClient {
    protocol: OtlpProtocol,
    server: Fetcher,
    /// Where messages go: the whole URL for HTTP/2, the path for HTTP/1.1.
    target: Uri,
    /// Host and port of the collector.
    authority: HeaderValue,
    headers: Option<HeadersFile>,
    timeout: Duration,
    connection: Option<Connection>,
}

#[derive(Debug)]
enum Connection {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

/// The response of a collector that has taken a message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Accepted {
    /// How many spans it has refused nevertheless, and why.
    pub(super) rejected: u64,
    pub(super) reason: String,
}

/// Why a collector has not taken a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ExportError {
    pub(super) message: String,
    pub(super) is_retryable: bool,
    /// When to try again, if the collector has said so.
    pub(super) retry_after: Option<Duration>,
}

const GRPC_TARGET: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
const HTTP_TARGET: &str = "/v1/traces";
/// The longest response that is read: a valid one has a few bytes, if any.
const RESPONSE_BYTES_MAX: usize = 64 * 1024;
/// How much of a collector's message is logged, in bytes.
const REASON_CHARS_MAX: usize = 200;
/// The length of the prefix of a gRPC message.
const GRPC_PREFIX: usize = 5;

// === impl CollectorClient ===

impl CollectorClient {
    /// For the collector at this endpoint. Nothing is sent yet.
    pub(super) fn open(endpoint: &Uri, config: &TracingConfig) -> Result<Self, TracingError> {
        let limits = FetchLimits { time: config.timeout, bytes: RESPONSE_BYTES_MAX };
        let server = Fetcher::new(endpoint, &config.tls, "tracing.tls", limits)?;
        let headers = config.headers_file.as_deref().map(HeadersFile::open).transpose();
        let headers = headers.map_err(TracingError::Headers)?;
        let authority = endpoint.authority().and_then(|authority| HeaderValue::from_str(authority.as_str()).ok());
        Ok(Self {
            protocol: config.protocol,
            server,
            target: target(endpoint, config.protocol),
            authority: authority.unwrap_or_else(|| HeaderValue::from_static("")),
            headers,
            timeout: config.timeout,
            connection: None,
        })
    }

    /// Sends a message, on the connection that there is or on a new one.
    pub(super) async fn export(&mut self, message: Bytes) -> Result<Accepted, ExportError> {
        if let Some(headers) = &mut self.headers {
            headers.refresh().await;
        }
        let timeout = self.timeout;
        let outcome = tokio::time::timeout(timeout, self.call(message)).await;
        let outcome = outcome.unwrap_or_else(|_| {
            // The connection cannot be used again: its later bytes may belong to this response.
            self.connection = None;
            Err(ExportError::retryable(format!("no response within {timeout:?}")))
        });
        if outcome.is_err() {
            self.connection = None;
        }
        outcome
    }

    async fn call(&mut self, message: Bytes) -> Result<Accepted, ExportError> {
        let request = self.request(message);
        let is_open = match &mut self.connection {
            None => false,
            Some(Connection::Http1(sender)) => sender.ready().await.is_ok(),
            Some(Connection::Http2(sender)) => sender.ready().await.is_ok(),
        };
        if !is_open {
            self.connection = Some(self.connect().await.map_err(ExportError::retryable)?);
        }
        let response = match &mut self.connection {
            Some(Connection::Http1(sender)) => sender.send_request(request).await,
            Some(Connection::Http2(sender)) => sender.send_request(request).await,
            None => return Err(ExportError::retryable("no connection".to_owned())),
        };
        let response = response.map_err(|error| ExportError::retryable(format!("no response: {error}")))?;
        match self.protocol {
            OtlpProtocol::Grpc => grpc_outcome(response).await,
            OtlpProtocol::Http => http_outcome(response).await,
        }
    }

    async fn connect(&self) -> Result<Connection, String> {
        let no_handshake = |error: hyper::Error| format!("no connection: {error}");
        match self.protocol {
            OtlpProtocol::Http => {
                let stream = TokioIo::new(self.server.stream(Offer::Http1).await?);
                let (sender, connection) = http1::handshake(stream).await.map_err(no_handshake)?;
                tokio::spawn(connection);
                Ok(Connection::Http1(sender))
            }
            OtlpProtocol::Grpc => {
                let stream = TokioIo::new(self.server.stream(Offer::Http2).await?);
                let handshake = http2::handshake(TokioExecutor::new(), stream).await;
                let (sender, connection) = handshake.map_err(no_handshake)?;
                tokio::spawn(connection);
                Ok(Connection::Http2(sender))
            }
        }
    }

    fn request(&self, message: Bytes) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(message));
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = self.target.clone();
        if let Some(file) = &self.headers {
            *request.headers_mut() = file.headers().clone();
        }
        let headers = request.headers_mut();
        let agent = concat!("evenkeel/", env!("CARGO_PKG_VERSION"));
        headers.insert(USER_AGENT, HeaderValue::from_static(agent));
        match self.protocol {
            OtlpProtocol::Grpc => {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
                headers.insert(TE, HeaderValue::from_static("trailers"));
            }
            OtlpProtocol::Http => {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
                headers.insert(HOST, self.authority.clone());
            }
        }
        request
    }
}

/// The target of messages at this endpoint.
fn target(endpoint: &Uri, protocol: OtlpProtocol) -> Uri {
    let base = endpoint.path().trim_end_matches('/');
    let path = match protocol {
        OtlpProtocol::Grpc => format!("{base}{GRPC_TARGET}"),
        OtlpProtocol::Http if base.ends_with(HTTP_TARGET) => base.to_owned(),
        OtlpProtocol::Http => format!("{base}{HTTP_TARGET}"),
    };
    let mut parts = http::uri::Parts::default();
    if protocol == OtlpProtocol::Grpc {
        (parts.scheme, parts.authority) = (endpoint.scheme().cloned(), endpoint.authority().cloned());
    }
    parts.path_and_query = path.parse().ok();
    Uri::from_parts(parts).unwrap_or_default()
}

async fn http_outcome(response: Response<Incoming>) -> Result<Accepted, ExportError> {
    let (head, body) = response.into_parts();
    let status = head.status;
    if status.is_success() {
        return Ok(accepted(&collected(body).await?.0));
    }
    let is_retryable = matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
    );
    Err(ExportError {
        message: format!("status {status}"),
        is_retryable,
        retry_after: retry_after(&head.headers, SystemTime::now()),
    })
}

async fn grpc_outcome(response: Response<Incoming>) -> Result<Accepted, ExportError> {
    let (head, body) = response.into_parts();
    if head.status != StatusCode::OK {
        let is_retryable = head.status.is_server_error() || head.status == StatusCode::TOO_MANY_REQUESTS;
        let message = format!("status {}; is this a gRPC endpoint?", head.status);
        return Err(ExportError { message, is_retryable, retry_after: retry_after(&head.headers, SystemTime::now()) });
    }
    let (body, trailers) = collected(body).await?;
    // A response without a body has its status in its headers.
    let status = trailers.as_ref().unwrap_or(&head.headers);
    match status.get("grpc-status").map(HeaderValue::as_bytes) {
        Some(b"0") => Ok(accepted(body.get(GRPC_PREFIX..).unwrap_or_default())),
        Some(code) => {
            let code = String::from_utf8_lossy(code);
            let reason = status.get("grpc-message").map_or(&b""[..], HeaderValue::as_bytes);
            let retry = RetryInfo::of(status);
            let is_retryable = match &*code {
                "1" | "4" | "10" | "11" | "14" | "15" => true,
                // The collector wants the message later, or it never has room.
                "8" => retry.is_some(),
                _ => false,
            };
            let retry_after = retry.and_then(|retry| retry.delay).map(|delay| delay.min(RETRY_AFTER_MAX));
            let message = format!("gRPC status {}: {}", shown(code.as_bytes()), shown(reason));
            Err(ExportError { message, is_retryable, retry_after })
        }
        None => Err(ExportError::final_("a response without a gRPC status".to_owned())),
    }
}

async fn collected(body: Incoming) -> Result<(Bytes, Option<HeaderMap>), ExportError> {
    let collected = Limited::new(body, RESPONSE_BYTES_MAX).collect().await;
    let collected = collected.map_err(|error| {
        let message = format!("the response cannot be read: {error}");
        // Whether the collector has taken the spans is not known. Having them twice is better than not at all.
        let is_retryable = !error.is::<LengthLimitError>();
        ExportError { message, is_retryable, retry_after: None }
    })?;
    let trailers = collected.trailers().cloned();
    Ok((collected.to_bytes(), trailers))
}

/// The content of an `ExportTraceServiceResponse`; nothing if it cannot be read.
fn accepted(response: &[u8]) -> Accepted {
    let Some(Field::Bytes(partial)) = find(response, 1) else { return Accepted::default() };
    let rejected = match find(partial, 1) {
        Some(Field::Number(rejected)) => rejected,
        _ => 0,
    };
    let reason = match find(partial, 2) {
        Some(Field::Bytes(reason)) => shown(reason),
        _ => String::new(),
    };
    Accepted { rejected, reason }
}

/// A collector's message, for a line of the log.
fn shown(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(REASON_CHARS_MAX).collect()
}

/// How long to wait, by `Retry-After`: a number of seconds or a date.
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?;
    let time = match text.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => httpdate::parse_http_date(text).ok()?.duration_since(now).unwrap_or_default(),
    };
    Some(time.min(RETRY_AFTER_MAX))
}

// === impl ExportError ===

impl ExportError {
    /// An error after which the message is sent again.
    fn retryable(message: String) -> Self {
        Self { message, is_retryable: true, retry_after: None }
    }

    /// An error after which the message is not sent again.
    fn final_(message: String) -> Self {
        Self { message, is_retryable: false, retry_after: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_go_where_otlp_says() {
        for (endpoint, protocol, expected) in [
            ("http://a:4317", OtlpProtocol::Grpc, format!("http://a:4317{GRPC_TARGET}")),
            ("https://a/x/", OtlpProtocol::Grpc, format!("https://a/x{GRPC_TARGET}")),
            ("http://a:4318", OtlpProtocol::Http, "/v1/traces".to_owned()),
            ("http://a:4318/", OtlpProtocol::Http, "/v1/traces".to_owned()),
            ("http://a/otlp", OtlpProtocol::Http, "/otlp/v1/traces".to_owned()),
            ("http://a/otlp/v1/traces", OtlpProtocol::Http, "/otlp/v1/traces".to_owned()),
        ] {
            assert_eq!(target(&endpoint.parse().unwrap(), protocol).to_string(), expected);
        }
    }

    #[test]
    fn a_collector_may_name_a_time_or_a_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        for (value, seconds) in [
            ("7", Some(7)),
            ("0", Some(0)),
            ("7200", Some(30)),
            ("Sun, 06 Nov 1994 08:49:57 GMT", Some(20)),
            ("Sun, 06 Nov 1994 08:49:17 GMT", Some(0)),
            ("Sat, 06 Nov 2094 08:49:17 GMT", Some(30)),
            ("soon", None),
        ] {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static(value))]);
            assert_eq!(retry_after(&headers, now), seconds.map(Duration::from_secs), "{value}");
        }
    }

    #[test]
    fn what_a_collector_says_fits_in_a_line() {
        let reason = shown(format!("a\nb{}\u{1b}[2J", "x".repeat(1000)).as_bytes());
        assert!(reason.starts_with("a bxx") && reason.chars().count() == REASON_CHARS_MAX, "{reason}");
        assert_eq!(shown(b"\x1b[2J\xff"), " [2J\u{fffd}");
    }
}
