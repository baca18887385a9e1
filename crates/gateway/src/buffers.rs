//! `Buffers`: the memory that a worker keeps for messages that arrive or leave slowly, within a bound.
//!
//! When there is no more room, those that have taken the longest to arrive make way: they are the slowest.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use slab::Slab;

use crate::metrics::WorkerMetrics;
use crate::worker::Client;

/// All buffers of one worker.
#[derive(Debug)]
pub(crate) struct Buffers {
    bytes: Cell<usize>,
    bytes_max: Cell<usize>,
    /// What one client may have on all workers.
    client_bytes_max: Cell<usize>,
    arriving: RefCell<Slab<Arriving>>,
    /// How many messages have begun to arrive, to tell which came first.
    begun: Cell<u64>,
    metrics: WorkerMetrics,
}

/// A message that has arrived in part.
#[derive(Debug)]
struct Arriving {
    number: u64,
    bytes: usize,
    /// Woken when it has to make way.
    waker: Option<Waker>,
    /// It has to make way. What it has counts no more: it is about to be freed.
    is_evicted: bool,
}

/// The buffer of a message that arrives, which may have to make way for others.
#[derive(Debug)]
pub(crate) struct ArrivingBuffer {
    buffers: Rc<Buffers>,
    key: usize,
    client: Client,
    /// What is counted for the client.
    bytes: usize,
}

/// A buffer that stays until it is dropped.
#[derive(Debug)]
pub(crate) struct HeldBuffer {
    buffers: Rc<Buffers>,
    bytes: usize,
}

// === impl Buffers ===

impl Buffers {
    pub(crate) fn new(bytes_max: usize, client_bytes_max: usize, metrics: WorkerMetrics) -> Rc<Self> {
        Rc::new(Self {
            bytes: Cell::new(0),
            bytes_max: Cell::new(bytes_max),
            client_bytes_max: Cell::new(client_bytes_max),
            arriving: RefCell::default(),
            begun: Cell::new(0),
            metrics,
        })
    }

    /// So many bytes are allowed from now on, in all and for one client.
    pub(crate) fn set_limits(&self, bytes_max: usize, client_bytes_max: usize) {
        self.bytes_max.set(bytes_max);
        self.client_bytes_max.set(client_bytes_max);
    }

    /// A buffer for a message of this client that begins to arrive.
    pub(crate) fn arriving(self: &Rc<Self>, client: &Client) -> ArrivingBuffer {
        let number = self.begun.get();
        self.begun.set(number + 1);
        let key = self.arriving.borrow_mut().insert(Arriving { number, bytes: 0, waker: None, is_evicted: false });
        ArrivingBuffer { buffers: Rc::clone(self), key, client: client.clone(), bytes: 0 }
    }

    /// A buffer that never makes way.
    pub(crate) fn held(self: &Rc<Self>) -> HeldBuffer {
        HeldBuffer { buffers: Rc::clone(self), bytes: 0 }
    }

    fn change(&self, before: usize, after: usize) {
        let bytes = self.bytes.get().saturating_sub(before).saturating_add(after);
        self.bytes.set(bytes);
        self.metrics.set_buffered(bytes);
    }

    /// Whether there is room for more.
    pub(crate) fn has_room(&self) -> bool {
        self.bytes.get() < self.bytes_max.get()
    }

    fn is_full(&self) -> bool {
        self.bytes.get() > self.bytes_max.get()
    }

    /// Makes the message that has taken the longest to arrive give its buffer back.
    fn evict_slowest(&self) {
        let arriving = self.arriving.borrow();
        let slowest = arriving.iter().filter(|(_, arriving)| !arriving.is_evicted);
        let slowest = slowest.min_by_key(|(_, arriving)| arriving.number).map(|(key, _)| key);
        drop(arriving);
        if let Some(slowest) = slowest {
            self.evict(slowest);
        }
    }

    fn evict(&self, key: usize) {
        let mut arriving = self.arriving.borrow_mut();
        let Some(evicted) = arriving.get_mut(key) else { return };
        evicted.is_evicted = true;
        self.change(std::mem::take(&mut evicted.bytes), 0);
        let waker = evicted.waker.take();
        drop(arriving);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Takes a message out of those that arrive, and says how many bytes are counted for it.
    fn remove(&self, key: usize) -> usize {
        // Bound first: dropping a waker may drop a task, which may have buffers of its own.
        let gone = self.arriving.borrow_mut().try_remove(key);
        gone.map_or(0, |gone| gone.bytes)
    }
}

// === impl ArrivingBuffer ===

impl ArrivingBuffer {
    /// It has so many bytes now. If that is too many, the slowest message makes way, which may be this one.
    pub(crate) fn set(&mut self, bytes: usize) {
        let buffers = &self.buffers;
        if let Some(arriving) = buffers.arriving.borrow_mut().get_mut(self.key)
            && !arriving.is_evicted
        {
            buffers.change(arriving.bytes, bytes);
            arriving.bytes = bytes;
        }
        let of_client = self.client.change_buffered(self.bytes, bytes);
        self.bytes = bytes;
        if of_client > buffers.client_bytes_max.get() {
            buffers.evict(self.key);
        } else if buffers.is_full() {
            buffers.evict_slowest();
        }
    }

    /// Waits until it has to make way.
    pub(crate) fn poll_evicted(&self, context: &Context<'_>) -> Poll<()> {
        match self.buffers.arriving.borrow_mut().get_mut(self.key) {
            Some(arriving) if !arriving.is_evicted => {
                arriving.waker = Some(context.waker().clone());
                Poll::Pending
            }
            _ => Poll::Ready(()),
        }
    }

    /// The message has arrived as far as it has to: it makes way for nobody any more.
    pub(crate) fn arrived(self) -> HeldBuffer {
        // What is counted for it goes over.
        let bytes = self
            .buffers
            .arriving
            .borrow_mut()
            .get_mut(self.key)
            .map_or(0, |arriving| std::mem::take(&mut arriving.bytes));
        HeldBuffer { buffers: Rc::clone(&self.buffers), bytes }
    }
}

impl Drop for ArrivingBuffer {
    fn drop(&mut self) {
        self.client.change_buffered(self.bytes, 0);
        self.buffers.change(self.buffers.remove(self.key), 0);
    }
}

// === impl HeldBuffer ===

impl HeldBuffer {
    pub(crate) fn set(&mut self, bytes: usize) {
        self.buffers.change(self.bytes, bytes);
        self.bytes = bytes;
    }
}

impl Drop for HeldBuffer {
    fn drop(&mut self) {
        self.buffers.change(self.bytes, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::GatewayMetrics;
    use crate::worker::Clients;

    fn buffers(bytes_max: usize, client_bytes_max: usize) -> (Rc<Buffers>, Client, Client) {
        let client = |address: &str| Clients::new(9, 9).open(address.parse().unwrap(), false).unwrap();
        let buffers = Buffers::new(bytes_max, client_bytes_max, GatewayMetrics::new(1).worker(0));
        (buffers, client("10.0.0.1"), client("10.0.0.2"))
    }

    fn is_evicted(buffer: &ArrivingBuffer) -> bool {
        buffer.poll_evicted(&Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn the_slowest_make_way() {
        let (buffers, client, _) = buffers(100, 1000);
        let mut all: Vec<ArrivingBuffer> = (0..3).map(|_| buffers.arriving(&client)).collect();
        for buffer in &mut all {
            buffer.set(30);
        }
        assert!(!all.iter().any(is_evicted));
        all[2].set(60);
        assert_eq!(all.iter().map(is_evicted).collect::<Vec<_>>(), [true, false, false]);
        assert_eq!(buffers.bytes.get(), 90, "one is enough");
        drop(all.remove(0));
        // What has arrived is not asked to make way, however old it is.
        let kept = all.remove(0).arrived();
        all[0].set(80);
        assert!(is_evicted(&all[0]));
        drop((kept, all));
        assert_eq!(buffers.bytes.get(), 0);
        assert!(buffers.arriving.borrow().is_empty());
    }

    #[test]
    fn one_client_does_not_take_it_all() {
        let (buffers, greedy, polite) = buffers(100, 50);
        let mut first = buffers.arriving(&polite);
        first.set(20);
        let (mut second, mut third) = (buffers.arriving(&greedy), buffers.arriving(&greedy));
        second.set(40);
        third.set(20);
        assert_eq!([&first, &second, &third].map(is_evicted), [false, false, true]);
        drop(third);
        second.set(50);
        assert!(!is_evicted(&second));
    }

    #[test]
    fn responses_are_kept_only_where_there_is_room() {
        let (buffers, _, _) = buffers(100, 100);
        let mut held = buffers.held();
        held.set(99);
        assert!(buffers.has_room());
        held.set(100);
        assert!(!buffers.has_room());
    }
}
