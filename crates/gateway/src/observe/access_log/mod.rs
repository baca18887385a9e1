//! The access log: one line for each request, when it has ended.
//!
//! A worker formats lines into a buffer of its own, and hands full buffers to one thread that writes them. Nothing on the
//! request path waits for that thread: if it cannot keep up, lines are lost and counted.

mod escape;
mod line;
mod writer;

use std::cell::RefCell;
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::config::{AccessLogFormat, LogConfig};
use line::TimeText;
use writer::Chunk;

pub use line::{AccessLine, LineClass};
pub(crate) use writer::AccessLogWriter;

/// The access log of one worker, under the settings of one time.
#[derive(Debug)]
pub(crate) struct AccessLog {
    format: LineFormat,
    /// A request gets a line if a random number is not greater.
    sample_max: u64,
    writer: AccessLogWriter,
    state: RefCell<State>,
}

#[derive(Debug, Clone, Copy)]
enum LineFormat {
    Json,
    Text,
}

#[derive(Debug)]
struct State {
    chunk: Chunk,
    times: TimeText,
    random: u64,
    /// A moment by both clocks: one is cheap to compare, and the other tells the time of day.
    moment: (Instant, Duration),
}

/// A buffer with so many bytes goes to the thread. Waking it up costs more than the write itself.
const CHUNK_BYTES: usize = 64 * 1024;
/// A buffer with so many bytes, which the thread has had no time for, takes no more lines.
const BUFFER_BYTES_MAX: usize = 256 * 1024;

// === impl AccessLog ===

impl AccessLog {
    /// None if there shall be none.
    pub(crate) fn new(config: &LogConfig, writer: Option<&AccessLogWriter>) -> Option<Self> {
        let format = match config.access {
            AccessLogFormat::Off => return None,
            AccessLogFormat::Json => LineFormat::Json,
            AccessLogFormat::Text => LineFormat::Text,
        };
        let state = State {
            chunk: Chunk::default(),
            times: TimeText::default(),
            // No seed is zero, of which nothing else follows.
            random: RandomState::new().hash_one(0) | 1,
            moment: moment(),
        };
        let (writer, sample_max) = (writer?.clone(), sample_max(config.access_sample)?);
        Some(Self { format, sample_max, writer, state: RefCell::new(state) })
    }

    /// Whether the next request gets a line.
    pub(crate) fn is_sampled(&self) -> bool {
        self.sample_max == u64::MAX || self.state.borrow_mut().next_random() <= self.sample_max
    }

    /// The time of day at this instant, since 1970.
    pub(crate) fn time_of(&self, instant: Instant) -> Duration {
        let (then, time) = self.state.borrow().moment;
        match instant.checked_duration_since(then) {
            Some(after) => time + after,
            None => time.saturating_sub(then - instant),
        }
    }

    /// Writes a line.
    pub(crate) fn put(&self, line: &AccessLine<'_>) {
        let state = &mut *self.state.borrow_mut();
        if state.chunk.bytes.len() >= BUFFER_BYTES_MAX && !self.hand_over(state) {
            return self.writer.note_lost(1);
        }
        let State { chunk, times, .. } = state;
        match self.format {
            LineFormat::Json => line.put_json(&mut chunk.bytes, times),
            LineFormat::Text => line.put_text(&mut chunk.bytes, times),
        }
        chunk.lines += 1;
        if chunk.bytes.len() >= CHUNK_BYTES {
            self.hand_over(state);
        }
    }

    /// Hands over the lines that there are. To be called some times a second.
    pub(crate) fn flush(&self) {
        let state = &mut *self.state.borrow_mut();
        state.moment = moment();
        self.hand_over(state);
    }

    /// Hands over the buffer, and begins another one. Whether the thread has taken it.
    fn hand_over(&self, state: &mut State) -> bool {
        if state.chunk.lines == 0 {
            return true;
        }
        match self.writer.send(std::mem::take(&mut state.chunk)) {
            Ok(()) => {
                state.chunk.bytes = self.writer.buffer();
                true
            }
            Err(unsent) => {
                state.chunk = unsent;
                false
            }
        }
    }
}

impl Drop for AccessLog {
    fn drop(&mut self) {
        let state = &mut *self.state.borrow_mut();
        if !self.hand_over(state) {
            self.writer.note_lost(state.chunk.lines);
        }
    }
}

// === impl State ===

impl State {
    /// A random number (xorshift64*).
    fn next_random(&mut self) -> u64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        self.random.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

fn moment() -> (Instant, Duration) {
    (Instant::now(), SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

/// The bound for random numbers of that part of all; none if it is no part at all.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "it is a part"
)]
fn sample_max(sample: f64) -> Option<u64> {
    (sample > 0.0).then_some(if sample >= 1.0 { u64::MAX } else { (sample * u64::MAX as f64) as u64 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::metrics::AccessLogMetrics;

    fn line() -> AccessLine<'static> {
        AccessLine {
            time: Duration::ZERO,
            request_id: b"1",
            user: None,
            method: "GET",
            path: "/",
            class: None,
            wait: Duration::ZERO,
            service: Duration::ZERO,
            status: 200,
            rejected: None,
            upstream: None,
            bytes_in: 0,
            bytes_out: 0,
        }
    }

    fn config(access: AccessLogFormat, access_sample: f64) -> LogConfig {
        LogConfig { access, access_sample, ..LogConfig::default() }
    }

    #[tokio::test]
    async fn lines_that_nobody_takes_are_bounded_and_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        // Somebody has it open and does not read, so that the thread is stuck when the pipe is full.
        let reader = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let metrics = AccessLogMetrics::default();
        let writer = AccessLogWriter::start(Some(&path), &metrics).unwrap();
        let log = AccessLog::new(&config(AccessLogFormat::Json, 1.0), Some(&writer)).unwrap();
        let lines = 200_000;
        for _ in 0..lines {
            log.put(&line());
        }
        let held = log.state.borrow().chunk.bytes.len();
        assert!(held <= BUFFER_BYTES_MAX + 1024, "{held}");
        let lost = metrics.lines_lost();
        assert!(lost > 0 && lost < lines, "{lost}");
        drop((log, writer, reader));
    }

    #[tokio::test]
    async fn a_part_of_the_requests_is_sampled() {
        let folder = tempfile::tempdir().unwrap();
        let metrics = AccessLogMetrics::default();
        let writer = AccessLogWriter::start(Some(&folder.path().join("log")), &metrics).unwrap();
        let sampled = |sample| {
            let log = AccessLog::new(&config(AccessLogFormat::Text, sample), Some(&writer));
            log.map_or(0, |log| (0..10_000).filter(|_| log.is_sampled()).count())
        };
        assert_eq!([sampled(0.0), sampled(1.0)], [0, 10_000]);
        let tenth = sampled(0.1);
        assert!((850..1150).contains(&tenth), "{tenth}");
        assert!(AccessLog::new(&config(AccessLogFormat::Off, 1.0), Some(&writer)).is_none());
    }
}
