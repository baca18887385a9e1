//! `Exchange`: what a client's connection and the forwarding of one of its requests share.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use http::{HeaderMap, HeaderValue, StatusCode};

use crate::config::{RouteTimeouts, Timeouts};
use crate::http1::{HeadFlags, Wire};
use crate::observe::spans::SpanIds;
use crate::proxy::connection::Connection;
use crate::proxy::error_response::Failure;
use crate::proxy::record::RequestRecord;
use crate::proxy::request_body::RequestBody;
use crate::proxy::response_body::ResponseBodyError;
use crate::proxy::service_times::Started;
use crate::proxy::upstream::Upstream;
use crate::timeouts::{Active, Activity};

/// What goes with the head of a request through the flow control to where it is forwarded.
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

/// What a connection and the forwarding of a request share beside the request and its response.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// The id of the request.
    pub(crate) id: HeaderValue,
    /// Heads of responses with a status below 200, which are passed on as they come.
    interim: RefCell<Vec<(StatusCode, HeaderMap)>>,
    /// The upstream's connection, after a response with status 101.
    upgraded: RefCell<Option<Box<Wire>>>,
    /// When something of the request or of its response has moved last.
    activity: Activity,
    timeouts: Cell<ExchangeTimeouts>,
    /// The upstream that has been sent some of the request, the last one if there are several.
    upstream: RefCell<Option<Rc<Upstream>>>,
    on_leave: Cell<OnLeave>,
    /// Since when the upstream works on it, where that is measured.
    started: Cell<Option<Started>>,
    has_client_left: Cell<bool>,
    /// Whether the upstream has begun to respond.
    is_responding: Cell<bool>,
    /// Why the client is told at once that nothing comes of its request, though the upstream works on it.
    failure: Cell<Option<Failure>>,
    /// What is logged of the request, if it is. The line is written when everybody is done with the request.
    record: RefCell<Option<Box<RequestRecord>>>,
}

/// How long the upstream and the client of one request may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExchangeTimeouts {
    /// The upstream, to respond. Zero means no limit.
    pub(crate) response: Duration,
    /// Both, without anything that moves.
    pub(crate) stall: Duration,
}

/// What becomes of a request at the upstream when its client leaves.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum OnLeave {
    /// The upstream is waited for.
    #[default]
    Wait,
    /// The request is cancelled, and its seats stay taken for as long as it was expected to run.
    Cancel(Started),
}

/// More interim responses than this are not kept for a client that does not read them.
const INTERIM_MAX: usize = 8;

// === impl Exchange ===

impl Exchange {
    /// For a request with this id, of which something is logged, or nothing. The timeouts are those of requests without a
    /// route.
    pub(crate) fn new(id: HeaderValue, timeouts: &Timeouts, record: Option<Box<RequestRecord>>) -> Rc<Self> {
        let timeouts = ExchangeTimeouts { response: timeouts.response, stall: timeouts.stall };
        Rc::new(Self {
            id,
            interim: RefCell::default(),
            upgraded: RefCell::default(),
            activity: Activity::default(),
            timeouts: Cell::new(timeouts),
            upstream: RefCell::default(),
            on_leave: Cell::default(),
            started: Cell::default(),
            has_client_left: Cell::default(),
            is_responding: Cell::default(),
            failure: Cell::default(),
            record: RefCell::new(record),
        })
    }

    /// How long the upstream and the client may take.
    pub(crate) fn timeouts(&self) -> ExchangeTimeouts {
        self.timeouts.get()
    }

    /// The request is one of a route that has these timeouts.
    pub(crate) fn set_timeouts(&self, of_route: RouteTimeouts) {
        let ExchangeTimeouts { response, stall } = self.timeouts.get();
        let (response, stall) = (of_route.response.unwrap_or(response), of_route.stall.unwrap_or(stall));
        self.timeouts.set(ExchangeTimeouts { response, stall });
    }

    /// Adds to what is logged of the request, if anything is.
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

    pub(crate) fn add_interim(&self, status: StatusCode, headers: HeaderMap) {
        let mut interim = self.interim.borrow_mut();
        if interim.len() < INTERIM_MAX {
            interim.push((status, headers));
        }
    }

    pub(crate) fn take_interim(&self) -> Vec<(StatusCode, HeaderMap)> {
        std::mem::take(&mut *self.interim.borrow_mut())
    }

    /// Some of the request goes to this upstream now.
    pub(crate) fn note_at_upstream(&self, upstream: &Rc<Upstream>) {
        *self.upstream.borrow_mut() = Some(Rc::clone(upstream));
        self.note(RequestRecord::note_sent);
    }

    /// The upstream that has the request did not send the whole response.
    pub(crate) fn note_cut_off(&self, error: ResponseBodyError) {
        let failure = error.kind();
        if let Some(upstream) = &*self.upstream.borrow() {
            upstream.note_failed(failure, &self.id, &error);
            self.note(|record| record.note_upstream_failed(upstream, failure));
        }
        self.note(|record| record.note_cut_off(failure.as_str()));
    }

    /// The upstream responds: the head of its response is there.
    pub(crate) fn note_responding(&self, status: StatusCode) {
        self.is_responding.set(true);
        self.note(|record| record.note_upstream_response(status));
    }

    pub(crate) fn is_responding(&self) -> bool {
        self.is_responding.get()
    }

    /// Whether an upstream may be working on the request.
    pub(crate) fn is_at_upstream(&self) -> bool {
        self.upstream.borrow().is_some()
    }

    pub(crate) fn set_on_leave(&self, on_leave: OnLeave) {
        self.on_leave.set(on_leave);
    }

    /// The upstream works on it from now on, and how long that takes is measured.
    pub(crate) fn set_started(&self, started: Started) {
        self.started.set(Some(started));
    }

    pub(crate) fn on_leave(&self) -> OnLeave {
        self.on_leave.get()
    }

    /// The request was cancelled at the upstream in a way that ends the connection or the stream, so no response follows.
    pub(crate) fn note_cancelled(&self) {
        if let OnLeave::Wait = self.on_leave.get() {
            self.on_leave.set(OnLeave::Cancel(self.started.get().unwrap_or_else(|| Started::now("", ""))));
        }
    }

    /// The client has disconnected.
    pub(crate) fn note_client_left(&self) {
        self.has_client_left.set(true);
    }

    pub(crate) fn has_client_left(&self) -> bool {
        self.has_client_left.get()
    }

    /// Nothing comes of the request, because of its client.
    pub(crate) fn fail(&self, failure: Failure) {
        self.failure.set(Some(failure));
    }

    pub(crate) fn failure(&self) -> Option<Failure> {
        self.failure.get()
    }

    pub(crate) fn set_upgraded(&self, wire: Box<Wire>) {
        *self.upgraded.borrow_mut() = Some(wire);
    }

    pub(crate) fn take_upgraded(&self) -> Option<Box<Wire>> {
        self.upgraded.borrow_mut().take()
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if let Some(record) = self.record.get_mut() {
            record.finish(self.upstream.get_mut().as_deref());
        }
    }
}

impl Active for Exchange {
    fn activity(&self) -> &Activity {
        &self.activity
    }
}
