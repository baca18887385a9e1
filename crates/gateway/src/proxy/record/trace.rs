//! `RequestTrace`: the facts for the spans of a request beyond its record.

use std::net::IpAddr;
use std::rc::Rc;
use std::time::Instant;

use evenkeel_identity::{RequestRules, RouteMatch};
use http::header::{HOST, USER_AGENT};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, StatusCode, Uri, Version};

use super::{RequestRecord, TIMEOUT};
use crate::identity::Transport;
use crate::observe::spans::{RequestSpans, SpanIds, Tracer, UpstreamCall, Wait, WaitOutcome};
use crate::proxy::connection::Connection;
use crate::proxy::error_response::LlmApi;
use crate::proxy::upstream::Upstream;

/// The further facts about a traced request.
#[derive(Debug)]
pub(super) struct RequestTrace {
    tracer: Rc<Tracer>,
    pub(super) ids: SpanIds,
    version: Version,
    is_tls: bool,
    peer: IpAddr,
    host: Option<HeaderValue>,
    user_agent: Option<HeaderValue>,
    route: Option<(RequestRules, RouteMatch)>,
    /// Whose API it speaks, if it is for a language model.
    llm_api: LlmApi,
    /// The queue that it was put into.
    queue: Option<u32>,
    /// The URI of the forwarded request, which may differ from that of the client's request.
    forwarded: Option<Uri>,
    /// When an upstream got it first, and how often it was sent again.
    sent: Option<Instant>,
    resends: u32,
    /// The status of the upstream's response.
    upstream_status: Option<StatusCode>,
}

// === impl RequestTrace ===

impl RequestTrace {
    /// For a request that has just arrived; none if it is not sampled.
    #[inline]
    pub(super) fn begin(connection: &Connection, version: Version, headers: &HeaderMap) -> Option<Box<Self>> {
        let tracer = connection.worker.tracer.as_ref()?;
        let ids = tracer.sample(headers)?;
        let peer = connection.peer();
        Some(Box::new(Self {
            tracer: Rc::clone(tracer),
            ids,
            version,
            is_tls: peer.transport == Transport::Tls,
            peer: peer.address.ip(),
            host: headers.get(HOST).cloned(),
            user_agent: headers.get(USER_AGENT).cloned(),
            route: None,
            llm_api: LlmApi::default(),
            queue: None,
            forwarded: None,
            sent: None,
            resends: 0,
            upstream_status: None,
        }))
    }

    /// The route that the request belongs to, if it belongs to one.
    pub(super) fn note_route(&mut self, rules: &RequestRules, route: RouteMatch) {
        self.route = rules.template(route).map(|_| (rules.clone(), route));
    }

    /// The request is for a language model, by this API.
    pub(super) fn note_llm_api(&mut self, api: LlmApi) {
        self.llm_api = api;
    }

    /// The queue that the request was put into, if there are queues.
    pub(super) fn note_queue(&mut self, queue: Option<u32>) {
        self.queue = queue;
    }

    /// The request is forwarded as one for this.
    pub(super) fn note_forwarded(&mut self, uri: &Uri) {
        self.forwarded = Some(uri.clone());
    }

    /// Some of the request goes to an upstream now.
    pub(super) fn note_sent(&mut self) {
        match self.sent {
            None => self.sent = Some(Instant::now()),
            Some(_) => self.resends = self.resends.saturating_add(1),
        }
    }

    /// The upstream has responded.
    pub(super) fn note_upstream_response(&mut self, status: StatusCode) {
        self.upstream_status = Some(status);
    }

    /// Leaves the spans of the request to the tracer. This upstream had the request last.
    pub(super) fn finish(&self, record: &RequestRecord, upstream: Option<&Upstream>) {
        let finished = Instant::now();
        let call = self.sent.zip(upstream).map(|(began, upstream)| UpstreamCall {
            began,
            ended: record.ended.unwrap_or(finished),
            authority: &upstream.target.authority,
            host: &upstream.target.host,
            port: upstream.target.port,
            path: self.forwarded.as_ref().unwrap_or(&record.uri).path(),
            is_tls: upstream.target.tls.is_some(),
            prefix: &upstream.target.prefix,
            status: self.upstream_status,
            resends: self.resends,
        });
        let failure = record.failure();
        let host = self.host.as_ref().and_then(|host| host.to_str().ok());
        record.with_flow(|class| {
            let wait = class.map(|class| Wait {
                class,
                queue: self.queue,
                began: record.asked,
                ended: record.started.or(record.ended).unwrap_or(finished),
                outcome: match (record.started, record.rejected) {
                    (Some(_), _) => WaitOutcome::Admitted,
                    (None, Some(reason)) => WaitOutcome::Rejected(reason),
                    (None, None) => WaitOutcome::GivenUp(failure.unwrap_or(TIMEOUT)),
                },
            });
            self.tracer.put(&RequestSpans {
                ids: &self.ids,
                arrived: record.arrived,
                finished,
                method: &record.method,
                path: record.uri.path(),
                route: self.route.as_ref().and_then(|(rules, route)| rules.template(*route)),
                version: self.version,
                is_tls: self.is_tls,
                host: host.or_else(|| record.uri.authority().map(Authority::as_str)),
                peer: self.peer,
                client: record.client,
                user_agent: self.user_agent.as_ref().and_then(|agent| agent.to_str().ok()),
                request_id: record.id.to_str().unwrap_or_default(),
                status: record.status,
                failure,
                rejected: record.rejected,
                via: record.via,
                llm: record.line_tokens(),
                llm_provider: self.llm_api.provider(),
                wait,
                call,
            });
        });
    }
}
