//! Requests at a fixed rate, whatever becomes of them (an open loop): a process of its own with one thread.
//!
//! When a request is due follows from the rate alone, and its latency counts from then, also while it waits for a connection.
//! So a proxy that holds up the generator does not improve its own figures ("coordinated omission").

use std::collections::VecDeque;
use std::io::{self, Error, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::fd::OwnedFd;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

use crate::contestant::TENANT_HEADER;
use crate::role::Role;
use crate::upstream::BODY;

/// What a run has found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    /// Requests without a response in the end. Their latencies are counted as if the response had come then.
    pub(crate) unanswered: usize,
}

/// Requests are due in crowds, this far apart.
const TICK: Duration = Duration::from_micros(100);
/// What the first requests take is not counted.
const WARM_UP: Duration = Duration::from_millis(500);
/// Responses that take longer than this after the last request are not waited for.
const PATIENCE: Duration = Duration::from_secs(1);
const CONNECTIONS: usize = 64;
/// The timer among the connections.
const TIMER: u64 = CONNECTIONS as u64;

/// A connection, and the request on it, if there is one.
struct Connection {
    stream: TcpStream,
    /// When its request was due.
    due: Option<Duration>,
    response: Vec<u8>,
}

/// Sends requests that are due.
struct Generator {
    connections: Vec<Connection>,
    idle: Vec<usize>,
    /// When those were due that no connection was free for.
    waiting: VecDeque<Duration>,
    /// How long requests took, since they were due.
    latencies: Vec<Duration>,
    request: Vec<u8>,
    start: Instant,
}

/// A run at this rate, in requests per second, for so many seconds.
pub(crate) fn run(target: SocketAddr, rate: u32, seconds: u32) -> io::Result<Run> {
    let mut command = Role::Generator.command()?;
    let output = command.arg(target.to_string()).arg(rate.to_string()).arg(seconds.to_string()).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let figures: Vec<f64> = text.split_whitespace().filter_map(|figure| figure.parse().ok()).collect();
    match figures[..] {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is a count")]
        [p50_ms, p99_ms, unanswered] => Ok(Run { p50_ms, p99_ms, unanswered: unanswered as usize }),
        _ => Err(Error::other(format!("the generator failed: {text}"))),
    }
}

/// What the process does.
pub(crate) fn generate() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [target, rate, seconds] = &arguments[..] else {
        return Err(Error::other("the generator needs an address, a rate and a number of seconds"));
    };
    let target: SocketAddr = target.parse().map_err(Error::other)?;
    let rate: f64 = rate.parse().map_err(Error::other)?;
    let seconds: u64 = seconds.parse().map_err(Error::other)?;
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let connections: Vec<Connection> = (0..CONNECTIONS).map(|_| Connection::open(target)).collect::<io::Result<_>>()?;
    for (index, connection) in connections.iter().enumerate() {
        epoll::add(&poll, &connection.stream, epoll::EventData::new_u64(index as u64), epoll::EventFlags::IN)?;
    }
    let timer = timer()?;
    epoll::add(&poll, &timer, epoll::EventData::new_u64(TIMER), epoll::EventFlags::IN)?;
    let request = format!("GET / HTTP/1.1\r\nHost: {target}\r\n{TENANT_HEADER}: polite\r\n\r\n").into_bytes();
    let (idle, start) = ((0..CONNECTIONS).collect(), Instant::now());
    let mut generator =
        Generator { connections, idle, waiting: VecDeque::new(), latencies: Vec::new(), request, start };
    let end = WARM_UP + Duration::from_secs(seconds);
    let (mut tick, mut events) = (0_u32, Vec::with_capacity(CONNECTIONS + 1));
    let mut due_count = 0.0;
    while start.elapsed() < end || (generator.is_busy() && start.elapsed() < end + PATIENCE) {
        epoll::wait(&poll, spare_capacity(&mut events), None)?;
        for event in events.drain(..) {
            match event.data.u64() {
                TIMER => drop(rustix::io::read(&timer, &mut [0; 8])?),
                index => generator.receive(usize::try_from(index).map_err(Error::other)?)?,
            }
        }
        // All ticks that have passed, also those that the generator was late for.
        while TICK * tick <= start.elapsed() && TICK * tick < end {
            let due = TICK * tick;
            tick += 1;
            let count = rate * (TICK * tick).as_secs_f64();
            while due_count < count.floor() {
                due_count += 1.0;
                generator.waiting.push_back(due);
            }
        }
        generator.send()?;
    }
    generator.report();
    Ok(())
}

/// A timer that ticks.
fn timer() -> io::Result<OwnedFd> {
    let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
    let tick = Timespec { tv_sec: 0, tv_nsec: TICK.subsec_nanos().into() };
    timerfd_settime(&timer, TimerfdTimerFlags::empty(), &Itimerspec { it_interval: tick, it_value: tick })?;
    Ok(timer)
}

// === impl Connection ===

impl Connection {
    fn open(target: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(target)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Self { stream, due: None, response: Vec::with_capacity(4096) })
    }

    /// Reads what is there. Whether the response is complete.
    fn receive(&mut self) -> io::Result<bool> {
        let mut bytes = [0; 4096];
        match self.stream.read(&mut bytes) {
            Ok(0) => return Err(Error::other("a connection was closed")),
            Ok(count) => self.response.extend_from_slice(&bytes[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        if !self.response.ends_with(BODY.as_bytes()) {
            return Ok(false);
        }
        if !self.response.starts_with(b"HTTP/1.1 200 ") {
            let response = String::from_utf8_lossy(&self.response).into_owned();
            return Err(Error::other(format!("a request was not served: {response}")));
        }
        self.response.clear();
        Ok(true)
    }
}

// === impl Generator ===

impl Generator {
    /// Sends what is due, as far as connections are free.
    fn send(&mut self) -> io::Result<()> {
        while let Some(index) = self.idle.last().copied() {
            let Some(due) = self.waiting.pop_front() else { return Ok(()) };
            self.idle.pop();
            let connection = &mut self.connections[index];
            // A request is smaller than any buffer of the system.
            connection.stream.write_all(&self.request)?;
            connection.due = Some(due);
        }
        Ok(())
    }

    fn receive(&mut self, index: usize) -> io::Result<()> {
        if self.connections[index].receive()?
            && let Some(due) = self.connections[index].due.take()
        {
            self.idle.push(index);
            self.note(due);
        }
        Ok(())
    }

    fn note(&mut self, due: Duration) {
        if due >= WARM_UP {
            self.latencies.push(self.start.elapsed().saturating_sub(due));
        }
    }

    /// Whether responses are missing.
    fn is_busy(&self) -> bool {
        !self.waiting.is_empty() || self.idle.len() < self.connections.len()
    }

    fn report(mut self) {
        let under_way: Vec<Duration> = self.connections.iter().filter_map(|connection| connection.due).collect();
        let unanswered: Vec<Duration> = under_way.into_iter().chain(std::mem::take(&mut self.waiting)).collect();
        for due in &unanswered {
            self.note(*due);
        }
        self.latencies.sort_unstable();
        let percentile = |percent: usize| {
            let place = (self.latencies.len() * percent).div_ceil(100).saturating_sub(1);
            self.latencies.get(place).map_or(0.0, |latency| latency.as_secs_f64() * 1e3)
        };
        println!("{} {} {}", percentile(50), percentile(99), unanswered.len());
    }
}
