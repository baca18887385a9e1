//! `RequestSpans`: the content of a request's spans, and how they are encoded.
//!
//! Names and attributes follow the semantic conventions of OpenTelemetry for HTTP; those of our own begin with `evenkeel.`.

use std::fmt::Write;
use std::net::IpAddr;
use std::time::Instant;

use http::{Method, StatusCode, Version};

use super::context::{RANDOM, SpanId, TraceId};
use super::protobuf::{
    put_bytes, put_fixed32, put_fixed64, put_message, put_number, put_number_attribute, put_text_attribute,
};
use super::{SpanIds, context, gen_ai};
use crate::observe::access_log::{LineClass, LineTokens};
use crate::observe::moment::Moment;

/// A traced request that has ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestSpans<'a> {
    pub(crate) ids: &'a SpanIds,
    pub(crate) arrived: Instant,
    pub(crate) finished: Instant,
    pub(crate) method: &'a Method,
    pub(crate) path: &'a str,
    /// The template of the route that its path matches.
    pub(crate) route: Option<&'a str>,
    pub(crate) version: Version,
    pub(crate) is_tls: bool,
    /// The host that the client asked for.
    pub(crate) host: Option<&'a str>,
    /// The other end of the connection.
    pub(crate) peer: IpAddr,
    /// The client that has sent the request, perhaps through a proxy.
    pub(crate) client: IpAddr,
    pub(crate) user_agent: Option<&'a str>,
    pub(crate) request_id: &'a str,
    /// The status of the response, if there was one.
    pub(crate) status: Option<StatusCode>,
    /// Why there was no response, or not all of it.
    pub(crate) failure: Option<&'a str>,
    /// Why it was rejected, if it was.
    pub(crate) rejected: Option<&'a str>,
    /// The interface through which the gateway got the request, if another proxy forwards it: `ext_proc`.
    pub(crate) via: Option<&'a str>,
    /// The model and the tokens of a request to a language model.
    pub(crate) llm: Option<LineTokens<'a>>,
    /// Whose API such a request speaks, by the name that the conventions have for that provider.
    pub(crate) llm_provider: &'a str,
    /// The wait of the request for a seat, if the flow control has decided about it.
    pub(crate) wait: Option<Wait<'a>>,
    /// The call to an upstream, if one got the request.
    pub(crate) call: Option<UpstreamCall<'a>>,
}

/// The wait of a request for a seat.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wait<'a> {
    pub(crate) class: LineClass<'a>,
    pub(crate) queue: Option<u32>,
    pub(crate) began: Instant,
    pub(crate) ended: Instant,
    pub(crate) outcome: WaitOutcome<'a>,
}

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitOutcome<'a> {
    Admitted,
    Rejected(&'a str),
    /// The request was given up, for this reason.
    GivenUp(&'a str),
}

/// The call to an upstream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UpstreamCall<'a> {
    pub(crate) began: Instant,
    pub(crate) ended: Instant,
    /// Host and port of the upstream, as they are in URLs.
    pub(crate) authority: &'a str,
    pub(crate) host: &'a str,
    pub(crate) port: Option<u16>,
    /// The path that was asked for, without the prefix; `*` for the upstream itself.
    pub(crate) path: &'a str,
    pub(crate) is_tls: bool,
    /// The prefix of the path of every request.
    pub(crate) prefix: &'a str,
    /// The status of its response, if there was one.
    pub(crate) status: Option<StatusCode>,
    /// How often it was sent again, to this upstream or to another.
    pub(crate) resends: u32,
}

/// The trace, the parent and the times of a span.
struct SpanHead<'a> {
    ids: &'a SpanIds,
    id: SpanId,
    parent: Option<SpanId>,
    has_remote_parent: bool,
    kind: SpanKind,
    time: [u64; 2],
}

#[derive(Debug, Clone, Copy)]
enum SpanKind {
    Internal = 1,
    Server = 2,
    Client = 3,
}

/// The field of `ScopeSpans` that spans are in.
const SPANS: u32 = 2;
/// The field of a span that attributes are in.
const ATTRIBUTES: u32 = 9;
/// The longest text in a span, so that clients cannot make spans large.
const TEXT_BYTES_MAX: usize = 256;
const PATH_BYTES_MAX: usize = 1024;
/// Flags of a span: it is known whether the parent is in another process, and it is.
const KNOWS_REMOTE: u32 = 0x100;
const IS_REMOTE: u32 = 0x200;

// === impl RequestSpans ===

impl RequestSpans<'_> {
    /// How many spans there are.
    pub(super) fn count(&self) -> u64 {
        1 + u64::from(self.wait.is_some()) + u64::from(self.call.is_some())
    }

    /// Appends the spans, as the fields of `ScopeSpans` that they are.
    pub(super) fn put(&self, out: &mut Vec<u8>, moment: &Moment) {
        put_message(out, SPANS, |out| self.put_server(out, moment));
        if let Some(wait) = &self.wait {
            put_message(out, SPANS, |out| self.put_wait(out, moment, wait));
        }
        if let Some(call) = &self.call {
            put_message(out, SPANS, |out| self.put_call(out, moment, call));
        }
    }

    /// The request, from its arrival to the end of its response.
    fn put_server(&self, out: &mut Vec<u8>, moment: &Moment) {
        let head = SpanHead {
            ids: self.ids,
            id: self.ids.server,
            parent: self.ids.parent,
            has_remote_parent: self.ids.parent.is_some(),
            kind: SpanKind::Server,
            time: [self.arrived, self.finished].map(|at| moment.unix_nanos(at)),
        };
        let method = known_method(self.method);
        head.put(out);
        match self.route {
            Some(route) => put_name(out, &[method.unwrap_or("HTTP"), " ", clipped(route, TEXT_BYTES_MAX)]),
            None => put_name(out, &[method.unwrap_or("HTTP")]),
        }
        self.put_method(out, method);
        put_text(out, "url.path", clipped(self.path, PATH_BYTES_MAX));
        put_text(out, "url.scheme", scheme(self.is_tls));
        put_some_text(out, "http.route", self.route);
        if let Some(host) = self.host {
            put_server_address(out, host);
        }
        put_address(out, "client.address", self.client);
        if self.peer != self.client {
            put_address(out, "network.peer.address", self.peer);
        }
        put_text(out, "network.protocol.version", protocol_version(self.version));
        put_some_text(out, "user_agent.original", self.user_agent);
        put_text(out, "evenkeel.request_id", clipped(self.request_id, TEXT_BYTES_MAX));
        if let Some(wait) = &self.wait {
            put_text(out, "evenkeel.flow_schema", clipped(wait.class.schema, TEXT_BYTES_MAX));
            put_text(out, "evenkeel.priority_level", clipped(wait.class.level, TEXT_BYTES_MAX));
        }
        if let Some(llm) = &self.llm {
            self.put_llm(out, llm);
        }
        put_some_text(out, "evenkeel.via", self.via);
        put_some_text(out, "evenkeel.rejected", self.rejected);
        put_status(out, self.status);
        let server_error = self.status.as_ref().filter(|status| status.is_server_error());
        if let Some(error) = self.failure.or_else(|| Some(self.rejected.unwrap_or(server_error?.as_str()))) {
            put_error(out, error, "");
        }
    }

    fn put_wait(&self, out: &mut Vec<u8>, moment: &Moment, wait: &Wait<'_>) {
        self.inner_head(self.ids.wait, SpanKind::Internal, [wait.began, wait.ended], moment).put(out);
        put_name(out, &["wait for seat"]);
        let LineClass { schema, level, flow, seats } = wait.class;
        // A flow schema may have one flow, which has no name.
        let flow = (!flow.is_empty()).then_some(flow);
        for (key, text) in
            [("evenkeel.flow_schema", Some(schema)), ("evenkeel.priority_level", Some(level)), ("evenkeel.flow", flow)]
        {
            put_some_text(out, key, text);
        }
        put_number_attribute(out, ATTRIBUTES, "evenkeel.seats", seats);
        if let Some(queue) = wait.queue {
            put_number_attribute(out, ATTRIBUTES, "evenkeel.queue", queue);
        }
        match wait.outcome {
            WaitOutcome::Admitted => {}
            WaitOutcome::Rejected(reason) => {
                put_text(out, "evenkeel.rejected", reason);
                put_error(out, reason, "the request was rejected");
            }
            WaitOutcome::GivenUp(reason) => put_error(out, reason, "the request left the queue"),
        }
    }

    fn put_call(&self, out: &mut Vec<u8>, moment: &Moment, call: &UpstreamCall<'_>) {
        self.inner_head(self.ids.client, SpanKind::Client, [call.began, call.ended], moment).put(out);
        let method = known_method(self.method);
        put_name(out, &[method.unwrap_or("HTTP")]);
        self.put_method(out, method);
        let mut url = String::with_capacity(TEXT_BYTES_MAX);
        let path = if call.path == "*" { "" } else { clipped(call.path, PATH_BYTES_MAX) };
        for part in [scheme(call.is_tls), "://", call.authority, call.prefix, path] {
            url.push_str(part);
        }
        put_text(out, "url.full", &url);
        put_text(out, "server.address", clipped(call.host, TEXT_BYTES_MAX));
        if let Some(port) = call.port {
            put_number_attribute(out, ATTRIBUTES, "server.port", port.into());
        }
        if call.resends > 0 {
            put_number_attribute(out, ATTRIBUTES, "http.request.resend_count", call.resends);
        }
        put_status(out, call.status);
        let status_error = match &call.status {
            None => Some("no_response"),
            Some(status) => (status.is_client_error() || status.is_server_error()).then(|| status.as_str()),
        };
        if let Some(error) = self.failure.or(status_error) {
            put_error(out, error, "");
        }
    }

    /// The head of a span inside of that of the request.
    fn inner_head(&self, id: SpanId, kind: SpanKind, time: [Instant; 2], moment: &Moment) -> SpanHead<'_> {
        let time = time.map(|at| moment.unix_nanos(at.clamp(self.arrived, self.finished)));
        SpanHead { ids: self.ids, id, parent: Some(self.ids.server), has_remote_parent: false, kind, time }
    }

    /// Appends the attributes of OpenTelemetry's conventions for generative AI.
    fn put_llm(&self, out: &mut Vec<u8>, llm: &LineTokens<'_>) {
        put_some_text(out, "gen_ai.operation.name", gen_ai::operation(self.path));
        put_text(out, "gen_ai.provider.name", self.llm_provider);
        put_some_text(out, "gen_ai.request.model", (!llm.model.is_empty()).then_some(llm.model));
        for (key, tokens) in [("gen_ai.usage.input_tokens", llm.prompt), ("gen_ai.usage.output_tokens", llm.output)] {
            if let Some(tokens) = tokens {
                put_number_attribute(out, ATTRIBUTES, key, u32::try_from(tokens).unwrap_or(u32::MAX));
            }
        }
    }

    fn put_method(&self, out: &mut Vec<u8>, known: Option<&str>) {
        put_text(out, "http.request.method", known.unwrap_or("_OTHER"));
        if known.is_none() {
            put_text(out, "http.request.method_original", clipped(self.method.as_str(), TEXT_BYTES_MAX));
        }
    }
}

// === impl SpanHead ===

impl SpanHead<'_> {
    fn put(&self, out: &mut Vec<u8>) {
        let trace_id: &TraceId = &self.ids.trace;
        put_bytes(out, 1, trace_id);
        put_bytes(out, 2, &self.id);
        if let Some(parent) = &self.parent {
            put_bytes(out, 4, parent);
        }
        put_number(out, 6, self.kind as u64);
        let [start, end] = self.time;
        put_fixed64(out, 7, start);
        put_fixed64(out, 8, end.max(start));
        let remote = if self.has_remote_parent { IS_REMOTE } else { 0 };
        let flags = context::SAMPLED | self.ids.flags & RANDOM;
        put_fixed32(out, 16, u32::from(flags) | KNOWS_REMOTE | remote);
    }
}

fn put_name(out: &mut Vec<u8>, parts: &[&str]) {
    put_message(out, 5, |out| parts.iter().for_each(|part| out.extend_from_slice(part.as_bytes())));
}

fn put_text(out: &mut Vec<u8>, key: &str, text: &str) {
    put_text_attribute(out, ATTRIBUTES, key, text);
}

fn put_some_text(out: &mut Vec<u8>, key: &str, text: Option<&str>) {
    if let Some(text) = text {
        put_text(out, key, clipped(text, TEXT_BYTES_MAX));
    }
}

/// The type of an error, and the status of a span with one.
fn put_error(out: &mut Vec<u8>, kind: &str, message: &str) {
    put_text(out, "error.type", kind);
    put_message(out, 15, |out| {
        if !message.is_empty() {
            put_bytes(out, 2, message.as_bytes());
        }
        put_number(out, 3, 2);
    });
}

fn put_address(out: &mut Vec<u8>, key: &str, address: IpAddr) {
    let mut text = String::with_capacity(48);
    // Writing to memory does not fail.
    let _ = write!(text, "{}", address.to_canonical());
    put_text(out, key, &text);
}

fn put_status(out: &mut Vec<u8>, status: Option<StatusCode>) {
    if let Some(status) = status {
        put_number_attribute(out, ATTRIBUTES, "http.response.status_code", status.as_u16().into());
    }
}

/// Appends the host and the port of an authority, which may have both: `shop.example:8080`, `[::1]:8080`. Credentials in front of
/// them are left out.
fn put_server_address(out: &mut Vec<u8>, authority: &str) {
    let authority = authority.rsplit('@').next().unwrap_or_default();
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port.parse::<u16>().ok()),
        _ => (authority, None),
    };
    put_text(out, "server.address", clipped(host.trim_matches(['[', ']']), TEXT_BYTES_MAX));
    if let Some(port) = port {
        put_number_attribute(out, ATTRIBUTES, "server.port", port.into());
    }
}

/// The method, if it is one that the conventions know. Others are made up by clients, and could be any number.
fn known_method(method: &Method) -> Option<&str> {
    let is_known = matches!(
        *method,
        Method::GET
            | Method::POST
            | Method::PUT
            | Method::PATCH
            | Method::DELETE
            | Method::HEAD
            | Method::OPTIONS
            | Method::TRACE
            | Method::CONNECT
    );
    is_known.then(|| method.as_str())
}

fn protocol_version(version: Version) -> &'static str {
    match version {
        Version::HTTP_09 | Version::HTTP_10 => "1.0",
        Version::HTTP_2 => "2",
        Version::HTTP_3 => "3",
        _ => "1.1",
    }
}

fn scheme(is_tls: bool) -> &'static str {
    if is_tls { "https" } else { "http" }
}

/// The beginning of a text, as much as fits.
fn clipped(text: &str, bytes_max: usize) -> &str {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_before_a_host_are_left_out() {
        let mut out = Vec::new();
        put_server_address(&mut out, "user:s3cret@shop.example:8080");
        let text = String::from_utf8_lossy(&out);
        assert!(text.contains("shop.example") && !text.contains("s3cret") && text.contains("server.port"), "{text:?}");
    }
}
