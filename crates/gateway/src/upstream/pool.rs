//! `Pool`: the connections of one worker to one upstream that wait for the next request.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use hyper::client::conn::http2::SendRequest;

use crate::client_body::ClientBody;
use crate::h1::Wire;
use crate::ticks::Ticks;

/// Connections that wait. The one that was used last is taken first, so that those that are not needed grow old.
#[derive(Debug)]
pub(crate) struct Pool {
    idle: RefCell<VecDeque<Idle>>,
    idle_max: usize,
    idle_for_max: Duration,
    ticks: Rc<Ticks>,
    /// The one of HTTP/2, which many requests share.
    shared: RefCell<Option<SendRequest<ClientBody>>>,
    /// Held by the one who makes it: the others wait for that instead of making their own.
    pub(super) making: tokio::sync::Mutex<()>,
    /// How often that has failed.
    pub(super) failures: Cell<u64>,
    /// What the upstream has agreed to speak under TLS, once that is known.
    pub(super) speaks_http2: Cell<Option<bool>>,
}

#[derive(Debug)]
struct Idle {
    wire: Box<Wire>,
    until: u64,
}

// === impl Pool ===

impl Pool {
    pub(super) fn new(idle_max: usize, idle_for_max: Duration, ticks: Rc<Ticks>) -> Self {
        Self {
            idle: RefCell::default(),
            idle_max,
            idle_for_max,
            ticks,
            shared: RefCell::default(),
            making: tokio::sync::Mutex::default(),
            failures: Cell::new(0),
            speaks_http2: Cell::new(None),
        }
    }

    /// A connection of HTTP/1.1 that is open, as far as one can know.
    pub(crate) fn take(&self) -> Option<Box<Wire>> {
        loop {
            let mut wire = self.idle.borrow_mut().pop_back()?.wire;
            if wire.stream.is_untouched() {
                return Some(wire);
            }
        }
    }

    /// Keeps a connection of HTTP/1.1 for the next request.
    pub(crate) fn put(&self, wire: Box<Wire>) {
        let mut idle = self.idle.borrow_mut();
        if idle.len() < self.idle_max {
            idle.push_back(Idle { wire, until: self.ticks.now().saturating_add(Ticks::count(self.idle_for_max)) });
        }
    }

    /// Closes those that have waited for too long. The others give back what they do not need.
    pub(super) fn prune(&self) {
        let now = self.ticks.now();
        let mut idle = self.idle.borrow_mut();
        while idle.front().is_some_and(|oldest| oldest.until <= now) {
            idle.pop_front();
        }
        idle.iter_mut().for_each(|idle| idle.wire.relax());
    }

    /// The connection of HTTP/2, if there is one that is open.
    pub(super) fn shared(&self) -> Option<SendRequest<ClientBody>> {
        let mut shared = self.shared.borrow_mut();
        if shared.as_ref().is_some_and(SendRequest::is_closed) {
            *shared = None;
        }
        shared.clone()
    }

    pub(super) fn share(&self, sender: SendRequest<ClientBody>) {
        *self.shared.borrow_mut() = Some(sender);
    }
}
