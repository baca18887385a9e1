//! The service behind the gateways: it knows how many requests it works on, and through which gateway each came.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// How long a request takes: shorter than the grace of the fleet, and so long that a busy machine can keep all seats in use.
const REQUEST: Duration = Duration::from_millis(200);

/// A service that counts.
#[derive(Clone)]
pub(super) struct Service {
    pub(super) address: SocketAddr,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// What is in flight, by the gateway through which it came.
    in_flight: BTreeMap<u64, u64>,
    /// Gateways that were killed. What they had sent runs on, and is counted apart.
    dead: BTreeSet<u64>,
    max: u64,
    max_with_dead: u64,
    /// The time that requests of each tenant have taken.
    seat_time: BTreeMap<String, Duration>,
    /// Every begin (1) and end (-1), for the checker.
    history: Vec<Entry>,
}

/// Something that happened at the service.
#[derive(Clone, Copy)]
struct Entry {
    at: Instant,
    gateway: u64,
    change: i64,
    is_dead: bool,
}

// === impl Service ===

impl Service {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let service = Self { address, state: Arc::default() };
        let serving = service.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serving.clone().serve(stream));
            }
        });
        service
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Requests are `GET /<gateway>/<tenant>`.
    async fn serve(self, stream: TcpStream) {
        let mut stream = BufReader::new(stream);
        loop {
            let (mut request, mut line) = (String::new(), String::new());
            if !matches!(stream.read_line(&mut request).await, Ok(1..)) {
                return;
            }
            while line != "\r\n" {
                line.clear();
                if !matches!(stream.read_line(&mut line).await, Ok(1..)) {
                    return;
                }
            }
            let mut parts = request.split(['/', ' ']).skip(2);
            let gateway: u64 = parts.next().unwrap().parse().unwrap();
            let tenant = parts.next().unwrap().to_owned();
            self.note(gateway, 1);
            let began = Instant::now();
            tokio::time::sleep(REQUEST).await;
            self.note(gateway, -1);
            *self.state().seat_time.entry(tenant).or_default() += began.elapsed();
            if stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await.is_err() {
                return;
            }
        }
    }

    fn note(&self, gateway: u64, change: i64) {
        let mut state = self.state();
        let count = state.in_flight.entry(gateway).or_default();
        *count = count.checked_add_signed(change).unwrap();
        let is_dead = state.dead.contains(&gateway);
        state.history.push(Entry { at: Instant::now(), gateway, change, is_dead });
        let with_dead = state.in_flight.values().sum();
        let living = state.living();
        state.max = state.max.max(living);
        state.max_with_dead = state.max_with_dead.max(with_dead);
    }

    /// A gateway is about to be killed. Its requests run on; nobody else knows of them.
    pub(super) fn note_killed(&self, gateway: u64) {
        let mut state = self.state();
        state.dead.insert(gateway);
        let left = i64::try_from(state.in_flight.get(&gateway).copied().unwrap_or(0)).unwrap();
        state.history.push(Entry { at: Instant::now(), gateway, change: -left, is_dead: false });
    }

    /// What is in flight now.
    pub(super) fn in_flight(&self) -> u64 {
        self.state().living()
    }

    pub(super) fn in_flight_of(&self, gateway: u64) -> u64 {
        self.state().in_flight.get(&gateway).copied().unwrap_or(0)
    }

    /// The most that was in flight at a time, without and with what gateways had sent that were killed.
    pub(super) fn max(&self) -> (u64, u64) {
        let state = self.state();
        (state.max, state.max_with_dead)
    }

    /// The time that the requests of each tenant have taken since this was last asked.
    pub(super) fn take_seat_time(&self) -> BTreeMap<String, Duration> {
        std::mem::take(&mut self.state().seat_time)
    }

    /// Goes through the whole history once more: the most that was held at any moment, how many requests there were, and for how long.
    pub(super) fn check_history(&self) -> (i64, usize, Duration) {
        let history = self.state().history.clone();
        let (mut held, mut most) = (BTreeMap::<u64, i64>::new(), 0);
        for entry in &history {
            // What a dead gateway had sent is taken away at once when it dies.
            if !entry.is_dead {
                *held.entry(entry.gateway).or_default() += entry.change;
                most = most.max(held.values().sum::<i64>());
            }
        }
        let requests = history.iter().filter(|entry| entry.change == 1).count();
        let lasted = history.first().zip(history.last()).map_or(Duration::ZERO, |(first, last)| last.at - first.at);
        (most, requests, lasted)
    }
}

// === impl State ===

impl State {
    fn living(&self) -> u64 {
        self.in_flight.iter().filter(|(gateway, _)| !self.dead.contains(gateway)).map(|(_, count)| count).sum()
    }
}
