//! `RequestRecord`: the facts about a request for the access log, the debug header and spans, gathered on its way.

mod trace;

use std::cell::Cell;
use std::fmt::Write;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use evenkeel::request::{Class, SeatTimes};
use evenkeel::{Admitted, Rejected};
use evenkeel_api::model_namespace;
use evenkeel_engine::queue_set::Rejection;
use evenkeel_engine::{Attributes, KnownHead, RequestInfo, User};
use http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, Version};

use crate::llm::LlmRequest;
use crate::observe::access_log::{AccessLine, AccessLog, LineClass, LineTokens};
use crate::observe::metrics::UpstreamFailure;
use crate::observe::spans::SpanIds;
use crate::proxy::arrival::Arrival;
use crate::proxy::connection::Connection;
use crate::proxy::error_response::{Failure, LlmApi, REVOKED};
use crate::proxy::pool::FoundPool;
use crate::proxy::upstream::{Upstream, UpstreamTarget};
use crate::proxy::worker::Worker;
use trace::RequestTrace;

/// The facts about a request. Most requests have no record: it is made if the request gets a line in the access log, if it is
/// traced, or if its client asks for the debug header.
#[derive(Debug)]
pub(crate) struct RequestRecord {
    /// The access log, if the request gets a line there.
    log: Option<Rc<AccessLog>>,
    wants_debug: bool,
    /// The further facts for its spans, if it is traced.
    trace: Option<Box<RequestTrace>>,
    arrived: Instant,
    /// The address of the client, which is behind the other end of the connection if that is a trusted proxy.
    client: IpAddr,
    id: HeaderValue,
    method: Method,
    uri: Uri,
    user: Option<Arc<User>>,
    /// The service that the request belongs to, if there are services.
    service: Option<Arc<str>>,
    /// The namespace that the request is about, which may name its flow.
    namespace: Option<Box<str>>,
    /// The request to a language model, if it is one.
    llm: Option<Arc<LlmRequest>>,
    /// The headers that flow schemas ask for, as the request has them.
    asked_headers: Vec<(Box<str>, Option<Box<str>>)>,
    class: Option<(Class, u32)>,
    /// When the request asked for a seat, got one, and gave it back.
    asked: Instant,
    started: Option<Instant>,
    ended: Option<Instant>,
    /// The times of the request by the clock of the flow control, if the request gets a line: what the flow control decided with.
    seats: Option<LoggedSeats>,
    /// The status of the response, once there is one.
    status: Option<StatusCode>,
    /// The interface through which the gateway got the request, if it does not forward it itself.
    via: Option<&'static str>,
    rejected: Option<&'static str>,
    /// The reason by which the flow control counts it, if it left the queue without a seat and its client got no response.
    left: Option<&'static str>,
    /// When its client was told to try again, if it was rejected.
    retry_after: Option<Duration>,
    /// Which upstream failed and how, if the response is incomplete or the gateway's own because of that.
    failed: Option<(Arc<UpstreamTarget>, UpstreamFailure)>,
    /// Why the response was cut off, if it was.
    cut_off: Option<&'static str>,
    /// Whether the gateway has shut down and cuts off its requests.
    is_stopped: Rc<Cell<bool>>,
    bytes_in: u64,
    bytes_out: u64,
}

/// When a request had its seats, and when the clock of those times began.
#[derive(Debug)]
struct LoggedSeats {
    clock_start: Instant,
    times: Arc<SeatTimes>,
}

/// When a request asked for seats, got them, and gave them back or left without any.
#[derive(Debug, Clone, Copy)]
struct SeatMoments {
    asked: Instant,
    started: Option<Instant>,
    ended: Instant,
}

/// The header by which clients ask what was decided about a request, and get it.
pub(crate) const DEBUG: HeaderName = HeaderName::from_static("x-evenkeel-debug");
/// The status of requests whose clients disconnected before there was a response, as other proxies log it.
const CLIENT_GONE: u16 = 499;
/// Why a response was cut off, or a request left its queue: the time for the whole request was over.
pub(crate) const TIMEOUT: &str = "timeout";
/// Why a request has no response.
const CLIENT_LEFT: &str = "client_disconnected";
const SHUTDOWN: &str = "shutdown";
const EXT_PROC: &str = "ext_proc";
/// The status of requests of which only Envoy knows the response.
const UNKNOWN_STATUS: u16 = 0;

// === impl RequestRecord ===

impl RequestRecord {
    /// A record for a request that has just arrived; `None` if it is not logged, traced or debugged.
    #[inline]
    pub(crate) fn begin(
        connection: &Connection,
        method: &Method,
        uri: &Uri,
        version: Version,
        headers: &HeaderMap,
        id: &HeaderValue,
    ) -> Option<Box<Self>> {
        let worker = &connection.worker;
        let log = worker.access_log.as_ref().filter(|log| log.is_sampled());
        let wants_debug = !worker.config.debug_header.is_empty() && headers.contains_key(DEBUG);
        let trace = RequestTrace::begin(connection, version, headers);
        (log.is_some() || wants_debug || trace.is_some()).then(|| {
            let now = Instant::now();
            let clock_start = log.and_then(|_| worker.flow_control.clock_start());
            Box::new(Self {
                log: log.cloned(),
                wants_debug,
                trace,
                arrived: now,
                client: connection.identity.client_address(headers),
                id: id.clone(),
                method: method.clone(),
                uri: uri.clone(),
                user: None,
                service: None,
                namespace: None,
                llm: None,
                asked_headers: asked_headers(worker, headers),
                class: None,
                asked: now,
                started: None,
                ended: None,
                seats: clock_start.map(|clock_start| LoggedSeats { clock_start, times: Arc::default() }),
                status: None,
                via: None,
                rejected: None,
                left: None,
                retry_after: None,
                failed: None,
                cut_off: None,
                is_stopped: Rc::clone(&worker.is_stopped),
                bytes_in: 0,
                bytes_out: 0,
            })
        })
    }

    /// The request is one that Envoy forwards, and asks the gateway about.
    pub(crate) fn over_ext_proc(mut self: Box<Self>) -> Box<Self> {
        self.via = Some(EXT_PROC);
        self
    }

    /// Notes the facts that are known before the request asks for a seat.
    pub(super) fn note_arrival(&mut self, arrival: &Arrival<'_>, worker: &Worker) {
        self.user = arrival.user();
        if let Ok(FoundPool { pool, .. }) = &arrival.pool
            && pool.service.is_some()
        {
            self.service.clone_from(&pool.service);
            // Each flow control has a clock of its own.
            if let (Some(seats), Some(clock_start)) = (&mut self.seats, pool.clock_start()) {
                seats.clock_start = clock_start;
            }
        }
        if let Ok(digested) = &arrival.digested {
            let namespace = &digested.info.namespace;
            self.namespace = (!namespace.is_empty()).then(|| namespace.as_ref().into());
            self.rejected = arrival.user.as_ref().err().map(|denied| denied.reason.as_str());
            if let Some(trace) = &mut self.trace {
                trace.note_route(&worker.rules, digested.extra);
            }
        }
        self.wants_debug &= self.user.as_ref().is_some_and(|user| worker.config.debug_header.allows(user));
    }

    /// The request is for a language model, whose name is its namespace.
    pub(super) fn note_llm(&mut self, request: &Arc<LlmRequest>, headers: &HeaderMap) {
        let namespace = model_namespace(&request.facts.model);
        self.namespace = (!namespace.is_empty()).then(|| namespace.into());
        self.llm = Some(Arc::clone(request));
        if let Some(trace) = &mut self.trace {
            trace.note_llm_api(LlmApi::of(&self.uri, headers));
        }
    }

    fn line_tokens(&self) -> Option<LineTokens<'_>> {
        self.llm.as_ref().map(|request| LineTokens::new(&request.facts.model, request.tokens()))
    }

    /// The body of the request is there, and the request asks for a seat now.
    pub(super) fn note_asked(&mut self) {
        self.asked = Instant::now();
    }

    /// The request asks for a seat with these extensions, where the flow control notes when it gets one and gives it back.
    pub(super) fn time_seats(&self, extensions: &mut Extensions) {
        if let Some(seats) = &self.seats {
            extensions.insert(Arc::clone(&seats.times));
        }
    }

    /// The request has got its seat.
    pub(super) fn note_admitted<X>(&mut self, admitted: &Admitted<X>) {
        self.started = Some(self.asked + admitted.waited);
        self.note_class(admitted);
    }

    /// The request has left the queue without a seat: its client has disconnected, or its time is over.
    pub(super) fn note_left<X>(&mut self, waiting: &Admitted<X>, reason: Option<Rejection>) {
        self.ended.get_or_insert_with(Instant::now);
        self.left = reason.map(Rejection::as_str);
        self.note_class(waiting);
    }

    fn note_class<X>(&mut self, admitted: &Admitted<X>) {
        self.class = admitted.class.clone().map(|class| (class, admitted.seats));
        if let Some(trace) = &mut self.trace {
            trace.note_queue(admitted.queue);
        }
    }

    /// The flow control has rejected the request.
    pub(super) fn note_rejected(&mut self, rejected: &Rejected) {
        self.ended = Some(Instant::now());
        self.class = Some((rejected.class.clone(), rejected.seats));
        self.rejected = Some(rejected.reason.as_str());
        self.retry_after = Some(rejected.retry_after);
        if let Some(trace) = &mut self.trace {
            trace.note_queue(rejected.queue);
        }
    }

    /// The gateway itself responds to the request, perhaps with a rejection.
    pub(super) fn note_refused(&mut self, failure: Failure) {
        if let Some(refusal) = failure.refusal() {
            self.rejected = Some(refusal.reason);
            self.retry_after = Some(Duration::from_secs(refusal.retry_after_seconds));
        }
    }

    /// The ids of its spans, if it is traced.
    pub(super) fn span_ids(&self) -> Option<SpanIds> {
        self.trace.as_ref().map(|trace| trace.ids)
    }

    /// The request is forwarded as one for this URI.
    pub(super) fn note_forwarded(&mut self, uri: &Uri) {
        if let Some(trace) = &mut self.trace {
            trace.note_forwarded(uri);
        }
    }

    /// Some of the request goes to an upstream now.
    pub(super) fn note_sent(&mut self) {
        if let Some(trace) = &mut self.trace {
            trace.note_sent();
        }
    }

    /// The upstream has responded.
    pub(super) fn note_upstream_response(&mut self, status: StatusCode) {
        if let Some(trace) = &mut self.trace {
            trace.note_upstream_response(status);
        }
    }

    /// This upstream sent no response, or not all of one, because of this failure.
    pub(super) fn note_upstream_failed(&mut self, upstream: &Upstream, failure: UpstreamFailure) {
        self.failed = Some((Arc::clone(&upstream.target), failure));
    }

    /// The upstream is done with the request.
    pub(super) fn note_ended(&mut self) {
        self.ended.get_or_insert_with(Instant::now);
    }

    /// The response was cut off, for this reason.
    pub(super) fn note_cut_off(&mut self, reason: &'static str) {
        self.cut_off = Some(reason);
    }

    /// The request was told to end in the middle of its response (LM-7).
    pub(super) fn note_revoked(&mut self) {
        (self.cut_off, self.rejected) = (Some(REVOKED), Some(REVOKED));
    }

    /// Notes the response. One of the gateway's own has this length.
    pub(super) fn note_response(&mut self, status: StatusCode, own_length: Option<u64>) {
        self.status = Some(status);
        if self.method != Method::HEAD {
            self.bytes_out += own_length.unwrap_or_default();
        }
    }

    pub(super) fn add_bytes_in(&mut self, bytes: usize) {
        self.bytes_in += bytes as u64;
    }

    pub(super) fn add_bytes_out(&mut self, bytes: usize) {
        self.bytes_out += bytes as u64;
    }

    /// The value of the debug header, if the client gets one.
    pub(super) fn debug_header(&self) -> Option<HeaderValue> {
        if !self.wants_debug {
            return None;
        }
        let mut text = String::new();
        self.with_flow(|class| match class {
            Some(LineClass { schema, level, flow, seats }) => {
                let wait_ms = self.wait().as_secs_f64() * 1000.0;
                put_escaped(&mut text, "schema=", schema);
                put_escaped(&mut text, "; level=", level);
                put_escaped(&mut text, "; flow=", flow);
                // Writing to memory does not fail.
                let _ = write!(text, "; seats={seats}; wait-ms={wait_ms:.3}");
            }
            None => text.push_str("not-limited"),
        });
        HeaderValue::try_from(text).ok()
    }

    /// How long the request waited for a seat, until it got one or was rejected.
    fn wait(&self) -> Duration {
        // A request without a class never got to the flow control, or is not limited.
        let until = self.class.as_ref().and(self.started.or(self.ended));
        until.map_or(Duration::ZERO, |until| until.saturating_duration_since(self.asked))
    }

    /// When the request asked for seats, got them, and gave them back. The flow control knows best: a thread that reads the clock before or
    /// after a decision may be interrupted in between.
    fn seat_moments(&self) -> SeatMoments {
        let ended = self.ended.unwrap_or_else(Instant::now);
        let known = self.seats.as_ref().and_then(|seats| Some((seats, seats.times.arrived()?)));
        let Some((LoggedSeats { clock_start, times }, asked)) = known else {
            return SeatMoments { asked: self.asked, started: self.started, ended };
        };
        let at = |time| *clock_start + time;
        SeatMoments {
            asked: at(asked),
            // A request that still has its seats has not been told when it got them.
            started: times.started().map(at).or(self.started),
            ended: times.ended().map_or(ended, at),
        }
    }

    /// Why the client got no response, or not all of it.
    fn failure(&self) -> Option<&'static str> {
        let has_none = self.status.is_none();
        self.cut_off.or_else(|| has_none.then(|| if self.is_stopped.get() { SHUTDOWN } else { CLIENT_LEFT }))
    }

    fn with_flow<T>(&self, with: impl FnOnce(Option<LineClass<'_>>) -> T) -> T {
        let Some((class, seats)) = &self.class else { return with(None) };
        let mut request =
            RequestInfo { namespace: self.namespace.as_deref().unwrap_or("").into(), ..RequestInfo::default() };
        if class.is_flow_by_annotation() {
            request.path = self.uri.path().into();
            let head = KnownHead::default().address(self.client.to_canonical().to_string());
            let headers = self.asked_headers.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
            request.head = headers.fold(head, |head, (name, value)| head.header(&**name, &**value)).into();
        }
        let nobody = User::default();
        let attributes = Attributes { user: self.user.as_deref().unwrap_or(&nobody), request: &request };
        let flow = class.flow_distinguisher(attributes);
        with(Some(LineClass { schema: class.flow_schema(), level: class.priority_level(), flow, seats: *seats }))
    }

    /// Writes the line and the spans of the request, if it gets any. The request and everything that was done for it have ended; this upstream
    /// had it last.
    pub(super) fn finish(&self, upstream: Option<&Upstream>) {
        if let Some(trace) = &self.trace {
            trace.finish(self, upstream);
        }
        let Some(log) = &self.log else { return };
        let SeatMoments { asked, started, ended } = self.seat_moments();
        let waited_until = self.class.as_ref().map(|_| started.unwrap_or(ended));
        let wait = waited_until.map_or(Duration::ZERO, |until| until.saturating_duration_since(asked));
        let service = started.map_or(Duration::ZERO, |started| ended.saturating_duration_since(started));
        // A client that got no response has disconnected, or was cut off by us.
        let is_shut_down = self.failure() == Some(SHUTDOWN);
        let without_response = match self.via {
            Some(_) if started.is_some() => UNKNOWN_STATUS,
            _ if is_shut_down => StatusCode::SERVICE_UNAVAILABLE.as_u16(),
            _ => CLIENT_GONE,
        };
        self.with_flow(|class| {
            log.put(&AccessLine {
                time: log.time_of(self.arrived),
                request_id: self.id.as_bytes(),
                client: self.client,
                user: self.user.as_deref(),
                method: self.method.as_str(),
                path: self.uri.path_and_query().map_or("/", |target| target.as_str()),
                service_name: self.service.as_deref(),
                headers: &self.asked_headers,
                class,
                receive: asked.saturating_duration_since(self.arrived),
                wait,
                service,
                status: self.status.map_or(without_response, |status| status.as_u16()),
                via: self.via,
                rejected: self.rejected.or(is_shut_down.then_some(SHUTDOWN)).or(self.left),
                retry_after: self.retry_after,
                error: self.failed.as_ref().map(|(_, failure)| failure.as_str()),
                // An upstream that failed need not have received any of the request.
                upstream: (self.failed.as_ref().map(|(target, _)| target))
                    .or(upstream.map(|upstream| &upstream.target))
                    .map(|target| &*target.name),
                bytes_in: self.bytes_in,
                bytes_out: self.bytes_out,
                cost: self.seats.as_ref().and_then(|seats| seats.times.cost()),
                cost_unit: self.seats.as_ref().and_then(|seats| seats.times.cost_kind()),
                llm: self.line_tokens(),
            });
        });
    }
}

/// The headers that flow schemas ask for. Those with credentials are in no log.
fn asked_headers(worker: &Worker, headers: &HeaderMap) -> Vec<(Box<str>, Option<Box<str>>)> {
    let mut asked = Vec::new();
    worker.flow_control.each_asked_header(|name| {
        if worker.identification.is_credential(name) {
            return;
        }
        // For flow schemas, one that is there more than once is not there.
        let mut values = headers.get_all(name).iter();
        let value = match (values.next().map(HeaderValue::to_str), values.next()) {
            (Some(Ok(value)), None) => Some(value.into()),
            _ => None,
        };
        asked.push((name.into(), value));
    });
    asked
}

/// Appends a text in which only visible characters of ASCII stand for themselves; others are percent-encoded.
fn put_escaped(out: &mut String, name: &str, text: &str) {
    out.push_str(name);
    for byte in text.bytes() {
        match byte {
            b'!'..=b'~' if !matches!(byte, b'%' | b';' | b'=') => out.push(char::from(byte)),
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
}
