//! `Buffers`: the memory that a worker keeps for messages that arrive or leave slowly. One bound holds for all workers.
//!
//! When there is no more room, those that have taken the longest to arrive make way: they are the slowest. When one client
//! has more than its share, its largest upload goes on without a buffer.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use slab::Slab;

use crate::observe::metrics::WorkerMetrics;
use crate::proxy::worker::ClientQuota;

/// The bytes that the buffers of all workers have. Counted together: connections are not spread evenly, and one client's
/// share of the whole must not be all that a worker has.
pub(crate) type BufferedBytes = Arc<AtomicUsize>;

/// All buffers of one worker.
#[derive(Debug)]
pub(crate) struct Buffers {
    bytes: Cell<usize>,
    bytes_of_all: BufferedBytes,
    bytes_max: Cell<usize>,
    /// The bytes that one client may have on all workers.
    client_bytes_max: Cell<usize>,
    evictable: RefCell<Slab<Evictable>>,
    /// How many buffers there have been, to tell which came first.
    begun: Cell<u64>,
    metrics: WorkerMetrics,
}

/// A message that has arrived or left in part.
#[derive(Debug)]
struct Evictable {
    number: u64,
    bytes: usize,
    /// Woken when it has to make way.
    waker: Option<Waker>,
    /// The buffer has to make way for others.
    eviction: Option<Eviction>,
    /// The client that sends the body, if it is an upload.
    uploader: Option<ClientQuota>,
}

/// Why a message has to make way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Eviction {
    /// There is no room for the body. Its bytes no longer count, since they are about to be freed.
    NoRoom,
    /// The client of the upload has more than its share of the buffers. The upload is to go on without a buffer, and keeps what it has until then.
    OverShare,
}

/// The buffer of a message that arrives or leaves slowly, which may have to make way for others.
#[derive(Debug)]
pub(crate) struct EvictableBuffer {
    buffers: Rc<Buffers>,
    key: usize,
    client: ClientQuota,
    /// The bytes that are counted for the client.
    bytes: usize,
}

/// An upload that has sent less than this does not go on without a buffer. It would take a seat for next to nothing, and
/// making room is not worth that.
const UNBUFFERED_MIN: usize = 16 * 1024;

/// A buffer that stays until it is dropped.
#[derive(Debug)]
pub(crate) struct HeldBuffer {
    buffers: Rc<Buffers>,
    client: ClientQuota,
    bytes: usize,
}

// === impl Buffers ===

impl Buffers {
    pub(crate) fn new(
        bytes_of_all: &BufferedBytes,
        bytes_max: usize,
        client_bytes_max: usize,
        metrics: WorkerMetrics,
    ) -> Rc<Self> {
        Rc::new(Self {
            bytes: Cell::new(0),
            bytes_of_all: Arc::clone(bytes_of_all),
            bytes_max: Cell::new(bytes_max),
            client_bytes_max: Cell::new(client_bytes_max),
            evictable: RefCell::default(),
            begun: Cell::new(0),
            metrics,
        })
    }

    /// Sets how many bytes all buffers, and those of one client, may have from now on.
    pub(crate) fn set_limits(&self, bytes_max: usize, client_bytes_max: usize) {
        self.bytes_max.set(bytes_max);
        self.client_bytes_max.set(client_bytes_max);
    }

    /// A buffer for a message of this client, from now on.
    pub(crate) fn evictable(self: &Rc<Self>, client: &ClientQuota) -> EvictableBuffer {
        self.begin(client, None)
    }

    /// A buffer for an upload of this client: it may go on without one.
    pub(crate) fn upload(self: &Rc<Self>, client: &ClientQuota) -> EvictableBuffer {
        self.begin(client, Some(client.clone()))
    }

    fn begin(self: &Rc<Self>, client: &ClientQuota, uploader: Option<ClientQuota>) -> EvictableBuffer {
        let number = self.begun.get();
        self.begun.set(number + 1);
        let evictable = Evictable { number, bytes: 0, waker: None, eviction: None, uploader };
        let key = self.evictable.borrow_mut().insert(evictable);
        EvictableBuffer { buffers: Rc::clone(self), key, client: client.clone(), bytes: 0 }
    }

    /// A buffer of this client that never makes way. It should grow only while [there is room](Self::has_room).
    pub(crate) fn held(self: &Rc<Self>, client: &ClientQuota) -> HeldBuffer {
        HeldBuffer { buffers: Rc::clone(self), client: client.clone(), bytes: 0 }
    }

    fn change(&self, before: usize, after: usize) {
        let bytes = self.bytes.get().saturating_sub(before).saturating_add(after);
        self.bytes.set(bytes);
        self.bytes_of_all.fetch_add(after, Ordering::Relaxed);
        self.bytes_of_all.fetch_sub(before, Ordering::Relaxed);
        self.metrics.set_buffered(bytes);
    }

    /// Whether there is room for more that never makes way. Half of the memory stays for messages that cannot wait: a response
    /// that could be read later must not push out others, or the rest of itself.
    pub(crate) fn has_room(&self, client: &ClientQuota) -> bool {
        self.bytes_of_all.load(Ordering::Relaxed) < self.bytes_max.get() / 2
            && client.buffered() < self.client_bytes_max.get() / 2
    }

    fn is_full(&self) -> bool {
        self.bytes_of_all.load(Ordering::Relaxed) > self.bytes_max.get()
    }

    /// Makes the message that has taken the longest give its buffer back.
    fn evict_slowest(&self) {
        let all = self.evictable.borrow();
        let slowest = all.iter().filter(|(_, buffer)| buffer.eviction.is_none());
        let slowest = slowest.min_by_key(|(_, buffer)| buffer.number).map(|(key, _)| key);
        drop(all);
        if let Some(slowest) = slowest {
            self.evict(slowest, Eviction::NoRoom);
        }
    }

    /// Makes a client that has so many bytes keep to its share: its largest upload goes on without a buffer, or the message
    /// with this key gives its own back. Uploads that wait for their seats keep what they have, and are not in the way of
    /// small ones that arrive. A share is left for others.
    fn evict_of(&self, client: &ClientQuota, bytes: usize, key: usize) {
        let share = self.client_bytes_max.get();
        if self.is_full() || bytes > self.bytes_max.get().saturating_sub(share) {
            return self.evict(key, Eviction::NoRoom);
        }
        let all = self.evictable.borrow();
        let (mut arriving, mut going, mut largest) = (0, 0, None);
        for (key, upload) in all.iter().filter(|(_, buffer)| buffer.is_upload_of(client)) {
            match upload.eviction {
                Some(Eviction::OverShare) => going += upload.bytes,
                Some(Eviction::NoRoom) => {}
                None => {
                    arriving += upload.bytes;
                    largest = largest.max(Some((upload.bytes, key)));
                }
            }
        }
        let is_upload = all.get(key).is_some_and(|buffer| buffer.uploader.is_some());
        drop(all);
        match largest {
            _ if bytes.saturating_sub(going) <= share => {}
            Some((bytes, largest)) if bytes >= UNBUFFERED_MIN => self.evict(largest, Eviction::OverShare),
            _ if is_upload && arriving <= share => {}
            _ => self.evict(key, Eviction::NoRoom),
        }
    }

    fn evict(&self, key: usize, eviction: Eviction) {
        let mut all = self.evictable.borrow_mut();
        let Some(evicted) = all.get_mut(key) else { return };
        evicted.eviction = Some(eviction);
        if eviction == Eviction::NoRoom {
            self.change(std::mem::take(&mut evicted.bytes), 0);
        }
        let waker = evicted.waker.take();
        drop(all);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Takes a buffer out of those that may be evicted, and says how many bytes are counted for it.
    fn remove(&self, key: usize) -> usize {
        // Bound to a variable first: dropping a waker may drop a task, which may have buffers of its own.
        let gone = self.evictable.borrow_mut().try_remove(key);
        gone.map_or(0, |gone| gone.bytes)
    }
}

// === impl Evictable ===

impl Evictable {
    fn is_upload_of(&self, client: &ClientQuota) -> bool {
        self.uploader.as_ref().is_some_and(|uploader| uploader.is_same(client))
    }
}

// === impl EvictableBuffer ===

impl EvictableBuffer {
    /// Sets how many bytes it holds now. If all together are too many, the slowest message is dropped, which may be this one.
    /// If those of the client are, one of its messages makes way.
    pub(crate) fn set(&mut self, bytes: usize) {
        let buffers = &self.buffers;
        if let Some(counted) = buffers.evictable.borrow_mut().get_mut(self.key)
            && counted.eviction != Some(Eviction::NoRoom)
        {
            buffers.change(counted.bytes, bytes);
            counted.bytes = bytes;
        }
        let of_client = self.client.change_buffered(self.bytes, bytes);
        self.bytes = bytes;
        if of_client > buffers.client_bytes_max.get() {
            buffers.evict_of(&self.client, of_client, self.key);
        } else if buffers.is_full() {
            buffers.evict_slowest();
        }
    }

    /// Waits until it has to make way.
    pub(crate) fn poll_evicted(&self, context: &Context<'_>) -> Poll<Eviction> {
        let mut all = self.buffers.evictable.borrow_mut();
        let Some(buffer) = all.get_mut(self.key) else { return Poll::Ready(Eviction::NoRoom) };
        match buffer.eviction {
            Some(eviction) => Poll::Ready(eviction),
            None => {
                buffer.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    /// The message has arrived as far as it has to: it is no longer dropped to make room.
    pub(crate) fn arrived(self) -> HeldBuffer {
        // The bytes that are counted for it are taken over.
        let bytes =
            self.buffers.evictable.borrow_mut().get_mut(self.key).map_or(0, |buffer| std::mem::take(&mut buffer.bytes));
        self.client.change_buffered(0, bytes);
        HeldBuffer { buffers: Rc::clone(&self.buffers), client: self.client.clone(), bytes }
    }
}

impl Drop for EvictableBuffer {
    fn drop(&mut self) {
        self.client.change_buffered(self.bytes, 0);
        self.buffers.change(self.buffers.remove(self.key), 0);
    }
}

// === impl HeldBuffer ===

impl HeldBuffer {
    pub(crate) fn set(&mut self, bytes: usize) {
        self.buffers.change(self.bytes, bytes);
        self.client.change_buffered(self.bytes, bytes);
        self.bytes = bytes;
    }
}

impl Drop for HeldBuffer {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::metrics::GatewayMetrics;
    use crate::proxy::worker::ClientQuotas;

    fn buffers(bytes_max: usize, client_bytes_max: usize) -> (Rc<Buffers>, ClientQuota, ClientQuota) {
        let client = |address: &str| ClientQuotas::new(9, 9).open(address.parse().unwrap(), false).unwrap();
        let all = BufferedBytes::default();
        let buffers = Buffers::new(&all, bytes_max, client_bytes_max, GatewayMetrics::new(1).worker(0));
        (buffers, client("10.0.0.1"), client("10.0.0.2"))
    }

    fn eviction(buffer: &EvictableBuffer) -> Option<Eviction> {
        match buffer.poll_evicted(&Context::from_waker(Waker::noop())) {
            Poll::Ready(eviction) => Some(eviction),
            Poll::Pending => None,
        }
    }

    fn is_evicted(buffer: &EvictableBuffer) -> bool {
        eviction(buffer).is_some()
    }

    #[test]
    fn the_slowest_make_way() {
        let (buffers, client, _) = buffers(100, 1000);
        let mut all: Vec<EvictableBuffer> = (0..3).map(|_| buffers.evictable(&client)).collect();
        for buffer in &mut all {
            buffer.set(30);
        }
        assert!(!all.iter().any(is_evicted));
        all[2].set(60);
        assert_eq!(all.iter().map(is_evicted).collect::<Vec<_>>(), [true, false, false]);
        assert_eq!(buffers.bytes.get(), 90, "one is enough");
        drop(all.remove(0));
        // A message that has arrived is not asked to make way, however old it is.
        let kept = all.remove(0).arrived();
        all[0].set(80);
        assert!(is_evicted(&all[0]));
        drop((kept, all));
        assert_eq!(buffers.bytes.get(), 0);
        assert!(buffers.evictable.borrow().is_empty());
    }

    #[test]
    fn one_client_does_not_take_it_all() {
        let (buffers, greedy, polite) = buffers(100, 50);
        let mut first = buffers.evictable(&polite);
        first.set(20);
        let (mut second, mut third) = (buffers.evictable(&greedy), buffers.evictable(&greedy));
        second.set(40);
        third.set(20);
        assert_eq!([&first, &second, &third].map(is_evicted), [false, false, true]);
        drop(third);
        second.set(50);
        assert!(!is_evicted(&second));
    }

    #[test]
    fn the_largest_upload_of_a_client_makes_way_for_its_others() {
        const KIB: usize = 1024;
        let (buffers, greedy, polite) = buffers(400 * KIB, 100 * KIB);
        let [mut large, mut small, mut head] =
            [buffers.upload(&greedy), buffers.upload(&greedy), buffers.evictable(&greedy)];
        let mut others = buffers.upload(&polite);
        others.set(99 * KIB);
        large.set(60 * KIB);
        small.set(30 * KIB);
        head.set(20 * KIB);
        assert_eq!([&large, &small, &head, &others].map(eviction), [Some(Eviction::OverShare), None, None, None]);
        small.set(31 * KIB);
        assert_eq!(eviction(&small), None, "room is about to be made");
        // The upload waits for its seat.
        let waiting = large.arrived();
        assert_eq!((waiting.bytes, greedy.buffered()), (60 * KIB, 111 * KIB));
        small.set(32 * KIB);
        assert_eq!(eviction(&small), Some(Eviction::OverShare));
        let more = small.arrived();
        // Small ones are not given a seat, and have a share of their own while others wait for theirs.
        let mut tiny: Vec<_> = (0..7).map(|_| buffers.upload(&greedy)).collect();
        for tiny in &mut tiny {
            tiny.set(15 * KIB);
        }
        assert_eq!(
            tiny.iter().map(eviction).collect::<Vec<_>>(),
            [None, None, None, None, None, None, Some(Eviction::NoRoom)]
        );
        drop(tiny);
        head.set(21 * KIB);
        assert_eq!(eviction(&head), Some(Eviction::NoRoom));
        // A share is left for others.
        let mut last = buffers.upload(&greedy);
        last.set(189 * KIB);
        assert_eq!(eviction(&last), Some(Eviction::NoRoom));
        drop((waiting, more, last, head, others));
        assert_eq!((buffers.bytes.get(), greedy.buffered(), polite.buffered()), (0, 0, 0));
    }

    #[test]
    fn responses_are_kept_only_where_there_is_room() {
        let (buffers, one, other) = buffers(100, 70);
        let (mut held, mut rest) = (buffers.held(&one), buffers.held(&other));
        held.set(34);
        assert!(buffers.has_room(&one) && buffers.has_room(&other));
        held.set(35);
        assert!(!buffers.has_room(&one) && buffers.has_room(&other));
        rest.set(15);
        assert!(!buffers.has_room(&other));
        // Messages under way have the other half.
        let mut arriving = buffers.evictable(&one);
        arriving.set(35);
        assert!(!is_evicted(&arriving));
    }

    #[test]
    fn workers_share_one_bound() {
        let (all, metrics) = (BufferedBytes::default(), GatewayMetrics::new(2));
        let [first, second] = [0, 1].map(|worker| Buffers::new(&all, 100, 80, metrics.worker(worker)));
        let (_, one, other) = buffers(1, 1);
        // All connections of one client may be the first worker's: it has no more for that, and others have what is left.
        let (mut greedy, mut polite) = (first.evictable(&one), first.evictable(&other));
        greedy.set(80);
        polite.set(20);
        assert!(!is_evicted(&greedy) && !is_evicted(&polite));
        let mut elsewhere = second.evictable(&other);
        elsewhere.set(10);
        assert!(is_evicted(&elsewhere));
        drop((greedy, polite, elsewhere));
        assert_eq!(all.load(Ordering::Relaxed), 0);
    }
}
