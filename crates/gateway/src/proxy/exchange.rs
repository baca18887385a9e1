//! `Exchange`: one request, as shared by all tasks that work on it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderValue, StatusCode};

use crate::config::{RouteTimeouts, Timeouts};
use crate::http1::HeadFlags;
use crate::llm::LlmRequest;
use crate::observe::spans::SpanIds;
use crate::proxy::connection::Connection;
use crate::proxy::error_response::Failure;
use crate::proxy::record::RequestRecord;
use crate::proxy::request_body::RequestBody;
use crate::proxy::response_body::ResponseBodyError;
use crate::proxy::service_times::Started;
use crate::proxy::upstream::Upstream;
use crate::timeouts::{Active, Activity};

/// The parts of a request that go with its head through the flow control to where it is forwarded.
#[derive(Debug)]
pub(crate) struct Inbound {
    pub(crate) connection: Rc<Connection>,
    pub(crate) body: RequestBody,
    pub(crate) exchange: Rc<Exchange>,
    /// Whether the client wants to speak something else afterwards, and can.
    pub(crate) is_upgrade: bool,
    /// What sorts of fields its head has.
    pub(crate) flags: HeadFlags,
}

/// The state of a request that is shared by the two ends which work on it: the client's end (the connection, the body of the
/// request, the sending of the response) and the upstream's end (forwarding, the body of the response). Both run at the same
/// time, and the upstream's end goes on after the client has disconnected. Results that one step has for the next are not here:
/// they go with the request and the response.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// The id of the request.
    pub(crate) id: HeaderValue,
    pub(crate) timeouts: ExchangeTimeouts,
    /// When something of the request or of its response has moved last.
    activity: Activity,
    client: Cell<ClientEnd>,
    upstream: RefCell<UpstreamEnd>,
    /// The record of the request for logs and spans, if it has one. The line is written when the last task is done with the
    /// request.
    record: RefCell<Option<Box<RequestRecord>>>,
}

/// How long the upstream and the client of one request may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExchangeTimeouts {
    /// How long the upstream may take to respond. Zero means no limit.
    pub(crate) response: Duration,
    /// How long nothing may move, at either end.
    pub(crate) stall: Duration,
}

/// The state that the client's end sets for the upstream's end.
#[derive(Debug, Clone, Copy, Default)]
struct ClientEnd {
    has_left: bool,
    /// Why the client gets an error at once, though the upstream works on its request.
    failure: Option<Failure>,
}

/// The state that the upstream's end sets for the client's end.
#[derive(Debug, Default)]
struct UpstreamEnd {
    progress: UpstreamProgress,
    on_leave: OnLeave,
    /// Heads of responses with a status below 200, which are passed on as they come.
    interim: Vec<(StatusCode, HeaderMap)>,
}

/// How far a request is at an upstream, the last one if there were several.
#[derive(Debug, Default)]
enum UpstreamProgress {
    /// No upstream has any of the request.
    #[default]
    Unsent,
    /// This upstream has been sent some of the request.
    Sent(Rc<Upstream>),
    /// This upstream has begun to respond.
    Responding(Rc<Upstream>),
}

/// How a request is treated at the upstream when its client leaves.
#[derive(Debug, Clone)]
pub(crate) enum OnLeave {
    /// The upstream is waited for. It works on the request since then, where that is measured.
    Wait(Option<Started>),
    /// The request is cancelled, and its seats stay taken for as long as it was expected to run.
    Cancel(Started),
    /// The request is cancelled, and its seats are free at once: its client pays for what has been generated, not for the seats.
    Stop(Arc<LlmRequest>),
}

/// More interim responses than this are not kept for a client that does not read them.
const INTERIM_MAX: usize = 8;

// === impl ExchangeTimeouts ===

impl ExchangeTimeouts {
    /// The timeouts of all requests, except where the route of this one says something else.
    pub(crate) fn new(of_all: &Timeouts, of_route: RouteTimeouts) -> Self {
        Self { response: of_route.response.unwrap_or(of_all.response), stall: of_route.stall.unwrap_or(of_all.stall) }
    }
}

// === impl OnLeave ===

impl Default for OnLeave {
    fn default() -> Self {
        Self::Wait(None)
    }
}

// === impl UpstreamProgress ===

impl UpstreamProgress {
    fn upstream(&self) -> Option<&Rc<Upstream>> {
        match self {
            Self::Unsent => None,
            Self::Sent(upstream) | Self::Responding(upstream) => Some(upstream),
        }
    }
}

// === impl Exchange ===

impl Exchange {
    /// The exchange of a request with this id, with a record or without.
    pub(crate) fn new(id: HeaderValue, timeouts: ExchangeTimeouts, record: Option<Box<RequestRecord>>) -> Rc<Self> {
        Rc::new(Self {
            id,
            timeouts,
            activity: Activity::default(),
            client: Cell::default(),
            upstream: RefCell::default(),
            record: RefCell::new(record),
        })
    }

    /// Adds to the record of the request, if it has one.
    #[inline]
    pub(crate) fn note(&self, note: impl FnOnce(&mut RequestRecord)) {
        if let Some(record) = &mut *self.record.borrow_mut() {
            note(record);
        }
    }

    /// The debug header of the response, if the client gets one.
    #[inline]
    pub(crate) fn debug_header(&self) -> Option<HeaderValue> {
        self.record.borrow().as_ref()?.debug_header()
    }

    /// The ids of the spans of the request, if it is traced.
    #[inline]
    pub(crate) fn span_ids(&self) -> Option<SpanIds> {
        self.record.borrow().as_ref()?.span_ids()
    }

    /// The upstream has sent an interim response.
    pub(crate) fn add_interim(&self, status: StatusCode, headers: HeaderMap) {
        let interim = &mut self.upstream.borrow_mut().interim;
        if interim.len() < INTERIM_MAX {
            interim.push((status, headers));
        }
    }

    /// The interim responses that have come and were not passed on.
    pub(crate) fn take_interim(&self) -> Vec<(StatusCode, HeaderMap)> {
        std::mem::take(&mut self.upstream.borrow_mut().interim)
    }

    /// Some of the request goes to this upstream now.
    pub(crate) fn note_sent(&self, upstream: &Rc<Upstream>) {
        self.upstream.borrow_mut().progress = UpstreamProgress::Sent(Rc::clone(upstream));
        self.note(RequestRecord::note_sent);
    }

    /// The head of this upstream's response is there.
    pub(crate) fn note_responding(&self, upstream: &Rc<Upstream>, status: StatusCode) {
        self.upstream.borrow_mut().progress = UpstreamProgress::Responding(Rc::clone(upstream));
        self.note(|record| record.note_upstream_response(status));
    }

    /// The upstream that has the request did not send the whole response.
    pub(crate) fn note_cut_off(&self, error: ResponseBodyError) {
        let failure = error.kind();
        if let Some(upstream) = self.upstream.borrow().progress.upstream() {
            upstream.note_failed(failure, &self.id, &error);
            self.note(|record| record.note_upstream_failed(upstream, failure));
        }
        self.note(|record| record.note_cut_off(failure.as_str()));
    }

    /// Whether the upstream has begun to respond.
    pub(crate) fn is_responding(&self) -> bool {
        matches!(self.upstream.borrow().progress, UpstreamProgress::Responding(_))
    }

    /// Whether an upstream may be working on the request.
    pub(crate) fn is_at_upstream(&self) -> bool {
        !matches!(self.upstream.borrow().progress, UpstreamProgress::Unsent)
    }

    pub(crate) fn set_on_leave(&self, on_leave: OnLeave) {
        self.upstream.borrow_mut().on_leave = on_leave;
    }

    pub(crate) fn on_leave(&self) -> OnLeave {
        self.upstream.borrow().on_leave.clone()
    }

    /// The request was cancelled at the upstream in a way that ends the connection or the stream, so no response follows.
    pub(crate) fn note_cancelled(&self) {
        if let OnLeave::Wait(started) = self.on_leave() {
            self.set_on_leave(OnLeave::Cancel(started.unwrap_or_else(|| Started::now("", ""))));
        }
    }

    /// The client has disconnected.
    pub(crate) fn note_client_left(&self) {
        self.client.set(ClientEnd { has_left: true, ..self.client.get() });
    }

    pub(crate) fn has_client_left(&self) -> bool {
        self.client.get().has_left
    }

    /// The request fails because of its client.
    pub(crate) fn fail(&self, failure: Failure) {
        self.client.set(ClientEnd { failure: Some(failure), ..self.client.get() });
    }

    pub(crate) fn failure(&self) -> Option<Failure> {
        self.client.get().failure
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if let Some(record) = self.record.get_mut() {
            record.finish(self.upstream.get_mut().progress.upstream().map(|upstream| &**upstream));
        }
    }
}

impl Active for Exchange {
    fn activity(&self) -> &Activity {
        &self.activity
    }
}
