//! `ClientQuotas`: counts the connections, streams and buffers of each client, so that no client takes all.
//!
//! A client is an address until a request on the connection has proved who is calling, and then that user.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use evenkeel_engine::User;
use evenkeel_engine::implied_groups::UNAUTHENTICATED;
use evenkeel_identity::config::masked;

/// The counts of all clients of the gateway, on all workers.
#[derive(Debug)]
pub(crate) struct ClientQuotas {
    connections_max: AtomicUsize,
    streams_max: AtomicUsize,
    /// The gRPC calls of all clients that have seats and have sent no message.
    silent_calls: AtomicUsize,
    counts: Mutex<HashMap<ClientKey, Arc<ClientCounts>>>,
}

/// The client of one connection. The connection is counted until the last clone is dropped.
#[derive(Debug, Clone)]
pub(crate) struct ClientQuota(Rc<OfConnection>);

/// A connection to a hosted service, whose requests may run on any thread. It is counted until it is dropped.
#[derive(Debug)]
pub(crate) struct HostedConnection {
    clients: Arc<ClientQuotas>,
    owner: Mutex<HostedOwner>,
}

/// The client that a connection to a hosted service counts for.
#[derive(Debug)]
enum HostedOwner {
    /// The address that it comes from: no request has said who is calling.
    Address(Arc<ClientCounts>),
    /// The user of its first request that was authenticated.
    User(Arc<ClientCounts>),
    /// A trusted proxy, which has no limits.
    Proxy,
}

/// A stream of HTTP/2. It is counted until it is dropped.
#[derive(Debug)]
pub(crate) struct OpenStream(ClientQuota);

/// A gRPC call that has a seat and has sent no message. It is counted until it is dropped.
#[derive(Debug)]
pub(crate) struct SilentCall(ClientQuota);

/// What one connection contributes to the counts of its client.
#[derive(Debug)]
struct OfConnection {
    clients: Arc<ClientQuotas>,
    /// `None` for a trusted proxy: it speaks for many clients, and has no limits.
    owner: RefCell<Option<Arc<ClientCounts>>>,
    /// Whether a request has said who is calling. After the first, further requests are not looked at.
    is_identified: Cell<bool>,
    streams: Cell<usize>,
    silent_calls: Cell<usize>,
    buffered_bytes: Cell<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum ClientKey {
    Address(IpAddr),
    User(String),
}

#[derive(Debug)]
struct ClientCounts {
    key: ClientKey,
    connections: AtomicUsize,
    streams: AtomicUsize,
    silent_calls: AtomicUsize,
    buffered_bytes: AtomicUsize,
}

/// The part of an IPv6 address that stands for one client: networks are given away in this size.
const IPV6_BITS: u8 = 64;

// === impl ClientQuotas ===

impl ClientQuotas {
    pub(crate) fn new(connections_max: usize, streams_max: usize) -> Arc<Self> {
        Arc::new(Self {
            connections_max: AtomicUsize::new(connections_max),
            streams_max: AtomicUsize::new(streams_max),
            silent_calls: AtomicUsize::new(0),
            counts: Mutex::default(),
        })
    }

    /// Each client may have so many connections and streams from now on. Those that are open stay.
    pub(crate) fn set_limits(&self, connections_max: usize, streams_max: usize) {
        self.connections_max.store(connections_max, Ordering::Relaxed);
        self.streams_max.store(streams_max, Ordering::Relaxed);
    }

    /// A connection from this address. None if the client has too many.
    pub(crate) fn open(self: &Arc<Self>, address: IpAddr, is_trusted_proxy: bool) -> Option<ClientQuota> {
        if is_trusted_proxy {
            return Some(self.uncounted());
        }
        Some(self.of_owner(Some(self.add_connection(ClientKey::address(address))?)))
    }

    /// A connection that counts for no client.
    pub(crate) fn uncounted(self: &Arc<Self>) -> ClientQuota {
        self.of_owner(None)
    }

    fn of_owner(self: &Arc<Self>, owner: Option<Arc<ClientCounts>>) -> ClientQuota {
        ClientQuota(Rc::new(OfConnection {
            clients: Arc::clone(self),
            is_identified: Cell::new(owner.is_none()),
            owner: RefCell::new(owner),
            streams: Cell::new(0),
            silent_calls: Cell::new(0),
            buffered_bytes: Cell::new(0),
        }))
    }

    /// Opens a connection to a hosted service.
    pub(crate) fn open_hosted(self: &Arc<Self>, address: IpAddr, is_trusted_proxy: bool) -> Option<HostedConnection> {
        let owner = if is_trusted_proxy {
            HostedOwner::Proxy
        } else {
            HostedOwner::Address(self.add_connection(ClientKey::address(address))?)
        };
        Some(HostedConnection { clients: Arc::clone(self), owner: Mutex::new(owner) })
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<ClientKey, Arc<ClientCounts>>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add_connection(&self, key: ClientKey) -> Option<Arc<ClientCounts>> {
        let mut all = self.counts();
        let counts = all.entry(key).or_insert_with_key(|key| Arc::new(ClientCounts::new(key.clone())));
        if counts.connections.load(Ordering::Relaxed) >= self.connections_max.load(Ordering::Relaxed) {
            return None;
        }
        counts.connections.fetch_add(1, Ordering::Relaxed);
        Some(Arc::clone(counts))
    }

    fn remove_connection(&self, key: &ClientKey) {
        let mut all = self.counts();
        if let Some(counts) = all.get(key)
            && counts.connections.fetch_sub(1, Ordering::Relaxed) <= 1
        {
            all.remove(key);
        }
    }
}

// === impl ClientCounts ===

impl ClientCounts {
    fn new(key: ClientKey) -> Self {
        let count = AtomicUsize::default;
        Self { key, connections: count(), streams: count(), silent_calls: count(), buffered_bytes: count() }
    }
}

// === impl ClientKey ===

impl ClientKey {
    fn address(address: IpAddr) -> Self {
        let address = address.to_canonical();
        Self::Address(if address.is_ipv6() { masked(address, IPV6_BITS) } else { address })
    }
}

// === impl ClientQuota ===

impl ClientQuota {
    /// A request on the connection is this user's. From the first that proves who is calling, the connection counts for
    /// that user. False if the user has too many.
    pub(crate) fn identify(&self, user: &User) -> bool {
        if self.0.is_identified.replace(true) || user.is_in(UNAUTHENTICATED) {
            return true;
        }
        let Some(new) = self.0.clients.add_connection(ClientKey::User(user.name.to_string())) else {
            self.0.is_identified.set(false);
            return false;
        };
        new.streams.fetch_add(self.0.streams.get(), Ordering::Relaxed);
        new.silent_calls.fetch_add(self.0.silent_calls.get(), Ordering::Relaxed);
        new.buffered_bytes.fetch_add(self.0.buffered_bytes.get(), Ordering::Relaxed);
        self.0.release();
        *self.0.owner.borrow_mut() = Some(new);
        true
    }

    /// Whether both connections count for the same client.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (&*self.0.owner.borrow(), &*other.0.owner.borrow()) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }

    /// Begins a stream. None if the client has too many.
    pub(crate) fn open_stream(&self) -> Option<OpenStream> {
        if let Some(counts) = &*self.0.owner.borrow()
            && !count_up(&counts.streams, self.0.clients.streams_max.load(Ordering::Relaxed))
        {
            return None;
        }
        self.0.streams.set(self.0.streams.get() + 1);
        Some(OpenStream(self.clone()))
    }

    /// Begins a gRPC call that gets one of so many seats before it has sent a message. None if such calls have a quarter of
    /// all seats, or those of the client a quarter of that.
    pub(crate) fn begin_silent_call(&self, seats: usize) -> Option<SilentCall> {
        let calls_max = seats / 4;
        let all = &self.0.clients.silent_calls;
        if !count_up(all, calls_max) {
            return None;
        }
        if let Some(counts) = &*self.0.owner.borrow()
            && !count_up(&counts.silent_calls, calls_max.div_ceil(4))
        {
            all.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        self.0.silent_calls.set(self.0.silent_calls.get() + 1);
        Some(SilentCall(self.clone()))
    }

    /// The bytes in all buffers of the client; zero for a trusted proxy.
    pub(crate) fn buffered(&self) -> usize {
        self.0.owner.borrow().as_ref().map_or(0, |counts| counts.buffered_bytes.load(Ordering::Relaxed))
    }

    /// A buffer of the connection has another size. Returns the bytes in all buffers of the client; zero for a trusted proxy.
    pub(crate) fn change_buffered(&self, before: usize, after: usize) -> usize {
        let bytes = &self.0.buffered_bytes;
        bytes.set(bytes.get().saturating_sub(before).saturating_add(after));
        self.0.owner.borrow().as_ref().map_or(0, |counts| {
            counts.buffered_bytes.fetch_sub(before, Ordering::Relaxed);
            counts.buffered_bytes.fetch_add(after, Ordering::Relaxed).saturating_add(after)
        })
    }
}

/// Adds one, unless there are so many already.
fn count_up(count: &AtomicUsize, max: usize) -> bool {
    let is_one_more = count.fetch_add(1, Ordering::Relaxed) < max;
    if !is_one_more {
        count.fetch_sub(1, Ordering::Relaxed);
    }
    is_one_more
}

// === impl HostedConnection ===

impl HostedConnection {
    /// A request on the connection is this user's; see [`ClientQuota::identify`].
    pub(crate) fn identify(&self, user: &User) -> bool {
        let mut owner = self.owner.lock().unwrap_or_else(PoisonError::into_inner);
        let HostedOwner::Address(address) = &*owner else { return true };
        if user.groups.iter().any(|group| &**group == UNAUTHENTICATED) {
            return true;
        }
        let Some(user) = self.clients.add_connection(ClientKey::User(user.name.to_string())) else { return false };
        self.clients.remove_connection(&address.key);
        *owner = HostedOwner::User(user);
        true
    }
}

impl Drop for HostedConnection {
    fn drop(&mut self) {
        let owner = self.owner.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let HostedOwner::Address(counts) | HostedOwner::User(counts) = owner {
            self.clients.remove_connection(&counts.key);
        }
    }
}

// === impl OfConnection ===

impl OfConnection {
    /// Takes the connection's part away from the counts of its client.
    fn release(&self) {
        if let Some(counts) = self.owner.take() {
            counts.streams.fetch_sub(self.streams.get(), Ordering::Relaxed);
            counts.silent_calls.fetch_sub(self.silent_calls.get(), Ordering::Relaxed);
            counts.buffered_bytes.fetch_sub(self.buffered_bytes.get(), Ordering::Relaxed);
            self.clients.remove_connection(&counts.key);
        }
    }
}

impl Drop for OfConnection {
    fn drop(&mut self) {
        self.release();
    }
}

// === impl OpenStream ===

impl Drop for OpenStream {
    fn drop(&mut self) {
        let connection = &self.0.0;
        connection.streams.set(connection.streams.get().saturating_sub(1));
        if let Some(counts) = &*connection.owner.borrow() {
            counts.streams.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

// === impl SilentCall ===

impl Drop for SilentCall {
    fn drop(&mut self) {
        let connection = &self.0.0;
        connection.silent_calls.set(connection.silent_calls.get().saturating_sub(1));
        connection.clients.silent_calls.fetch_sub(1, Ordering::Relaxed);
        if let Some(counts) = &*connection.owner.borrow() {
            counts.silent_calls.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(clients: &Arc<ClientQuotas>, address: &str) -> Option<ClientQuota> {
        clients.open(address.parse().unwrap(), false)
    }

    #[test]
    fn an_address_has_a_share_of_the_connections() {
        let clients = ClientQuotas::new(2, 2);
        let (first, _second) = (open(&clients, "10.0.0.1").unwrap(), open(&clients, "10.0.0.1"));
        assert!(open(&clients, "10.0.0.1").is_none());
        assert!(open(&clients, "::ffff:10.0.0.1").is_none(), "the same address");
        assert!(open(&clients, "10.0.0.2").is_some());
        assert!(clients.open("10.0.0.1".parse().unwrap(), true).is_some(), "a trusted proxy");
        drop(first);
        assert!(open(&clients, "10.0.0.1").is_some());
        let _network = [open(&clients, "2001:db8::1"), open(&clients, "2001:db8::2")];
        assert!(open(&clients, "2001:db8::3").is_none(), "the same network");
    }

    #[test]
    fn users_behind_one_address_have_shares_of_their_own() {
        let clients = ClientQuotas::new(2, 2);
        let user = |name: &str| User::new(name, ["system:authenticated"]);
        let mut open_as = |name: &str| {
            let client = open(&clients, "10.0.0.1").unwrap();
            client.identify(&user(name)).then_some(client)
        };
        let kept: Vec<_> = ["ann", "ann", "bob", "bob"].map(&mut open_as).into();
        assert!(kept.iter().all(Option::is_some));
        assert!(open_as("ann").is_none());
        // Clients that have not authenticated are told apart by their addresses.
        let nobody = User::new("system:anonymous", [UNAUTHENTICATED]);
        let nobodies: Vec<_> = (0..2).map(|_| open(&clients, "10.0.0.1").unwrap()).collect();
        assert!(nobodies.iter().all(|client| client.identify(&nobody)));
        assert!(open(&clients, "10.0.0.1").is_none());
        drop((kept, nobodies));
        assert!(clients.counts().is_empty());
    }

    #[test]
    fn connections_to_a_hosted_service_are_counted_alike() {
        let clients = ClientQuotas::new(2, 2);
        let open = |address: &str| clients.open_hosted(address.parse().unwrap(), false);
        let (first, second) = (open("10.0.0.1").unwrap(), open("10.0.0.1").unwrap());
        assert!(open("10.0.0.1").is_none());
        let other = open("10.0.0.2").unwrap();
        assert!(clients.open_hosted("10.0.0.1".parse().unwrap(), true).is_some(), "a trusted proxy");
        // No request has authenticated.
        assert!(first.identify(&User::new("system:anonymous", [UNAUTHENTICATED])) && open("10.0.0.1").is_none());
        let ann = User::new("ann", ["system:authenticated"]);
        assert!(first.identify(&ann) && first.identify(&ann), "it counts once");
        let (third, fourth) = (open("10.0.0.1").unwrap(), open("10.0.0.3").unwrap());
        assert!(third.identify(&ann));
        assert!(!fourth.identify(&ann), "ann has two");
        drop((first, second, other, third, fourth));
        assert!(clients.counts().is_empty());
    }

    #[test]
    fn streams_are_counted_over_all_connections() {
        let clients = ClientQuotas::new(9, 3);
        let (first, second) = (open(&clients, "10.0.0.1").unwrap(), open(&clients, "10.0.0.1").unwrap());
        let streams = [first.open_stream(), first.open_stream(), second.open_stream()];
        assert!(streams.iter().all(Option::is_some));
        assert!(first.open_stream().is_none());
        assert!(first.identify(&User::new("ann", ["system:authenticated"])));
        assert!(first.open_stream().is_some(), "its streams went along");
        assert!(second.open_stream().is_some());
        drop(streams);
        drop((first, second));
        assert!(clients.counts().is_empty());
    }

    #[test]
    fn calls_without_a_message_have_a_quarter_of_the_seats_and_a_client_a_quarter_of_that() {
        let clients = ClientQuotas::new(9, 9);
        let [first, second, proxy] = ["10.0.0.1", "10.0.0.2", "10.0.0.3"]
            .map(|address| clients.open(address.parse().unwrap(), address.ends_with('3')).unwrap());
        let begin = |client: &ClientQuota| client.begin_silent_call(32);
        let calls = [begin(&first), begin(&first), begin(&second), begin(&second)];
        assert!(calls.iter().all(Option::is_some));
        assert!(begin(&first).is_none() && begin(&second).is_none());
        // A trusted proxy speaks for many clients.
        let of_proxy: Vec<_> = (0..4).map(|_| begin(&proxy)).collect();
        assert!(of_proxy.iter().all(Option::is_some) && begin(&proxy).is_none());
        drop(of_proxy);
        assert!(first.identify(&User::new("ann", ["system:authenticated"])));
        assert!(begin(&first).is_none(), "its calls went along");
        drop(calls);
        assert!(begin(&first).is_some());
        assert!(first.begin_silent_call(3).is_none(), "there are too few seats");
        assert_eq!(clients.silent_calls.load(Ordering::Relaxed), 0);
    }
}
