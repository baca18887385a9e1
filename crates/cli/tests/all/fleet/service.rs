//! The service behind the gateways: it knows how many requests it works on, and through which gateway each came.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::history::RequestEntry;

/// How long a request takes: shorter than the grace of the fleet, and so long that a busy machine can keep all seats in use.
const REQUEST: Duration = Duration::from_millis(200);

/// A request that was being sent when its gateway was stopped arrives within this time after the gateway goes on.
const LATE: Duration = Duration::from_millis(500);

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
    /// Gateways that were stopped and go on, and when: the first request of each may be one that was being sent (not modelled, see the end
    /// of the specification). It is counted apart.
    going_on: BTreeMap<u64, Instant>,
    late: u64,
    max: u64,
    max_with_dead: u64,
    max_with_late: u64,
    /// The time that requests of each tenant have taken.
    seat_time: BTreeMap<String, Duration>,
    /// Every start and end, for the checker.
    history: Vec<RequestEntry>,
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
            let is_late = self.begin(gateway);
            let began = Instant::now();
            tokio::time::sleep(REQUEST).await;
            self.end(gateway, is_late);
            *self.state().seat_time.entry(tenant).or_default() += began.elapsed();
            if stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await.is_err() {
                return;
            }
        }
    }

    /// A request starts. Returns whether it is one that was being sent when its gateway was stopped.
    fn begin(&self, gateway: u64) -> bool {
        let mut state = self.state();
        let is_late = state.going_on.remove(&gateway).is_some_and(|at| at.elapsed() < LATE);
        if is_late {
            state.late += 1;
        } else {
            *state.in_flight.entry(gateway).or_default() += 1;
        }
        let is_apart = is_late || state.dead.contains(&gateway);
        state.history.push(RequestEntry { at: Instant::now(), gateway, change: 1, is_apart });
        let with_dead = state.in_flight.values().sum();
        let living = state.living();
        state.max = state.max.max(living);
        state.max_with_dead = state.max_with_dead.max(with_dead);
        state.max_with_late = state.max_with_late.max(living + state.late);
        is_late
    }

    fn end(&self, gateway: u64, is_late: bool) {
        let mut state = self.state();
        if is_late {
            state.late -= 1;
        } else if let Some(count) = state.in_flight.get_mut(&gateway) {
            *count -= 1;
        }
        let is_apart = is_late || state.dead.contains(&gateway);
        state.history.push(RequestEntry { at: Instant::now(), gateway, change: -1, is_apart });
    }

    /// A gateway that was stopped goes on now.
    pub(super) fn note_going_on(&self, gateway: u64) {
        self.state().going_on.insert(gateway, Instant::now());
    }

    /// A gateway is about to be killed. Its requests run on; nobody else knows of them.
    pub(super) fn note_killed(&self, gateway: u64) {
        let mut state = self.state();
        state.dead.insert(gateway);
        let left = i64::try_from(state.in_flight.get(&gateway).copied().unwrap_or(0)).unwrap();
        state.history.push(RequestEntry { at: Instant::now(), gateway, change: -left, is_apart: false });
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

    /// The most that was in flight at a time, with requests that were being sent when their gateway was stopped.
    pub(super) fn max_with_late(&self) -> u64 {
        self.state().max_with_late
    }

    /// How many requests have started.
    pub(super) fn started(&self) -> usize {
        self.state().history.iter().filter(|entry| entry.change > 0).count()
    }

    /// Every start and end, in order.
    pub(super) fn history(&self) -> Vec<RequestEntry> {
        self.state().history.clone()
    }

    /// The time that the requests of each tenant have taken since this was last asked.
    pub(super) fn take_seat_time(&self) -> BTreeMap<String, Duration> {
        std::mem::take(&mut self.state().seat_time)
    }
}

// === impl State ===

impl State {
    fn living(&self) -> u64 {
        self.in_flight.iter().filter(|(gateway, _)| !self.dead.contains(gateway)).map(|(_, count)| count).sum()
    }
}
