//! `Pool`: the connections of one worker to one upstream that wait for the next request.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use super::http2_connection::{Http2Connection, Http2Stream};
use crate::http1::Wire;
use crate::timeouts::CoarseTimer;

/// Connections that wait. The one that was used last is taken first, so that those that are not needed grow old.
#[derive(Debug)]
pub(crate) struct Pool {
    idle: RefCell<VecDeque<Idle>>,
    idle_max: Cell<usize>,
    idle_for_max: Duration,
    timer: Rc<CoarseTimer>,
    /// The connections of HTTP/2, each of which many requests share. A request takes the first that has room, so that the others
    /// grow old.
    shared: RefCell<Vec<Rc<Http2Connection>>>,
    /// Held by the task that makes another one: others wait for that instead of making their own.
    pub(super) making: tokio::sync::Mutex<()>,
    /// How often that has failed.
    pub(super) failures: Cell<u64>,
    /// Whether the upstream has agreed to HTTP/2 under TLS, once that is known.
    pub(super) speaks_http2: Cell<Option<bool>>,
}

#[derive(Debug)]
struct Idle {
    wire: Box<Wire>,
    until: u64,
}

// === impl Pool ===

impl Pool {
    pub(super) fn new(idle_max: usize, idle_for_max: Duration, timer: Rc<CoarseTimer>) -> Self {
        Self {
            idle: RefCell::default(),
            idle_max: Cell::new(idle_max),
            idle_for_max,
            timer,
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
    pub(crate) fn put(&self, mut wire: Box<Wire>) {
        wire.release_buffers();
        let mut idle = self.idle.borrow_mut();
        if idle.len() < self.idle_max.get() {
            idle.push_back(Idle {
                wire,
                until: self.timer.now().saturating_add(CoarseTimer::count(self.idle_for_max)),
            });
        }
    }

    /// Closes all that wait, and keeps none from now on. Requests that run on others are not disturbed.
    pub(super) fn close(&self) {
        self.idle_max.set(0);
        self.idle.take();
        self.shared.take();
    }

    /// Closes those that have waited for too long.
    pub(super) fn prune(&self) {
        let now = self.timer.now();
        let mut idle = self.idle.borrow_mut();
        while idle.front().is_some_and(|oldest| oldest.until <= now) {
            idle.pop_front();
        }
        let idle_max = CoarseTimer::count(self.idle_for_max);
        self.shared.borrow_mut().retain(|shared| !shared.is_closed() && !shared.is_of_no_use(idle_max));
    }

    /// A place on a connection of HTTP/2 that is open, as far as one can know.
    pub(super) fn stream(&self) -> Option<Http2Stream> {
        let mut shared = self.shared.borrow_mut();
        shared.retain(|shared| !shared.is_closed());
        shared.iter().find(|shared| shared.has_room()).map(Http2Connection::open)
    }

    /// Lets others use a connection of HTTP/2.
    pub(super) fn share(&self, connection: Rc<Http2Connection>) {
        self.shared.borrow_mut().push(connection);
    }
}
